//! Whether the program or the library has initialised MPI, and which of them has asked for its
//! end.
//!
//! Where the program initialises MPI, the program ends it: a running engine is closed within
//! `MPI_Finalize` ([`super::init::at_finalize`]). Where the library has begun it, because one
//! of its interfaces was initialised first, a later `MPI_Init` of the program returns
//! success (by [`super::pmpi`]) and makes the program a second owner: MPI then ends when
//! both have asked for it, in either order. `MPI_Initialized` and `MPI_Finalized` are MPI's
//! own: the first is true once the library has begun it, the second when MPI has ended.

use crate::thread::this_thread;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// MPI as far as the library has begun it.
#[derive(Debug, Clone, Copy)]
struct Life {
    /// The library has begun MPI.
    ours: bool,
    /// It has not asked for the end.
    library: bool,
    /// What the program has asked for.
    program: Program,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Nothing,
    Begin,
    End,
}

/// What a call of `MPI_Finalize` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It ends MPI.
    Now,
    /// The library will, later.
    Later,
    /// The program has called it before.
    Again,
}

impl Life {
    const NEW: Life = Life { ours: false, library: false, program: Program::Nothing };

    /// The library begins to use an MPI that runs; whether it is to ask for the end.
    fn joined(&mut self) -> bool {
        self.library = self.ours && self.program == Program::Begin;
        self.library
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
        self.library = false;
        self.program != Program::Begin
    }
}

static LIFE: Mutex<Life> = Mutex::new(Life::NEW);

fn with<R>(change: impl FnOnce(&mut Life) -> R) -> R {
    change(&mut LIFE.lock().unwrap_or_else(|e| e.into_inner()))
}

/// The thread that has initialised MPI; 0 where that is not known.
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// Whether the calling thread has initialised MPI, as far as is known.
pub(super) fn is_main_thread() -> bool {
    let main = MAIN.load(Ordering::Relaxed);
    main == 0 || main == this_thread()
}

/// The library has begun MPI.
pub(super) fn begun() {
    with(|life| *life = Life { ours: true, library: true, ..Life::NEW });
}

/// The library uses an MPI that runs already; true where the end needs it, too.
pub(super) fn joined() -> bool {
    with(Life::joined)
}

/// The program, or the library, calls `MPI_Init`. True where that is answered: MPI runs.
pub(super) fn program_begins() -> bool {
    let answered = with(Life::program_begins);
    if !answered {
        let _ = MAIN.compare_exchange(0, this_thread(), Ordering::Relaxed, Ordering::Relaxed);
    }
    answered
}

/// The program, or the library, calls `MPI_Finalize`.
pub(super) fn program_ends() -> End {
    with(Life::program_ends)
}

/// The library asks for the end. True where it is to call `MPI_Finalize`.
pub(super) fn library_ends() -> bool {
    with(Life::library_ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: Life = Life { ours: true, library: true, program: Program::Nothing };

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
