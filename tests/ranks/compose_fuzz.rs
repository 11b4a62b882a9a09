//! Stored compositions with changed bodies and correct checksums: loading returns a composition or
//! an error, and changes no memory.

use crate::child::{self, Ctx, own, step};
use crate::rng::Rng;
use portolan_compose::{Composer, Composition, file};
use std::fs;

fn damage(rng: &mut Rng, body: &mut Vec<u8>) {
    for _ in 0..rng.range(1, 4) {
        if body.is_empty() {
            return;
        }
        let at = rng.below(body.len());
        match rng.below(5) {
            0 => body[at] ^= 1 << rng.below(8),
            1 => body[at] = rng.next() as u8,
            2 => body.truncate(at),
            3 => body.extend(rng.bytes(9)),
            _ => {
                let extreme = *rng.pick(&[0, u64::MAX, 1 << 63, u64::MAX >> 1, 1, 1 << 32]);
                let at = at / 4 * 4;
                for (to, from) in body[at..].iter_mut().zip(extreme.to_le_bytes()) {
                    *to = from;
                }
            }
        }
    }
}

pub fn damaged(ctx: &Ctx) {
    let engine = &*ctx.engine;
    let dir = child::directory().join(format!("compose_fuzz.{}", ctx.me));
    fs::create_dir_all(&dir).expect("a directory");
    let composer = Composer::with_directory(dir.to_str().expect("a path"));
    let segment = ctx.allocate(8192);
    own(&segment).fill(0);
    ctx.barrier();
    let mut rng = Rng::new(ctx.seed, &[ctx.me as u64, 17]);
    let place = file::place_of(engine);
    let here = segment.my_base() as usize;
    let there = |target: usize| segment.part(target).address() + 4096;
    let mut all = Vec::new();
    for target in 0..ctx.n {
        let mut c = Composition::simple(engine, target).expect("simple");
        c.add(here + 64 * target, there(target) + 256 * ctx.me, 24).expect("add");
        let l = portolan_compose::Blocks { start: here + 1024, stride: 32, block: 8, count: 5 };
        let r = portolan_compose::Blocks {
            start: there(target) + 256 * ctx.me + 64,
            stride: 16,
            block: 8,
            count: 5,
        };
        c.add_slice(l, r).expect("slice");
        all.push(c);
    }
    let merged = all[1..].iter().fold(all[0].clone(), |m, c| m.merge(c).expect("merge"));
    all.push(merged.clone());
    all.push(merged.map(engine).expect("map"));
    let (mut loaded, mut refused) = (0, 0);
    for (number, composition) in all.iter().enumerate() {
        composer.store(engine, number as i32, composition).expect("store");
        let path = dir.join(format!("compose-{number}.{}", ctx.me));
        let whole = fs::read(&path).expect("the file");
        let left = whole.len() as u64;
        let (record, _) = file::read(&mut &whole[..], left, place, "it").expect("a record");
        for i in 0..if ctx.quick { 60 } else { 300 } {
            step(format!("compose_fuzz: composition {number}, change {i}"));
            let mut body = record.body.clone();
            damage(&mut rng, &mut body);
            fs::write(&path, file::encode(place, record.kind, &body).expect("a record"))
                .expect("write");
            composer.rewind(number as i32).expect("rewind");
            match composer.load(engine, number as i32) {
                Ok(_) => loaded += 1,
                Err(error) => {
                    assert!(error.detail().len() > 10, "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > loaded, "{refused} of {} changes were refused", refused + loaded);
    let _ = fs::remove_dir_all(&dir);
    ctx.barrier();
    assert!(own(&segment).iter().all(|&b| b == 0), "loading changed memory");
    ctx.free(segment);
}
