//! Vectors: several blocks on either side in one transfer.
//!
//! `LAPI_GEN_IOVECTOR` lists addresses and lengths, `LAPI_GEN_STRIDED_XFER` gives base, block size
//! and stride. Both sides must have the same type, number of blocks and lengths. `LAPI_GEN_GENERIC`
//! is a list of which only the total lengths must match.
//!
//! `LAPI_Amsendv` gathers the blocks into one message that begins with their lengths. Its header
//! handler runs when all data has arrived, and returns the vector to scatter it to.

use super::amsend::{self, Message, VECTOR, VECTOR_TYPE};
use super::context::{Context, call, enter};
use super::incoming::{Finish, Incoming, accept_done};
use super::messages as m;
use super::outcome::{Failure, Outcome, refuse};
use super::pending::Done;
use super::types::{
    Counter, GENERIC, Handle, IOVECTOR, MAX_MSG_SZ, STRIDED, VecHdrHandler, Vector,
};
use super::{notices, putget};
use crate::boundary::{array, export};
use portolan_base::error::{Result, fail};
use portolan_engine::am::Am;
use portolan_engine::am::{Accept, Arrival, Completion, Data, Destination, Then};
use portolan_engine::any_memory::Span;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Origin,
    Target,
}

impl Side {
    fn code(self, origin: c_int, target: c_int) -> c_int {
        if self == Side::Origin { origin } else { target }
    }

    fn name(self) -> &'static str {
        if self == Side::Origin { "origin" } else { "target" }
    }
}

type Block = (usize, usize);

#[derive(Debug)]
pub(crate) struct Blocks {
    kind: c_int,
    list: Vec<Block>,
    bytes: usize,
}

/// Fails if memory is exhausted: a strided vector of four words may describe billions of blocks.
fn room_for(n: usize, side: Side) -> Outcome<Vec<Block>> {
    let mut list = Vec::new();
    if list.try_reserve_exact(n).is_err() {
        refuse!(m::MEMORY_EXHAUSTED, "no memory for the {n} blocks of the {} vector", side.name());
    }
    Ok(list)
}

impl Blocks {
    /// Reads and checks a vector. Fails with the code for the error and `side`.
    ///
    /// # Safety
    /// `vector` must be null or point to a vector as the interface requires.
    pub(crate) unsafe fn read(vector: *const Vector, side: Side) -> Outcome<Blocks> {
        // SAFETY: the caller guarantees that `vector` is null or valid.
        let Some(v) = (unsafe { vector.as_ref() }) else {
            refuse!(
                side.code(m::ORG_VEC_NULL, m::TGT_VEC_NULL),
                "the {} vector is null",
                side.name()
            )
        };
        match v.vec_type {
            // SAFETY: the caller guarantees that the vector has the arrays of its type.
            IOVECTOR | GENERIC => unsafe { Blocks::listed(v, side) },
            // SAFETY: the caller guarantees that the vector has the three words of its type.
            STRIDED => unsafe { Blocks::strided(v, side) },
            kind => refuse!(
                side.code(m::ORG_VEC_TYPE, m::TGT_VEC_TYPE),
                "the {} vector is of unknown type {kind}",
                side.name()
            ),
        }
    }

