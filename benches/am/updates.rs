//! Random updates of a table that is distributed over the ranks, with aggregation by the library
//! and by hand.

use super::Bench;
use super::support::{Row, median};
use mpi::ffi;
use portolan::Result;
use portolan_engine::am::aggregate::Aggregator;
use portolan_engine::am::{Accept, Am, Arrival, Handler};
use std::ffi::c_void;
use std::time::Instant;

/// Words of the tables, as powers of two. One table fits in the cache, so that messages dominate.
pub const TABLES: [u32; 2] = [18, 22];

pub struct Table(pub *mut u64, pub usize);
// SAFETY: a rank runs one handler at a time, and nothing else accesses the table during updates.
unsafe impl Send for Table {}
// SAFETY: a rank runs one handler at a time, so shared references are never used concurrently.
unsafe impl Sync for Table {}

fn update(table: *mut u64, mask: usize, bytes: &[u8]) {
    for item in bytes.chunks_exact(8) {
        let value = u64::from_ne_bytes(item.try_into().expect("eight bytes"));
        // SAFETY: the mask keeps the index inside the table.
        unsafe { *table.add(value as usize & mask) ^= value };
    }
}

impl Handler for Table {
    fn arrive(&self, _: &Am, message: &Arrival<'_>) -> Result<Accept> {
        update(self.0, self.1 - 1, message.data.unwrap_or_default());
        Ok(Accept::DONE)
    }
}

pub fn next(x: u64) -> u64 {
    (x << 1) ^ if (x as i64) < 0 { 7 } else { 0 }
}

impl Bench {
    /// Returns million updates per second of all ranks, with aggregated messages.
    #[inline(never)]
    fn random_access(&self, aggregator: &Aggregator, bits: u32, n: u64, seed: u64) -> f64 {
        self.barrier();
        let begun = Instant::now();
        let mut x = seed;
        for _ in 0..n {
            x = next(x);
            aggregator.push_value(&self.engine, (x >> bits) as usize & 1, x).expect("push");
        }
        self.engine.quiesce().expect("quiesce");
        2.0 * n as f64 / begun.elapsed().as_secs_f64() / 1e6
    }

    /// Like `random_access`, with items that are aggregated by hand in MPI messages of 64 KiB.
    #[inline(never)]
    fn random_access_by_hand(&self, table: *mut u64, bits: u32, n: u64, seed: u64) -> f64 {
        const ITEMS: usize = 8192;
        let mask = (1usize << bits) - 1;
        let mut out: Vec<u64> = Vec::with_capacity(ITEMS);
        let mut into = vec![0u8; ITEMS * 8];
        self.barrier();
        let begun = Instant::now();
        let (mut x, mut sent, mut theirs_end) = (seed, 0, false);
        let mut request = None;
        let mut flying: Vec<u64> = Vec::with_capacity(ITEMS);
        let receive = |into: &mut [u8], ended: &mut bool| {
            if let Some(bytes) = self.mpi_try_receive(into) {
                update(table, mask, &into[..bytes]);
                *ended |= bytes < ITEMS * 8;
            }
        };
        while sent < n {
            x = next(x);
            sent += 1;
            if (x >> bits) as usize & 1 == self.me {
                // SAFETY: the mask keeps the index inside the table.
                unsafe { *table.add(x as usize & mask) ^= x };
                continue;
            }
            out.push(x);
            if out.len() == ITEMS {
                while !Self::mpi_done(&mut request) {
                    receive(&mut into, &mut theirs_end);
                }
                std::mem::swap(&mut out, &mut flying);
                out.clear();
                request = Some(self.mpi_start_send(&flying));
                receive(&mut into, &mut theirs_end);
            }
        }
        while !Self::mpi_done(&mut request) {
            receive(&mut into, &mut theirs_end);
        }
        // A batch that is not full marks the end.
        request = Some(self.mpi_start_send(&out));
        while !theirs_end || !Self::mpi_done(&mut request) {
            receive(&mut into, &mut theirs_end);
        }
        self.barrier();
        2.0 * n as f64 / begun.elapsed().as_secs_f64() / 1e6
    }

