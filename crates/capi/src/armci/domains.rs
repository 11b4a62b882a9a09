//! Locality domains: which ranks share a node.

use crate::boundary::reported;
use crate::boundary::{export, guard};
use portolan_base::error::{Error, Result, fail};
use portolan_engine::runtime::{Engine, current};
use std::os::raw::{c_int, c_ulong};

use super::types::{self, ArmciGroup};

fn negative(error: &Error) -> c_int {
    -reported(error)
}

fn ask(call: &'static str, domain: c_int, body: impl FnOnce(&Engine) -> Result<usize>) -> c_int {
    guard(call, negative, || {
        if domain != 0 {
            fail!(Argument, "domain {domain} is not ARMCI_DOMAIN_SMP");
        }
        Ok(c_int::try_from(body(current()?)?).unwrap_or(c_int::MAX))
    })
}

fn node(engine: &Engine, id: c_int) -> Result<usize> {
    match usize::try_from(id) {
        Err(_) => Ok(engine.topology.my_node()),
        Ok(id) if id < engine.topology.nodes() => Ok(id),
        Ok(id) => fail!(Argument, "node {id} of {}", engine.topology.nodes()),
    }
}

export! {
    armci_domain_nprocs(domain: c_int, id: c_int) -> c_int =
        ask(domain, |e| Ok(e.topology.ranks_of(node(e, id)?).len()));

    armci_domain_count(domain: c_int) -> c_int = ask(domain, |e| Ok(e.topology.nodes()));

    armci_domain_id(domain: c_int, glob_proc_id: c_int) -> c_int = ask(domain, |e| {
        let rank = types::rank(glob_proc_id)?;
        e.check_rank(rank)?;
        Ok(e.topology.node_of(rank))
    });

    armci_domain_glob_proc_id(
        domain: c_int, id: c_int, loc_proc_id: c_int,
    ) -> c_int = ask(domain, |e| {
        let ranks = e.topology.ranks_of(node(e, id)?);
        match ranks.get(types::rank(loc_proc_id)?) {
            Some(&rank) => Ok(rank),
            None => fail!(Rank, "rank {loc_proc_id} of a node with {}", ranks.len()),
        }
    });

    armci_domain_my_id(domain: c_int) -> c_int = ask(domain, |e| Ok(e.topology.my_node()));

    armci_domain_same_id(domain: c_int, proc: c_int) -> c_int = ask(domain, |e| {
        let rank = types::rank(proc)?;
        e.check_rank(rank)?;
        Ok(usize::from(e.topology.same_node(e.rank(), rank)))
    });

    ARMCI_Uses_shm() -> c_int = guard(|_| 0, || Ok(c_int::from(current()?.memory.policy().direct)));

    ARMCI_Uses_shm_grp(group: *mut ArmciGroup) -> c_int = guard(|_| 0, || {
        let engine = current()?;
        // SAFETY: the caller guarantees that `group` is valid.
        unsafe { super::group_table::find(engine, group) }?;
        Ok(c_int::from(engine.memory.policy().direct))
    });

    /// Only logs the value, because segments are limited by the machine's memory alone.
    ARMCI_Set_shm_limit(shmemlimit: c_ulong) {
        log::info!(
            "ARMCI_Set_shm_limit({shmemlimit}): segments are limited by the machine's memory only"
        );
    }
}