    unsafe fn listed(v: &Vector, side: Side) -> Outcome<Blocks> {
        let n = v.num_vecs as usize;
        if n > 0 && (v.info.is_null() || v.len.is_null()) {
            let code = side.code(m::ORG_VEC_ADDR, m::TGT_VEC_ADDR);
            refuse!(code, "the {} vector has {n} blocks, but no arrays", side.name());
        }
        let (mut list, mut bytes) = (room_for(n, side)?, 0u64);
        for i in 0..n {
            // SAFETY: the caller guarantees that both arrays have `n` elements.
            let (address, len) = unsafe { (*v.info.add(i) as usize, *v.len.add(i)) };
            if len > 0 && address == 0 {
                let code = side.code(m::ORG_VEC_ADDR, m::TGT_VEC_ADDR);
                refuse!(
                    code,
                    "block {i} of the {} vector is null, but has {len} bytes",
                    side.name()
                );
            }
            if (address as u64).checked_add(len).is_none() {
                let code = side.code(m::ORG_VEC_LEN, m::TGT_VEC_LEN);
                refuse!(code, "block {i} of the {} vector ends outside of memory", side.name());
            }
            bytes = match bytes.checked_add(len).filter(|&b| b <= MAX_MSG_SZ) {
                Some(bytes) => bytes,
                None => refuse!(
                    side.code(m::ORG_VEC_LEN, m::TGT_VEC_LEN),
                    "the {} vector has more than LAPI_MAX_MSG_SZ bytes",
                    side.name()
                ),
            };
            list.push((address, len as usize));
        }
        Ok(Blocks { kind: v.vec_type, list, bytes: bytes as usize })
    }

    unsafe fn strided(v: &Vector, side: Side) -> Outcome<Blocks> {
        let (n, name) = (v.num_vecs as u64, side.name());
        let no_base = side.code(m::STRIDE_ORG_VEC_ADDR_NULL, m::STRIDE_TGT_VEC_ADDR_NULL);
        if v.info.is_null() {
            refuse!(no_base, "the strided {name} vector has no base, block and stride");
        }
        // SAFETY: the caller guarantees that `info` has three words.
        let [base, block, stride] = unsafe { [0, 1, 2].map(|i| *v.info.add(i) as u64) };
        if base == 0 && n > 0 && block > 0 {
            refuse!(no_base, "the base of the strided {name} vector is null");
        }
        if stride < block && n > 1 {
            let code = side.code(m::ORG_STRIDE, m::TGT_STRIDE);
            refuse!(
                code,
                "the {name} vector has a stride of {stride}, less than its block of {block}"
            );
        }
        let extent = stride.checked_mul(n).filter(|&e| e <= MAX_MSG_SZ && block <= MAX_MSG_SZ);
        // The block of a single stride may be longer than the stride.
        if extent.is_none_or(|extent| base.checked_add(extent.max(block)).is_none()) {
            let code = side.code(m::ORG_EXTENT, m::TGT_EXTENT);
            refuse!(
                code,
                "the extent of the {name} vector, {n} times {stride} with a block of {block}, is \
                 too large"
            );
        }
        let mut list = room_for(n as usize, side)?;
        list.extend((0..n).map(|i| ((base + i * stride) as usize, block as usize)));
        Ok(Blocks { kind: STRIDED, list, bytes: (n * block) as usize })
    }

    fn lengths(&self) -> impl Iterator<Item = usize> {
        self.list.iter().map(|b| b.1)
    }
}

/// Checks that the blocks of the two sides match: the total length if either side is generic, else
/// type, number and each length.
fn fit((kind, lengths): (c_int, &[usize]), (other_kind, other): (c_int, &[usize])) -> Outcome {
    if kind == GENERIC || other_kind == GENERIC {
        let (a, b) = (lengths.iter().sum::<usize>(), other.iter().sum::<usize>());
        if a != b {
            refuse!(m::VEC_LEN_DIFF, "the origin's vector has {a} bytes, the target's {b}");
        }
        return Ok(());
    }
    if kind != other_kind {
        refuse!(
            m::VEC_TYPE_DIFF,
            "the origin's vector is of type {kind}, the target's of {other_kind}"
        );
    }
    if lengths.len() != other.len() {
        let (a, b) = (lengths.len(), other.len());
        refuse!(m::VEC_NUM_DIFF, "the origin's vector has {a} blocks, the target's {b}");
    }
    if let Some(i) = (0..other.len()).find(|&i| lengths[i] != other[i]) {
        let (a, b) = (lengths[i], other[i]);
        refuse!(m::VEC_LEN_DIFF, "block {i} has {a} bytes at the origin, {b} at the target");
    }
    Ok(())
}

