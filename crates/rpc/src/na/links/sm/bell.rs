//! The bell of a class in shared memory. Peers report in it that they have written, so that one
//! cache line is polled for all connections. A peer that finds the class asleep writes its eventfd:
//! the threads of a class sleep in a poller, because they wait for sockets too.

use super::shared::Bits;
use crate::na::links::poller;
use portolan_base::shm::{Mapping, SharedFile};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};

const SIZE: usize = 4096;

type Shared = Bits<8>;

const _: () = assert!(size_of::<Shared>() <= SIZE);

#[derive(Debug)]
pub(super) struct Bell(Mapping);

impl Bell {
    /// Creates a bell. Returns it with the descriptor to pass to peers.
    pub fn create() -> io::Result<(Bell, OwnedFd)> {
        let file = SharedFile::sealed(SIZE).map_err(io::Error::other)?;
        let (mapping, file) = file.into_parts();
        Ok((Bell(mapping), file.into()))
    }

    pub fn open(file: OwnedFd) -> io::Result<Bell> {
        Mapping::sealed(&File::from(file), SIZE).map(Bell).map_err(io::Error::other)
    }

    /// Reports peer `n`, and wakes the class through `waker` if a thread sleeps.
    #[inline]
    pub fn ring(&self, n: u32, waker: impl AsFd) {
        Shared::ring(self, n, || poller::wake(waker.as_fd()));
    }
}

impl Deref for Bell {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: the mapping has `SIZE` bytes and is aligned to a page. Its contents are atomics,
        // and every value of an atomic is valid.
        unsafe { &*self.0.base().cast() }
    }
}
