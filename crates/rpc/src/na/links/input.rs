//! Incoming frames of a connection, whose bytes arrive in parts of any length. A frame within one
//! part is passed on without a copy. The body of a long reply to a get goes directly to its
//! destination. Nothing is allocated for a frame before its bytes arrive.

use super::output::FRAME;
use crate::na::service::NAMES;
use crate::na::wire::{CHUNK, HEAD, Head, Kind, number};
use portolan_base::error::ErrorKind;
use portolan_engine::core::answers::AwaitedAnswer;

/// Maximum length of a body: the name of memory and a chunk.
const MAX_BODY: usize = NAMES + CHUNK;
/// Minimum length of a reply to a get that goes directly to its destination.
const DIRECT: usize = 4096;

pub(super) trait Sink {
    /// Handles a message. Fails if no peer of this library would send it; the text says why.
    fn message(&mut self, head: &Head, body: &[u8]) -> Result<(), String>;

    /// Returns the get that a long reply completes. Fails if the peer was not asked for it.
    fn reply(&mut self, head: &Head, len: usize) -> Result<AwaitedAnswer, String>;
}

#[derive(Default)]
pub(super) struct Input {
    partial: Vec<u8>,
    /// A reply whose body is arriving at its destination.
    direct: Option<AwaitedAnswer>,
}

fn front(bytes: &[u8]) -> Result<(Head, usize), String> {
    let len = number(&bytes[..4]) as usize;
    if len > MAX_BODY {
        return Err(format!("it sends a message of {len} bytes"));
    }
    match Head::parse(&bytes[4..4 + HEAD]) {
        Some(head) => Ok((head, len)),
        None => Err("it sent a message that this protocol does not allow".into()),
    }
}

impl Input {
    pub fn direct(&mut self) -> Option<&mut AwaitedAnswer> {
        self.direct.as_mut()
    }

    pub fn settle(&mut self) {
        if let Some(direct) = self.direct.take_if(|direct| direct.runs().is_empty()) {
            direct.end();
        }
    }

    /// Fails a direct body whose connection has ended, and forgets a partial frame.
    pub fn abandon(&mut self, why: &str) {
        if let Some(direct) = self.direct.take() {
            direct.fail(ErrorKind::Mpi, why);
        }
        self.partial = Vec::new();
    }

    /// Starts a body if it goes directly to its destination, and returns whether it does.
    fn starts_direct(
        &mut self,
        head: &Head,
        len: usize,
        to: &mut dyn Sink,
    ) -> Result<bool, String> {
        if head.kind != Kind::Moved || len < DIRECT {
            return Ok(false);
        }
        self.direct = Some(to.reply(head, len)?);
        Ok(true)
    }

    pub fn feed(&mut self, mut bytes: &[u8], to: &mut dyn Sink) -> Result<(), String> {
        while !bytes.is_empty() {
            if let Some(direct) = &mut self.direct {
                bytes = &bytes[direct.store(bytes)..];
                self.settle();
                continue;
            }
            if self.partial.is_empty() && bytes.len() >= FRAME {
                let (head, len) = front(bytes)?;
                if self.starts_direct(&head, len, to)? {
                    bytes = &bytes[FRAME..];
                    continue;
                }
                if let Some((body, rest)) = bytes[FRAME..].split_at_checked(len) {
                    to.message(&head, body)?;
                    bytes = rest;
                    continue;
                }
            }
            let have = self.partial.len();
            let whole = match have {
                0..FRAME => FRAME,
                _ => FRAME + front(&self.partial)?.1,
            };
            let (now, rest) = bytes.split_at(bytes.len().min(whole - have));
            self.partial.extend_from_slice(now);
            bytes = rest;
            self.take_partial(to)?;
        }
        Ok(())
    }

    fn take_partial(&mut self, to: &mut dyn Sink) -> Result<(), String> {
        if self.partial.len() < FRAME {
            return Ok(());
        }
        let (head, len) = front(&self.partial)?;
        if self.partial.len() == FRAME && self.starts_direct(&head, len, to)? {
            self.partial = Vec::new();
        } else if self.partial.len() == FRAME + len {
            // An idle connection keeps no buffer.
            let frame = std::mem::take(&mut self.partial);
            to.message(&head, &frame[FRAME..])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(Head, Vec<u8>)>);

    impl Sink for Seen {
        fn message(&mut self, head: &Head, body: &[u8]) -> Result<(), String> {
            self.0.push((*head, body.to_vec()));
            Ok(())
        }

        fn reply(&mut self, _: &Head, _: usize) -> Result<AwaitedAnswer, String> {
            Err("nothing was asked".into())
        }
    }

    fn frame(head: &Head, body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32).to_le_bytes()[..], &head.bytes(), body].concat()
    }

    #[test]
    fn frames_survive_every_division() {
        let head = |tag| Head { kind: Kind::Expected, class: 0, tag, word: 9 };
        let bodies: [&[u8]; 4] = [b"", b"x", b"", &[7; 60]];
        let sent: Vec<u8> =
            (0..).zip(bodies).flat_map(|(tag, body)| frame(&head(tag), body)).collect();
        for step in 1..=sent.len() {
            let (mut input, mut seen) = (Input::default(), Seen::default());
            sent.chunks(step).for_each(|part| input.feed(part, &mut seen).unwrap());
            let got: Vec<_> = seen.0.iter().map(|(head, body)| (head.tag, &body[..])).collect();
            let want: Vec<_> = (0..).zip(bodies).collect();
            assert_eq!(got, want, "parts of {step}");
            assert!(input.partial.capacity() == 0);
        }
    }

    #[test]
    fn invalid_frames_are_refused() {
        let feed = |bytes: &[u8]| Input::default().feed(bytes, &mut Seen::default());
        let head = Head { kind: Kind::Reply, class: 0, tag: 0, word: 0 };
        let mut long = frame(&head, &[]);
        long[..4].copy_from_slice(&(MAX_BODY as u32 + 1).to_le_bytes());
        assert!(feed(&long).unwrap_err().contains("1048601 bytes"));
        let mut strange = frame(&head, &[]);
        strange[4] = 99;
        assert!(feed(&strange).is_err());
        let answer = Head { kind: Kind::Moved, ..head };
        assert!(feed(&frame(&answer, &[0; DIRECT])).is_err(), "nothing was asked");
        assert!(feed(&frame(&answer, &[0; DIRECT])[..FRAME]).is_err());
    }
}