/// Splits the blocks of both sides into spans within one block on either side. Merges neighbours.
fn spans(local: &[Block], remote: &[Block]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::with_capacity(local.len().max(remote.len()));
    let (mut l, mut r) = (local.iter().copied(), remote.iter().copied());
    let (mut a, mut b) = ((0, 0), (0, 0));
    loop {
        while a.1 == 0 {
            match l.next() {
                Some(block) => a = block,
                None => return spans,
            }
        }
        while b.1 == 0 {
            match r.next() {
                Some(block) => b = block,
                None => return spans,
            }
        }
        let bytes = a.1.min(b.1);
        match spans.last_mut() {
            Some(s) if s.local + s.bytes == a.0 && s.remote + s.bytes == b.0 => s.bytes += bytes,
            _ => spans.push(Span { local: a.0, remote: b.0, bytes }),
        }
        a = (a.0 + bytes, a.1 - bytes);
        b = (b.0 + bytes, b.1 - bytes);
    }
}

/// # Safety
/// Vectors, blocks and counters must be valid as the interface requires.
pub(crate) unsafe fn move_vector(
    hndl: Handle,
    tgt: c_uint,
    tgt_vec: *const Vector,
    org_vec: *const Vector,
    done: Done,
) -> Outcome {
    let (context, engine) = enter(hndl)?;
    let target = context.target(tgt)?;
    // SAFETY: the caller guarantees that both vectors are valid in this process.
    let (remote, local) =
        unsafe { (Blocks::read(tgt_vec, Side::Target)?, Blocks::read(org_vec, Side::Origin)?) };
    let (a, b): (Vec<_>, Vec<_>) = (local.lengths().collect(), remote.lengths().collect());
    fit((local.kind, &a), (remote.kind, &b))?;
    // SAFETY: the caller guarantees that the local blocks and the counters are valid.
    unsafe {
        putget::start(context, engine, &spans(&local.list, &remote.list), Done { target, ..done })
    }
}

export! {
    LAPI_Putv / PLAPI_Putv(
        hndl: Handle, tgt: c_uint, tgt_vec: *mut Vector, org_vec: *mut Vector,
        tgt_cntr: *mut Counter, org_cntr: *mut Counter, cmpl_cntr: *mut Counter,
    ) -> c_int = call(|| {
        let done = putget::put_done(tgt_cntr as u64, org_cntr, cmpl_cntr, None);
        // SAFETY: by contract, vectors and counters are valid as LAPI_Putv requires.
        unsafe { move_vector(hndl, tgt, tgt_vec, org_vec, done) }
    });

    LAPI_Getv / PLAPI_Getv(
        hndl: Handle, tgt: c_uint, tgt_vec: *mut Vector, org_vec: *mut Vector,
        tgt_cntr: *mut Counter, org_cntr: *mut Counter,
    ) -> c_int = call(|| {
        let done = putget::get_done(tgt_cntr as u64, org_cntr, None);
        // SAFETY: by contract, vectors and counters are valid as LAPI_Getv requires.
        unsafe { move_vector(hndl, tgt, tgt_vec, org_vec, done) }
    });
}

/// # Safety
/// Header, vector and counters must be valid as the interface requires.
pub(crate) unsafe fn send(hndl: Handle, message: &Message, org_vec: *const Vector) -> Outcome {
    let (context, engine) = enter(hndl)?;
    let checked = message.check(context)?;
    // SAFETY: the caller guarantees that the vector is null or valid.
    let blocks = unsafe { Blocks::read(org_vec, Side::Origin) }?;
    let Ok(count) = u32::try_from(blocks.list.len()) else {
        refuse!(m::ORG_VEC_LEN, "the origin vector has too many blocks");
    };
    let mut data = Vec::new();
    let total = blocks.bytes + 8 * blocks.list.len();
    if data.try_reserve_exact(total).is_err() {
        refuse!(m::MEMORY_EXHAUSTED, "no memory to gather {total} bytes");
    }
    for len in blocks.lengths() {
        data.extend_from_slice(&(len as u64).to_ne_bytes());
    }
    for &(address, len) in &blocks.list {
        if len > 0 {
            // SAFETY: the caller guarantees that the block is readable.
            data.extend_from_slice(unsafe { array(address as *const u8, len, "a block") }?);
        }
    }
    let flags = VECTOR | (blocks.kind as u16 * VECTOR_TYPE);
    // SAFETY: `data` is passed by value. By contract, the header and the counters are valid.
    unsafe { checked.send(context, engine, Data::Owned(data), flags, count) }
}

