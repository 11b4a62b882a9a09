//! Decodes arbitrary active messages and requests of the message path. Decoding never leaves the
//! bytes of the record.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_base::layout::Side;
use portolan_engine::am::wire as am;
use portolan_engine::memory::runs;
use portolan_engine::path::two_sided::wire;

fuzz_target!(|input: (u64, &[u8])| {
    let (count, bytes) = input;
    if let Ok((head, rest)) = am::split(bytes) {
        let _ = (head.kind(), head.handler());
        let behind = am::source(rest).ok().map(|(_, rest)| rest);
        for rest in [Some(rest), behind].into_iter().flatten() {
            if let Ok((header, data)) = am::header(&head, rest) {
                assert_eq!(header.len(), head.header as usize);
                assert_eq!(header.len() + data.len(), rest.len());
            }
        }
    }
    if let Ok((header, shape, payload)) = wire::decode(bytes) {
        assert!(payload.len() < bytes.len());
        let _ = (wire::RequestKind::of(bytes), header.scale(), header.rmw());
        for side in [Side::Local, Side::Remote] {
            let (low, high) = shape.extent(side);
            assert!(low <= 0 && high >= 0);
        }
        let mut out = Vec::new();
        wire::encode(header, &shape, &mut out);
        assert_eq!(out.len(), wire::head_len(&shape));
        let (_, again, rest) = wire::decode(&out).expect("what was written can be read");
        assert_eq!((again, rest), (shape.packed_local(), &[][..]));
    }
    for n in [count, count % 8] {
        if let Ok((runs, total, rest)) = runs::list(bytes, n) {
            assert_eq!(runs::total(&runs), Some(total));
            assert_eq!(runs.len() as u64, n);
            assert_eq!(runs.len() * 16 + rest.len(), bytes.len());
        }
    }
});
