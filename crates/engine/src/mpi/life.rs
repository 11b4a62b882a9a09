//! The record of who initialised MPI, the program or the library, and who has asked for its end.
//!
//! If the program initialises MPI, it also ends MPI, and a running engine is closed within
//! `MPI_Finalize` ([`super::init::at_finalize`]). If the library has initialised MPI, because one
//! of its interfaces came first, a later `MPI_Init` of the program returns success (by the crate
//! `portolan-interpose`) and makes the program a second owner. MPI then ends when both have asked
//! for it, in either order. `MPI_Initialized` and `MPI_Finalized` stay MPI's own.

use parking_lot::Mutex;
use portolan_base::thread::this_thread;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Debug, Clone, Copy)]
struct Life {
    ours: bool,
    /// The library uses MPI as an owner, and has not asked for its end.
    library: bool,
    /// The library keeps an MPI that only its services have used, for their next start.
    kept: bool,
    program: Program,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Nothing,
    Begin,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Now,
    /// MPI keeps running until the library ends it.
    Later,
    /// The program has already called `MPI_Finalize`.
    Again,
}

impl Life {
    const NEW: Life = Life { ours: false, library: false, kept: false, program: Program::Nothing };

    /// The library begins to use a running MPI. Returns whether it must ask for its end.
    fn joined(&mut self) -> bool {
        self.library = self.ours && (self.kept || self.program == Program::Begin);
        self.library
    }

    fn is_library_alone(&self) -> bool {
        self.ours && self.program == Program::Nothing
    }

    fn program_begins(&mut self) -> bool {
        let answered = self.ours && self.program == Program::Nothing;
        if answered {
            self.program = Program::Begin;
        }
        answered
    }

    fn program_ends(&mut self) -> End {
        match self.program {
            Program::Begin if self.library => {
                self.program = Program::End;
                End::Later
            }
            Program::End if self.library => End::Again,
            _ => End::Now,
        }
    }

    fn library_ends(&mut self) -> bool {
        (self.library, self.kept) = (false, false);
        self.program != Program::Begin
    }
}

static LIFE: Mutex<Life> = Mutex::new(Life::NEW);

/// The thread that initialised MPI, or 0 if unknown.
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// Also true if that thread is unknown.
pub(super) fn is_main_thread() -> bool {
    let main = MAIN.load(Ordering::Relaxed);
    main == 0 || main == this_thread()
}

static THREADED: AtomicBool = AtomicBool::new(false);

/// Whether the program or the library requested `MPI_THREAD_MULTIPLE`.
pub fn requested(multiple: bool) {
    THREADED.store(multiple, Ordering::Relaxed);
}

/// Threads of the program may call MPI concurrently, as far as the library knows.
pub fn program_is_threaded() -> bool {
    THREADED.load(Ordering::Relaxed)
}

static UNRECORDED: AtomicBool = AtomicBool::new(false);

/// The program uses a Fortran interface of MPI that does not call the C functions which the library
/// wraps: Open MPI's, and for calls without buffers the module `mpi_f08` of MPICH.
pub fn calls_unrecorded() {
    UNRECORDED.store(true, Ordering::Relaxed);
}

/// Whether traces lack MPI calls of the program, as far as the library knows.
pub fn are_calls_unrecorded() -> bool {
    UNRECORDED.load(Ordering::Relaxed)
}

pub(super) fn begun() {
    requested(false);
    *LIFE.lock() = Life { ours: true, library: true, ..Life::NEW };
}

/// The library uses an MPI that already runs. Returns whether it must ask for its end.
pub(super) fn joined() -> bool {
    LIFE.lock().joined()
}

/// Records a call of `MPI_Init` by the program or the library. Returns true if the library has
/// already initialised MPI: the call must then succeed without effect. Otherwise records the
/// calling thread as the one that initialises MPI.
pub fn program_begins() -> bool {
    let answered = LIFE.lock().program_begins();
    if !answered {
        let _ = MAIN.compare_exchange(0, this_thread(), Ordering::Relaxed, Ordering::Relaxed);
    }
    answered
}

pub fn program_ends() -> End {
    LIFE.lock().program_ends()
}

pub(crate) fn keep() {
    LIFE.lock().kept = true;
}

/// MPI must be finalised when the process exits.
pub(crate) fn is_kept() -> bool {
    LIFE.lock().kept
}

/// The library initialised MPI, and the program has called neither `MPI_Init` nor `MPI_Finalize`.
pub(crate) fn is_library_alone() -> bool {
    LIFE.lock().is_library_alone()
}

/// The library asks for the end of MPI. Returns whether it must call `MPI_Finalize`.
pub(super) fn library_ends() -> bool {
    LIFE.lock().library_ends()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: Life = Life { ours: true, library: true, kept: false, program: Program::Nothing };

    #[test]
    fn the_last_of_both_ends_mpi() {
        let mut life = BEGUN;
        assert!(life.program_begins());
        assert!(!life.program_begins());
        assert_eq!(life.program_ends(), End::Later);
        assert_eq!(life.program_ends(), End::Again);
        assert!(life.library_ends());
        assert_eq!(life.program_ends(), End::Now);

        let mut life = BEGUN;
        assert!(life.program_begins());
        assert!(!life.library_ends());
        assert_eq!(life.program_ends(), End::Now);
    }

    #[test]
    fn the_library_may_come_back() {
        let mut life = BEGUN;
        assert!(life.program_begins());
        assert!(!life.library_ends());
        assert!(life.joined());
        assert_eq!(life.program_ends(), End::Later);
        assert!(life.library_ends());
    }

    #[test]
    fn the_library_may_keep_mpi_and_use_it_again() {
        let mut life = BEGUN;
        assert!(life.is_library_alone());
        life.kept = true;
        assert!(life.joined());
        assert!(life.program_begins());
        assert!(!life.is_library_alone());
        assert_eq!(life.program_ends(), End::Later);
        assert!(!life.is_library_alone());
        assert!(life.library_ends());
        assert!(!life.joined());
    }

    #[test]
    fn without_the_other_one_decides_alone() {
        let mut life = BEGUN;
        assert_eq!(life.program_ends(), End::Now);
        assert!(life.library_ends());
        let mut life = Life::NEW;
        assert!(!life.program_begins());
        assert!(!life.joined());
        assert_eq!(life.program_ends(), End::Now);
    }
}