export! {
    LAPI_Amsendv / PLAPI_Amsendv(
        hndl: Handle, tgt: c_uint, hdr_hdl: *mut c_void, uhdr: *mut c_void, uhdr_len: c_uint,
        org_vec: *mut Vector, tgt_cntr: *mut Counter, org_cntr: *mut Counter,
        cmpl_cntr: *mut Counter,
    ) -> c_int = call(|| {
        let message = Message {
            tgt,
            hdr_hdl: hdr_hdl as u64,
            uhdr,
            uhdr_len,
            sent: None,
            tgt_cntr: tgt_cntr as u64,
            org_cntr,
            cmpl_cntr,
        };
        // SAFETY: by contract, header, vector and counters are valid as LAPI_Amsendv requires.
        unsafe { send(hndl, &message, org_vec) }
    });
}

pub(super) fn arrive(
    context: &Context,
    _engine: &Am,
    message: &Arrival<'_>,
    incoming: Incoming,
) -> Result<Accept> {
    if let Some(data) = message.data {
        return Ok(accept_done(scatter(context, incoming, data)?));
    }
    let run: Completion = Box::new(move |engine, data| {
        let done = super::context::current().and_then(|context| {
            let finish = scatter(context, incoming, &data)?;
            if finish.has_handler() {
                let job: Completion = Box::new(move |engine, _| finish.run(engine));
                return notices::run_later(context, engine, job);
            }
            finish.run(engine);
            Ok(())
        });
        if let Err(error) = done {
            super::context::fatal(&error);
        }
    });
    Ok(Accept { to: Destination::Buffer, then: Then::Inline(run) })
}

