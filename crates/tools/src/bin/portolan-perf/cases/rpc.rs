//! RPC calls; in some, the server pulls the client's memory. The targets serve until every origin
//! has reported its end by a call of the stop function.

use crate::bounds::{copies, two_sided};
use crate::lab::{ByteString, Contender, Lab, Library, RpcServer, get_or_create};
use crate::plan::Case;
use crate::result::Result;
use portolan::rpc::bulk::{Bulk, Permission};
use portolan::rpc::{Address, Handle, Rpc};
use serde::Serialize;
use std::time::Duration;

/// Returns a contender that starts a window of calls with this input and waits for their replies,
/// at each target in turn.
fn calls<'a, I: Serialize + 'a>(
    lab: &'a Lab<'_>,
    case: Case,
    window: usize,
    (rpc, input): (impl Fn(&'a RpcServer) -> &'a Rpc<I, ()>, I),
) -> Result<Contender<'a>> {
    let server = get_or_create(&lab.resources.server, || {
        RpcServer::start(lab.rt, Duration::from_millis(if lab.is_crowded() { 10 } else { 0 }))
    })?;
    let targets = lab.targets(case.pattern);
    let origins = case.pattern.origins(lab.size());
    let callers = origins
        .iter()
        .filter(|&&origin| case.pattern.targets(origin, lab.size()).contains(&lab.me()))
        .count();
    let addresses: Vec<Address> = targets
        .iter()
        .map(|&rank| server.class.rank(rank))
        .collect::<std::result::Result<_, _>>()?;
    let windows: Vec<Vec<Handle<I, ()>>> = addresses
        .iter()
        .map(|to| (0..window).map(|_| server.context.handle(to, rpc(server))).collect())
        .collect();
    let body = move |n: usize| -> Result<()> {
        for turn in (0..n).filter(|_| !windows.is_empty()) {
            let handles = &windows[turn % windows.len()];
            handles.iter().try_for_each(|handle| handle.start(&input))?;
            handles.iter().try_for_each(|handle| server.wait(handle))?;
        }
        for to in &addresses {
            let stop = server.context.handle(to, &server.stop);
            stop.start(&())?;
            server.wait(&stop)?;
        }
        server.serve(callers)
    };
    Ok(Contender::new("portolan", Library::Portolan, true, window, body))
}

pub(super) fn call<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let input = ByteString(vec![1; case.bytes]);
    let mut all = vec![calls(lab, case, 1, (|server: &'a RpcServer| &server.take, input))?];
    all.extend(two_sided::round_trips(lab, case, (case.bytes, 0), 1));
    Ok(all)
}

pub(super) fn rate<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let (window, input) = (case.window(), ByteString(vec![1; case.bytes]));
    let mut all = vec![calls(lab, case, window, (|server: &'a RpcServer| &server.take, input))?];
    all.extend(two_sided::windows(lab, case, window));
    Ok(all)
}

pub(super) fn bulk<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let memory = Bulk::allocate(&[case.bytes], Permission::ReadOnly)?;
    let mut all = vec![calls(lab, case, 1, (|server: &'a RpcServer| &server.pull, memory))?];
    all.extend(copies(lab, case, 1));
    all.extend(two_sided::round_trips(lab, case, (case.bytes, 0), 1));
    Ok(all)
}
