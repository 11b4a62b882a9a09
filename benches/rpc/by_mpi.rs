//! The references that use MPI messages.

use super::Bench;
use mpi::ffi;
use std::ffi::c_void;
use std::time::Instant;

impl Bench {
    /// Returns million exchanges per second: 64 messages of 8 bytes there, then 64 back.
    pub fn mpi_many(&self, n: u64) -> f64 {
        const FLIGHTS: usize = 64;
        let mut requests: Vec<ffi::MPI_Request> = Vec::with_capacity(2 * FLIGHTS);
        let (out, mut into) = ([1u64; FLIGHTS], [0u64; FLIGHTS]);
        let rounds = n as usize / FLIGHTS;
        self.barrier();
        let begun = Instant::now();
        for _ in 0..rounds {
            for place in &mut into {
                requests.push(self.mpi_start(std::ptr::from_mut(place).cast(), 8, false));
            }
            if self.me == 1 {
                mpi_wait_all(&mut requests);
            }
            for item in &out {
                requests.push(self.mpi_start(std::ptr::from_ref(item).cast_mut().cast(), 8, true));
            }
            mpi_wait_all(&mut requests);
        }
        (rounds * FLIGHTS) as f64 / begun.elapsed().as_secs_f64() / 1e6
    }

    /// Returns the nanoseconds of an MPI message, which is first copied from `written` if given,
    /// and its answer of 8 bytes.
    pub fn mpi_round_trip(&self, buffer: &mut [u8], written: Option<&[u8]>, n: u32) -> f64 {
        const ANSWER: usize = 8;
        self.barrier();
        let begun = Instant::now();
        for _ in 0..n {
            let whole = buffer.len();
            if self.me == 0 {
                if let Some(bytes) = written {
                    buffer.copy_from_slice(bytes);
                }
                self.mpi_move(&mut buffer[..whole], true);
                self.mpi_move(&mut buffer[..ANSWER], false);
            } else {
                self.mpi_move(&mut buffer[..whole], false);
                self.mpi_move(&mut buffer[..ANSWER], true);
            }
        }
        begun.elapsed().as_secs_f64() / f64::from(n) * 1e9
    }

    pub fn mpi_move(&self, bytes: &mut [u8], send: bool) {
        let (at, count) = (bytes.as_mut_ptr().cast::<c_void>(), bytes.len() as i32);
        let peer = 1 - self.me as i32;
        // SAFETY: `bytes` is valid for reads and writes of `count` bytes, and MPI is running.
        let rc = unsafe {
            let (kind, comm) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
            match send {
                true => ffi::MPI_Send(at, count, kind, peer, 9, comm),
                false => ffi::MPI_Recv(at, count, kind, peer, 9, comm, ffi::RSMPI_STATUS_IGNORE),
            }
        };
        assert_eq!(rc, 0, "MPI_Send or MPI_Recv");
    }

    pub fn mpi_start(&self, at: *mut c_void, bytes: i32, send: bool) -> ffi::MPI_Request {
        let mut request = std::mem::MaybeUninit::uninit();
        let peer = 1 - self.me as i32;
        // SAFETY: the caller keeps the bytes valid until the request is complete.
        unsafe {
            let (kind, comm) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_COMM_WORLD);
            let rc = match send {
                true => ffi::MPI_Isend(at, bytes, kind, peer, 10, comm, request.as_mut_ptr()),
                false => ffi::MPI_Irecv(at, bytes, kind, peer, 10, comm, request.as_mut_ptr()),
            };
            assert_eq!(rc, 0, "MPI_Isend or MPI_Irecv");
            request.assume_init()
        }
    }
}

fn mpi_wait_all(requests: &mut Vec<ffi::MPI_Request>) {
    let mut statuses = Vec::<ffi::MPI_Status>::with_capacity(requests.len());
    // SAFETY: the requests are live, and `statuses` has room for one status per request.
    let rc = unsafe {
        ffi::MPI_Waitall(requests.len() as i32, requests.as_mut_ptr(), statuses.as_mut_ptr())
    };
    assert_eq!(rc, 0, "MPI_Waitall");
    requests.clear();
}