/// Runs the header handler and copies the blocks into the vector that it returns.
fn scatter(context: &Context, mut incoming: Incoming, data: &[u8]) -> Result<Finish> {
    let head = incoming.head;
    let origin = incoming.origin;
    let Some((lengths, payload)) = data.split_at_checked(8 * head.blocks as usize) else {
        fail!(Internal, "rank {origin} sent a truncated vector");
    };
    // The handler may modify its copy of the lengths.
    let mut given: Vec<u64> = lengths.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
    let lengths: Vec<usize> = given.iter().map(|&len| len as usize).collect();
    let (mut completion, mut user_info) = (None, ptr::null_mut());
    let mut uhdr_len = head.uhdr_len.into();
    let uhdr = incoming.uhdr_ptr();
    let wrong = |failure: Failure| match failure {
        Failure::Code(code, text) => {
            let text = format!("the vector header handler of a message from task {origin}: {text}");
            context.report(code, amsend::OF, origin, text)
        }
        Failure::Engine(error) => error,
    };
    // SAFETY: the program guarantees a header handler for vectors at this address, whose vector is
    // valid until it is read here. All pointers are to live locals.
    let target = unsafe {
        let handler: VecHdrHandler = std::mem::transmute(incoming.handler);
        let vector = handler(
            &mut context.handle(),
            uhdr,
            &mut uhdr_len,
            given.as_mut_ptr(),
            &mut completion,
            &mut user_info,
        );
        if vector.is_null() && payload.is_empty() {
            return Ok(incoming.finish(completion, user_info, 0, true));
        }
        Blocks::read(vector, Side::Target).map_err(wrong)?
    };
    let to: Vec<usize> = target.lengths().collect();
    let kind = (head.flags / VECTOR_TYPE) as c_int;
    fit((kind, &lengths), (target.kind, &to)).map_err(wrong)?;
    let mut rest = payload;
    for &(address, len) in &target.list {
        let Some((block, more)) = rest.split_at_checked(len) else {
            fail!(Internal, "rank {origin} sent {} bytes of a vector", payload.len());
        };
        if len > 0 {
            // SAFETY: the handler guarantees that the blocks of its vector are writable.
            unsafe { ptr::copy_nonoverlapping(block.as_ptr(), address as *mut u8, len) };
        }
        rest = more;
    }
    Ok(incoming.finish(completion, user_info, payload.len(), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_where_either_side_ends() {
        let spans = spans(&[(100, 10), (0, 0), (200, 6)], &[(1000, 4), (1004, 8), (2000, 4)]);
        let want = [(100, 1000, 10), (200, 1010, 2), (202, 2000, 4)];
        let got: Vec<_> = spans.iter().map(|s| (s.local, s.remote, s.bytes)).collect();
        assert_eq!(got, want);
    }

    fn code(vector: &Vector, side: Side) -> c_int {
        // SAFETY: the vectors of the tests have the arrays that their type requires.
        match unsafe { Blocks::read(vector, side) } {
            Err(Failure::Code(code, _)) => code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bad_vectors_have_their_codes() {
        let mut info = [ptr::null_mut::<c_void>(); 3];
        let mut len = [8u64, u64::MAX, 8];
        let (info, len) = (info.as_mut_ptr(), len.as_mut_ptr());
        let mut v = Vector { vec_type: IOVECTOR, num_vecs: 1, info, len };
        assert_eq!(code(&v, Side::Origin), m::ORG_VEC_ADDR);
        // SAFETY: the array has three elements.
        unsafe { (*info, *info.add(1)) = (8 as *mut c_void, 8 as *mut c_void) };
        v.num_vecs = 2;
        assert_eq!(code(&v, Side::Target), m::TGT_VEC_LEN);
        v.vec_type = 7;
        assert_eq!(code(&v, Side::Origin), m::ORG_VEC_TYPE);
        v.vec_type = STRIDED;
        assert_eq!(code(&v, Side::Target), m::TGT_STRIDE);
        // SAFETY: the array has three elements.
        unsafe { *info.add(2) = (i64::MAX - 1) as *mut c_void };
        assert_eq!(code(&v, Side::Origin), m::ORG_EXTENT);
        // SAFETY: the array has three elements.
        unsafe { *info.add(2) = 8 as *mut c_void };
        v.num_vecs = 1;
        // SAFETY: the array has three elements.
        unsafe { (*info, *info.add(1)) = ((usize::MAX - 20) as *mut c_void, 64 as *mut c_void) };
        assert_eq!(code(&v, Side::Target), m::TGT_EXTENT, "the block ends outside of memory");
        v.vec_type = IOVECTOR;
        // SAFETY: the array has three elements.
        unsafe { *len = 64 };
        assert_eq!(code(&v, Side::Origin), m::ORG_VEC_LEN, "the block ends outside of memory");
        v.vec_type = STRIDED;
        // SAFETY: the array has three elements.
        unsafe { *info = ptr::null_mut() };
        assert_eq!(code(&v, Side::Origin), m::STRIDE_ORG_VEC_ADDR_NULL);
    }

    #[test]
    fn generic_vectors_need_only_as_many_bytes() {
        assert!(fit((GENERIC, &[4, 4]), (IOVECTOR, &[8])).is_ok());
        assert!(fit((IOVECTOR, &[4, 4]), (IOVECTOR, &[8])).is_err());
        assert!(fit((GENERIC, &[4]), (GENERIC, &[8])).is_err());
        assert!(fit((STRIDED, &[4]), (IOVECTOR, &[4])).is_err());
    }
}
