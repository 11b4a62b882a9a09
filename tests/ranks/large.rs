//! Transfers over 2 GiB, whose counts and offsets exceed 31 bits.

use crate::child::{self, Ctx, step};
use crate::flood::status;
use portolan_base::layout::Shape;
use portolan_engine::path::Path;
use portolan_engine::path::kernel::Scale;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::{Transfer, TransferKind};
use std::fs;

const LENGTH: usize = (2 << 30) + 4096;

fn available() -> usize {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

/// Returns why there is too little memory for the check, or `None`.
pub fn no_room() -> Option<String> {
    let shared = portolan_base::shm::room_in("/dev/shm").unwrap_or(0);
    (available() < 8 << 30 || shared < 3 << 30).then(|| "too little memory".into())
}

fn word(i: usize, salt: u64) -> u64 {
    (i as u64 ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub fn large() {
    let ctx = Ctx::new(child::start());
    let engine = &*ctx.engine;
    step("large: allocate");
    let segment = ctx.allocate(if ctx.me == 1 { LENGTH } else { 0 });
    let at = segment.part(1).address();
    if ctx.me == 0 {
        let mut data: Vec<u64> = (0..LENGTH / 8).map(|i| word(i, 1)).collect();
        let bytes = data.as_mut_ptr().cast::<u8>();
        step("large: put");
        // SAFETY: `data` has `LENGTH` bytes.
        unsafe { engine.put(1, at, bytes, LENGTH) }.expect("put");
        engine.fence(1).expect("fence");
        data.fill(0);
        step("large: get");
        // SAFETY: `data` has `LENGTH` bytes.
        unsafe { engine.get(1, at, data.as_mut_ptr().cast(), LENGTH) }.expect("get");
        let wrong = data.iter().enumerate().find(|&(i, &w)| w != word(i, 1));
        assert!(wrong.is_none(), "word {wrong:?} after put and get of {LENGTH} bytes");
        drop(data);
        sparse(&ctx, at);
        // On the direct path, the peer's memory counts as this process's own too.
        let mapped = if engine.path_between(0, 1) == Path::Direct { LENGTH } else { 0 };
        let used = status("VmHWM");
        let most = mapped + LENGTH + LENGTH / 2 + (1 << 30);
        assert!(used < most, "the transfers took {used} bytes here, more than {most}");
    }
    step("large: barrier");
    ctx.barrier();
    if ctx.me == 1 {
        // SAFETY: the part has `LENGTH` bytes, and no rank writes to it any more.
        let words =
            unsafe { std::slice::from_raw_parts(segment.my_base().cast::<u64>(), LENGTH / 8) };
        for i in (0..LENGTH / 8 - 100).step_by(511).filter(|i| i % (1 << 20) > 100) {
            assert_eq!(words[i], word(i, 1), "word {i} in the owner's memory");
        }
    }
    ctx.barrier();
    ctx.free(segment);
    drop(ctx);
    Engine::stop().expect("stop");
}

/// Transfers a few blocks over the whole range, and numbers at its end.
fn sparse(ctx: &Ctx, at: usize) {
    let engine = &*ctx.engine;
    // Rows 8 MiB apart. The last one begins at 2 GiB.
    let (row, rows, stride) = (64, 257, 8isize << 20);
    let shape = Shape::strided(&[row, rows], &[row as isize], &[stride]).expect("a shape");
    let data: Vec<u64> = (0..row * rows / 8).map(|i| word(i, 2)).collect();
    let source = data.as_ptr().cast::<u8>().cast_mut();
    let mut back = vec![0u64; data.len()];
    step("large: strided");
    // SAFETY: both vectors have the bytes of the shape. The remote extent, 256 rows of 8 MiB and
    // one block, lies inside the segment.
    unsafe {
        engine
            .blocking(&Transfer::new(TransferKind::Put, 1, at, source, &shape))
            .expect("strided put");
        engine
            .blocking(&Transfer::new(TransferKind::Get, 1, at, back.as_mut_ptr().cast(), &shape))
            .expect("strided get");
        assert!(back == data, "strided put and get over 2 GiB");
        // Two rows more than 2 GiB apart, from the end backwards.
        let far = Shape::strided(&[8, 2], &[8], &[-((2isize << 30) + 64)]).expect("a shape");
        let last = at + LENGTH - 8;
        engine
            .blocking(&Transfer::new(TransferKind::Put, 1, last, source, &far))
            .expect("strided put");
        engine
            .blocking(&Transfer::new(TransferKind::Get, 1, last, back.as_mut_ptr().cast(), &far))
            .expect("strided get");
        assert!(back[..2] == data[..2], "two rows more than 2 GiB apart");
        step("large: accumulate");
        ctx.store(1, last, 5i64);
        let one = 1i64;
        let source = (&raw const one).cast::<u8>().cast_mut();
        let add = TransferKind::Accumulate(Scale::Long(3));
        engine.blocking(&Transfer::new(add, 1, last, source, &Shape::contiguous(8))).expect("acc");
    }
    let old =
        engine.rmw(1, at + LENGTH - 8, portolan_engine::atomics::Rmw::add::<i64>(2)).expect("rmw");
    assert_eq!(old, 8, "put; acc; rmw beyond 2 GiB");
    assert_eq!(ctx.load::<i64>(1, at + LENGTH - 8), 10);
}
