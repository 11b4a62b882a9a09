//! The loss of a peer.

use super::{ClassShared, Entry, KeptOutput};
use crate::failure::Status;
use crate::hg::context::Work;
use crate::hg::payload::Payload;
use crate::na::address::Peer;

impl ClassShared {
    /// Ends what waits for a peer that is gone: its calls fail with `HOSTUNREACH`, and outputs that
    /// were promised to it are dropped. Pulls end with the error of their transfer.
    pub(super) fn end_with(&self, peer: Peer) {
        let _handing = self.hand_over();
        let gone = {
            let mut calls = self.calls.lock();
            let of = |(token, entry): (u64, &Entry)| {
                let (Entry::Call(_, callee) | Entry::Cancelled(_, callee)) = entry;
                (*callee == peer).then_some(token)
            };
            let tokens: Vec<u64> = calls.iter().filter_map(of).collect();
            let gone = tokens.into_iter().filter_map(|token| Some((token, calls.remove(token)?)));
            gone.collect::<Vec<(u64, Entry)>>()
        };
        let origins = gone.into_iter().filter_map(|(token, entry)| match entry {
            Entry::Call(origin, _) => Some(origin),
            Entry::Cancelled(..) => {
                self.cancelled.lock().remove(token);
                None
            }
        });
        for origin in origins {
            origin.complete(Status::HOSTUNREACH, Payload::Empty);
        }
        let gone = {
            let mut promised = self.promised.lock();
            let of = promised.iter().filter(|(_, promised)| promised.peer == peer);
            let tokens: Vec<u64> = of.map(|(token, _)| token).collect();
            let gone = tokens.into_iter().filter_map(|token| promised.remove(token));
            gone.collect::<Vec<KeptOutput>>()
        };
        let answered = gone.into_iter().filter_map(|gone| self.end_promise(gone));
        for (context, then) in answered {
            context.push(Work::Run(then));
        }
        drop(self.shares.give_up(Some(peer))); // the answers are lost too
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hg::origin::Origin;
    use crate::hg::target::Target;
    use crate::hg::{Class, Listen};
    use crate::na::class::Upper;
    use crate::proc::Encoded;
    use parking_lot::Mutex;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    #[test]
    fn calls_end_with_their_peer() {
        let class = Class::init("self", Listen::Yes).unwrap();
        let context = class.context().unwrap();
        // The server keeps its calls and answers none of them.
        let kept: Arc<Mutex<Vec<Arc<Target>>>> = Arc::default();
        let keep = kept.clone();
        let serve = move |target| {
            keep.lock().push(target);
            Status::SUCCESS
        };
        let functions = &class.shared.functions;
        let function = functions.add("never", Some(Arc::new(serve)), None).unwrap();
        let (sender, ended) = mpsc::channel();
        let mut origins = Vec::new();
        for _ in 0..3 {
            let sender = sender.clone();
            let origin = Origin::new(&context.shared, class.own_address(), function.clone());
            let then = move |origin: &Arc<Origin>| sender.send(origin.status()).unwrap();
            origin.forward(|_: &mut [u8], _| Ok(Encoded::Fits(0)), Some(Box::new(then))).unwrap();
            origins.push(origin);
        }
        context.trigger(10);
        assert_eq!(kept.lock().len(), 3);
        origins[2].cancel();
        class.shared.lost(Peer::Rank(5)); // another peer
        class.shared.lost(Peer::Own);
        class.shared.lost(Peer::Own);
        assert_eq!(context.trigger(10), 3);
        let ended: Vec<Status> = ended.try_iter().collect();
        assert_eq!(ended, [Status::CANCELED, Status::HOSTUNREACH, Status::HOSTUNREACH]);
        // A late answer changes nothing.
        kept.lock().clear();
        assert_eq!(context.trigger(10), 0);
        assert_eq!(origins[0].status(), Status::HOSTUNREACH);
        drop((origins, function, context));
        class.finalize().unwrap();
    }

    #[test]
    fn an_answer_to_an_origin_that_has_ended_succeeds() {
        let (server, client) =
            (Class::init("tcp", Listen::Yes).unwrap(), Class::init("tcp", Listen::No).unwrap());
        let (serving, calling) = (server.context().unwrap(), client.context().unwrap());
        let kept: Arc<Mutex<Option<Arc<Target>>>> = Arc::default();
        let keep = kept.clone();
        let serve = move |target| {
            *keep.lock() = Some(target);
            Status::SUCCESS
        };
        server.shared.functions.add("keep", Some(Arc::new(serve)), None).unwrap();
        let function = client.shared.functions.add("keep", None, None).unwrap();
        let to = client.lookup(&server.address_text(&server.own_address())).unwrap();
        let origin = Origin::new(&calling.shared, to, function.clone());
        origin.forward(|_: &mut [u8], _| Ok(Encoded::Fits(0)), None).unwrap();
        let turn = |context: &crate::hg::Context| {
            context.progress(Duration::from_millis(5)).unwrap();
            context.trigger(10);
        };
        while kept.lock().is_none() {
            turn(&calling);
            turn(&serving);
        }
        origin.cancel();
        turn(&calling);
        drop((origin, function, calling));
        client.finalize().unwrap();
        let target = kept.lock().take().unwrap();
        let (sender, answered) = mpsc::channel();
        let then = Box::new(move || sender.send(()).unwrap());
        turn(&serving);
        target.answer(|_: &mut [u8], _| Ok(Encoded::Fits(0)), Some(then)).unwrap();
        turn(&serving);
        assert_eq!(answered.try_recv(), Ok(()));
        drop((target, serving));
        server.finalize().unwrap();
    }
}
