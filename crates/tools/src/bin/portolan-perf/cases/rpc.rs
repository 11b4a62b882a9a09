//! RPC calls; in some, the server pulls the client's memory. The targets serve until every origin
//! has reported its end by a call of the stop function.

use crate::Result;
use crate::bounds::{copies, two_sided};
use crate::lab::{ByteString, Contender, Lab, Library, RpcServer, get_or_create};
use crate::plan::Case;
use portolan::rpc::bulk::{Access, Bulk};
use portolan::rpc::{Address, Handle, Rpc};
use serde::Serialize;
use std::time::Duration;

/// Returns a contender that calls a function with this input, at each target in turn.
fn calls<'a, I: Serialize + 'a>(
    lab: &'a Lab<'_>,
    case: Case,
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
    let handles: Vec<Handle<I, ()>> =
        addresses.iter().map(|to| server.context.handle(to, rpc(server))).collect();
    let body = move |n: usize| -> Result<()> {
        for turn in (0..n).filter(|_| !handles.is_empty()) {
            server.ask(&handles[turn % handles.len()], &input)?;
        }
        for to in &addresses {
            server.ask(&server.context.handle(to, &server.stop), &())?;
        }
        server.serve(callers)
    };
    Ok(Contender::new("portolan", Library::Portolan, true, 1, body))
}

pub(super) fn call<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let input = ByteString(vec![1; case.bytes]);
    let mut all = vec![calls(lab, case, (|server: &'a RpcServer| &server.take, input))?];
    all.extend(two_sided::round_trips(lab, case, (case.bytes, 0), 1));
    Ok(all)
}

pub(super) fn bulk<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let memory = Bulk::allocate(&[case.bytes], Access::ReadOnly)?;
    let mut all = vec![calls(lab, case, (|server: &'a RpcServer| &server.pull, memory))?];
    all.extend(copies(lab, case, 1));
    all.extend(two_sided::round_trips(lab, case, (case.bytes, 0), 1));
    Ok(all)
}
