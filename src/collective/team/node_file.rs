//! A file that the members on each node share.

use super::Team;
use crate::collective::call::{ElementType, Kind, Signature};
use crate::collective::circle::Circle;
use crate::collective::share::{self, Meeting};
use crate::error::Result;
use crate::shm::{Descriptor, SharedFile};
use crate::wait::Progress;

impl Team {
    /// A file of `len` bytes that the leader of each node makes and the members on its node
    /// map; `prepare` is what each does with it before all agree that it is there.
    /// Collective. Nodes may give different lengths.
    ///
    /// # Errors
    /// `Memory` on all members where it cannot be had on one.
    pub(crate) fn share<P: Progress + ?Sized>(
        &self,
        progress: &P,
        dir: &str,
        len: usize,
        prepare: impl Fn(&SharedFile) -> Result<()>,
    ) -> Result<SharedFile> {
        share::file(&OnNodes { team: self, progress }, dir, len, prepare)
    }
}

/// How the members on each node get a file in common.
struct OnNodes<'a, P: Progress + ?Sized> {
    team: &'a Team,
    progress: &'a P,
}

impl<P: Progress + ?Sized> Meeting for OnNodes<'_, P> {
    fn leads(&self) -> bool {
        self.team.leads()
    }
    fn offer(&self, mut own: Descriptor) -> Result<Descriptor> {
        let team = self.team;
        let what = || format!("a file of the {} ranks of a node", team.here.len());
        let bytes = bytemuck::bytes_of_mut(&mut own);
        let call = Signature::here(Kind::Broadcast).of(ElementType::BYTES, bytes.len()).rooted(0);
        team.run(self.progress, call, &what, |running| match team.board() {
            Some(board) => board.broadcast(running, bytes, 0),
            None => Circle {
                wire: team.wire.comm(),
                tag: team.tag as i32,
                ranks: &team.here.iter().map(|&rank| team.members[rank]).collect::<Vec<_>>(),
                me: team.place(),
                // Not every node has such a circle, so it does not count.
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