    fn mpi_start_send(&self, items: &[u64]) -> ffi::MPI_Request {
        let mut request = std::mem::MaybeUninit::uninit();
        // SAFETY: the caller does not change or free the items before the request is complete.
        unsafe {
            let rc = ffi::MPI_Isend(
                items.as_ptr().cast::<c_void>(),
                (items.len() * 8) as i32,
                ffi::RSMPI_UINT8_T,
                1 - self.me as i32,
                10,
                ffi::RSMPI_COMM_WORLD,
                request.as_mut_ptr(),
            );
            assert_eq!(rc, 0, "MPI_Isend");
            request.assume_init()
        }
    }

    fn mpi_done(request: &mut Option<ffi::MPI_Request>) -> bool {
        let Some(raw) = request else { return true };
        let mut flag = 0;
        // SAFETY: the request is live.
        let rc = unsafe { ffi::MPI_Test(raw, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
        assert_eq!(rc, 0, "MPI_Test");
        if flag != 0 {
            *request = None;
        }
        flag != 0
    }

    fn mpi_try_receive(&self, into: &mut [u8]) -> Option<usize> {
        let (mut flag, mut bytes) = (0, 0);
        let mut status = std::mem::MaybeUninit::<ffi::MPI_Status>::uninit();
        let peer = 1 - self.me as i32;
        // SAFETY: the out-parameters are valid for writes, and the buffer has room for any batch.
        unsafe {
            ffi::MPI_Iprobe(peer, 10, ffi::RSMPI_COMM_WORLD, &mut flag, status.as_mut_ptr());
            if flag == 0 {
                return None;
            }
            ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &mut bytes);
            ffi::MPI_Recv(
                into.as_mut_ptr().cast::<c_void>(),
                bytes,
                ffi::RSMPI_UINT8_T,
                peer,
                10,
                ffi::RSMPI_COMM_WORLD,
                ffi::RSMPI_STATUS_IGNORE,
            );
        }
        Some(bytes as usize)
    }

    pub fn updates(&self, table: *mut u64, which: usize) {
        let (bits, handler) = (TABLES[which], self.ids[3 + which]);
        let aggregator =
            Aggregator::new(&self.engine, handler, &[], 8, 64 << 10).expect("aggregator");
        let n = if self.quick { 4_000_000 } else { 30_000_000 };
        let (mut ours, mut hands) = (Vec::new(), Vec::new());
        // Every round applies the same numbers twice, so the table must be zero afterwards.
        for round in 0..if self.quick { 3 } else { 7 } {
            let seed = 0x9e37_79b9 + 7919 * self.me as u64 + round;
            ours.push(self.random_access(&aggregator, bits, n, seed));
            hands.push(self.random_access_by_hand(table, bits, n, seed));
        }
        // SAFETY: the table has at least this many words, and no update is in progress.
        let rest = unsafe { std::slice::from_raw_parts(table, 1 << bits) };
        assert!(rest.iter().all(|&word| word == 0), "updates were lost");
        let (ours, hand) = (median(ours), median(hands));
        let beside = format!("by hand over MPI {hand:.1} M/s");
        let limit = if self.over_mpi { 0.0 } else { (0.6 * hand).max(60.0) };
        let wanted = format!(">= {limit:.0} M/s");
        self.row(&Row {
            what: &format!("RandomAccess, {} MiB a rank", (8 << bits) >> 20),
            value: ours,
            unit: "M/s",
            beside: &beside,
            ratio: ours / hand,
            wanted: &wanted,
            ok: ours >= limit,
        });
    }
}

/// Allocates the largest table, with huge pages if possible, as programs with random accesses do.
pub fn table() -> Vec<u64> {
    const HUGE: usize = 2 << 20;
    let mut table = vec![0u64; 1 << TABLES[1]];
    let begin = (table.as_mut_ptr() as usize).next_multiple_of(HUGE);
    let end = (table.as_mut_ptr() as usize + size_of_val(&table[..])) / HUGE * HUGE;
    // SAFETY: the pages lie within the table. The advice changes no contents and may fail.
    unsafe { libc::madvise(begin as *mut c_void, end - begin, libc::MADV_HUGEPAGE) };
    table
}
