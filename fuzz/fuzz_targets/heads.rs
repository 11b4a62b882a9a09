//! Decodes arbitrary heads of RPC messages, requests and responses. Encoding an accepted head and
//! decoding it again yields the same head.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_rpc::hg::wire::{ANSWER, Answer, CallRequest, Parsed, REQUEST};
use portolan_rpc::na::wire::Head;

fuzz_target!(|input: (u64, &[u8])| {
    let (token, bytes) = input;
    if let Some(head) = Head::parse(bytes) {
        assert_eq!(head.bytes(), bytes);
    }
    if let Parsed::Request(request) | Parsed::Broken(request) = CallRequest::parse(bytes, token) {
        again(&request);
    }
    if let Some(answer) = Answer::parse(bytes) {
        let mut written = [0; ANSWER];
        answer.write(&mut written);
        assert_eq!(Answer::parse(&written), Some(answer));
    }
    // A request with a valid hash and otherwise arbitrary fields.
    if let [flags, rest @ ..] = bytes {
        let word = |at: usize| rest.iter().skip(at).take(4).fold(0, |n, b| n << 8 | u32::from(*b));
        let methods = portolan_rpc::checksum::Method::ALL;
        again(&CallRequest {
            id: word(0),
            check: word(4),
            method: methods[usize::from(*flags >> 2) % methods.len()],
            token,
            quiet: flags & 1 != 0,
            long: flags & 2 != 0,
            more: word(12) & 1 != 0,
            context: word(8) as u8,
            origin_context: 0,
        });
    }
});

fn again(request: &CallRequest) {
    let mut written = [0; REQUEST];
    request.write(&mut written);
    assert_eq!(CallRequest::parse(&written, request.token), Parsed::Request(*request));
}
