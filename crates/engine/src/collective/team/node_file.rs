//! A file that the members of a group on each node share.

use super::Team;
use crate::collective::call::{ElementType, Signature};
use crate::collective::kind::Kind;
use crate::collective::message_group::MessageGroup;
use portolan_base::error::{ErrorKind, Result, fail};
use portolan_base::shm::{Descriptor, SharedFile};
use portolan_base::wait::Progress;

impl Team {
    /// Creates a file of `len` bytes on the leader of each node, and maps it on the members of the
    /// node: first without a name, then, if that fails, named. Each member runs `prepare` on it
    /// before all agree. Collective. Nodes may pass different lengths. Fails on all if any fails,
    /// with `Memory` without space.
    pub fn share(
        &self,
        progress: &dyn Progress,
        dir: &str,
        len: usize,
        prepare: impl Fn(&SharedFile) -> Result<()>,
    ) -> Result<SharedFile> {
        for named in [false, true] {
            let made = match self.leads() {
                true => SharedFile::create(dir, len, named).map(Some),
                false => Ok(None),
            };
            let descriptor = match &made {
                Ok(Some(file)) => file.descriptor(),
                _ => Ok(Descriptor::none()),
            };
            let offered = descriptor.as_ref().copied().unwrap_or_else(|_| Descriptor::none());
            let offered = self.descriptor_of_leader(progress, offered)?;
            let opened = match made {
                Ok(Some(file)) => descriptor.map(|_| file),
                Ok(None) => SharedFile::open(&offered, len),
                Err(error) => Err(error),
            };
            let prepared = opened.as_ref().map_err(Clone::clone).and_then(&prepare);
            let verdict = match prepared {
                // The leader's error explains the missing file better.
                Err(_) if !self.leads() && offered.path().is_none() => Ok(()),
                other => other,
            };
            match self.agree(progress, verdict) {
                Ok(()) => {
                    return opened.map(|mut file| {
                        file.unlink();
                        file
                    });
                }
                Err(error) if named => return Err(error),
                Err(error) => log::debug!("cannot create unnamed shared memory: {error:#}"),
            }
        }
        fail!(Internal, "neither kind of shared file was tried")
    }

    /// [`Team::share`], or `None` on all members if a node lacks shared memory.
    pub fn share_if_possible(
        &self,
        progress: &dyn Progress,
        dir: &str,
        len: usize,
        prepare: impl Fn(&SharedFile) -> Result<()>,
    ) -> Result<Option<SharedFile>> {
        match self.share(progress, dir, len, prepare) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::Mismatch => Err(error),
            Err(error) => {
                log::debug!("the ranks of a node use messages: {error:#}");
                Ok(None)
            }
        }
    }

    fn descriptor_of_leader(
        &self,
        progress: &dyn Progress,
        mut own: Descriptor,
    ) -> Result<Descriptor> {
        let what = || format!("a file of the {} ranks of a node", self.here.len());
        let bytes = bytemuck::bytes_of_mut(&mut own);
        let call = Signature::here(Kind::Broadcast).of(ElementType::BYTES, bytes.len()).rooted(0);
        self.run(progress, call, &what, |running| match self.shared_area() {
            Some(shared_area) => shared_area.broadcast(running, bytes, 0),
            None => MessageGroup {
                wire: self.wire.comm(),
                tag: self.tag as i32,
                ranks: &self.here.iter().map(|&rank| self.members[rank]).collect::<Vec<_>>(),
                me: self.place(),
                // Not counted, because some nodes do not have this circle.
                number: 0,
                running,
            }
            .broadcast(bytes, 0),
        })?;
        Ok(own)
    }
}
