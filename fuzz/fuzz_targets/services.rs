//! Serves arbitrary reads and writes from a peer in another job. A request reaches only the memory
//! that is registered under the handle it names, and only with the access that the handle permits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_rpc::na::service::{NAMES, Named, read, write};
use portolan_rpc::na::{Mem, Permission, Run};

fuzz_target!(|input: (u8, bool, bool, usize, usize, &[u8])| {
    let (flags, registered, named, offset, len, bytes) = input;
    let access = Permission::from_flags(u64::from(flags % 3) + 1).expect("one of three");
    // Two parts of an array are registered. The bytes between and around them must not change.
    let mut array = [0x55u8; 400];
    let at = array.as_mut_ptr() as usize;
    let runs = vec![Run { address: at + 100, len: 50 }, Run { address: at + 200, len: 70 }];
    // SAFETY: `array` lives until the end of this closure, and `mem` is dropped before it.
    let mem = unsafe { Mem::expose(runs, access) }.expect("it can be exposed");
    if registered {
        mem.register();
    }
    let mut body = bytes.to_vec();
    if named {
        let names = Named { id: mem.id(), offset: offset % 200, len: len % 200 };
        body.splice(..0, names.bytes());
    }
    let parsed = Named::parse(&body).ok().map(|(named, _)| named);
    let right = parsed.is_some_and(|part| {
        let end = part.offset.checked_add(part.len);
        registered && part.id == mem.id() && end.is_some_and(|end| end <= 120)
    });
    let got = read(&body);
    assert_eq!(got.is_ok(), right && access.readable() && body.len() == NAMES);
    if let (Ok(got), Some(part)) = (&got, parsed) {
        assert_eq!(*got, vec![0x55; part.len]);
    }
    let written = write(&body);
    let whole = parsed.is_some_and(|part| body.len() == NAMES + part.len);
    assert_eq!(written.is_ok(), right && access.writable() && whole);
    drop(mem);
    let outside = array[..100].iter().chain(&array[150..200]).chain(&array[270..]);
    assert!(outside.copied().all(|byte| byte == 0x55), "memory that is not exposed is written");
    if written.is_err() {
        assert_eq!(array, [0x55; 400], "what is refused writes nothing");
    }
});
