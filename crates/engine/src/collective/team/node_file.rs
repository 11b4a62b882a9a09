//! A file that the members of a group on each node share.

use super::Team;
use crate::collective::call::{ElementType, Signature};
use crate::collective::kind::Kind;
use crate::collective::message_group::MessageGroup;
use crate::collective::shared_file::{self, Meeting};
use crate::error::Result;
use crate::shm::{Descriptor, SharedFile};
use crate::wait::Progress;

impl Team {
    /// Creates a file of `len` bytes on the leader of each node, and maps it on the members of the
    /// node. Each member runs `prepare` on it before all agree. Collective. Nodes may pass
    /// different lengths. Fails on all if any fails, with `Memory` without space.
    pub fn share(
        &self,
        progress: &dyn Progress,
        dir: &str,
        len: usize,
        prepare: impl Fn(&SharedFile) -> Result<()>,
    ) -> Result<SharedFile> {
        shared_file::file(&OnNodes { team: self, progress }, dir, len, prepare)
    }
}

struct OnNodes<'a> {
    team: &'a Team,
    progress: &'a dyn Progress,
}

impl Meeting for OnNodes<'_> {
    fn leads(&self) -> bool {
        self.team.leads()
    }
    fn offer(&self, mut own: Descriptor) -> Result<Descriptor> {
        let team = self.team;
        let what = || format!("a file of the {} ranks of a node", team.here.len());
        let bytes = bytemuck::bytes_of_mut(&mut own);
        let call = Signature::here(Kind::Broadcast).of(ElementType::BYTES, bytes.len()).rooted(0);
        team.run(self.progress, call, &what, |running| match team.shared_area() {
            Some(shared_area) => shared_area.broadcast(running, bytes, 0),
            None => MessageGroup {
                wire: team.wire.comm(),
                tag: team.tag as i32,
                ranks: &team.here.iter().map(|&rank| team.members[rank]).collect::<Vec<_>>(),
                me: team.place(),
                // Not counted, because some nodes do not have this circle.
                number: 0,
                running,
            }
            .broadcast(bytes, 0),
        })?;
        Ok(own)
    }
    fn agree(&self, mine: Result<()>) -> Result<()> {
        self.team.agree(self.progress, mine)
    }
}
