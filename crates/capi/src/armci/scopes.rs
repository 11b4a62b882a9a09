//! Scopes: which ranks of a group take part in a collective call.

use portolan_base::error::{Result, fail};
use portolan_engine::collective::group::Group;
use portolan_engine::runtime::Engine;
use std::os::raw::c_int;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    All,
    Node,
    Masters,
}

impl Scope {
    pub(super) fn from_c(scope: c_int) -> Result<Scope> {
        Ok(match scope {
            0 => Scope::All,
            1 => Scope::Node,
            2 => Scope::Masters,
            _ => fail!(Argument, "scope {scope} is none of SCOPE_ALL, SCOPE_NODE, SCOPE_MASTERS"),
        })
    }

    /// Returns the ranks of `group` in the scope, as group ranks.
    pub(super) fn ranks(self, engine: &Engine, group: &Group) -> Vec<usize> {
        let node = |r: &usize| engine.topology.node_of(group.members()[*r]);
        let all = 0..group.size();
        match self {
            Scope::All => all.collect(),
            Scope::Node => all.filter(|r| node(r) == engine.topology.my_node()).collect(),
            Scope::Masters => {
                let mut seen = Vec::new();
                all.filter(|r| {
                    let new = !seen.contains(&node(r));
                    seen.push(node(r));
                    new
                })
                .collect()
            }
        }
    }
}
