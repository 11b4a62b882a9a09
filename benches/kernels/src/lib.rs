//! The kernels that compare one-sided libraries.
//!
//! A kernel's module makes the problem, runs it in several [`Version`]s, and verifies the result as
//! the kernel's definition asks. Versions differ only in their communication.
//!
//! A version of another [`Side`] than Portolan's uses nothing of Portolan, and its process does not
//! start Portolan.

pub mod gather;
pub mod histogram;
pub mod isx;
pub mod job;
pub mod memory;
pub mod nstream;
pub mod ptrans;
pub mod pushes;
pub mod random_access;
pub mod rng;
pub mod sparse;
pub mod sparse_transpose;
pub mod stencil;
pub mod sync_p2p;
pub mod toposort;
pub mod transpose;
pub mod triangles;
pub mod two_sided;
pub mod uts;
pub mod window;

pub use job::{Job, Outcome};

/// The result of a version. Its error ends the job, so its type does not matter.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The library that a version communicates with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Portolan's Rust interface.
    Portolan,
    /// MPI's messages and collectives.
    TwoSided,
    /// MPI's windows.
    Window,
}

impl Side {
    /// All sides.
    pub const ALL: [Side; 3] = [Side::Portolan, Side::TwoSided, Side::Window];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Side::Portolan => "portolan",
            Side::TwoSided => "mpi",
            Side::Window => "window",
        }
    }
}

/// A way to run a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// The library that it communicates with.
    pub side: Side,
    /// Its name.
    pub name: &'static str,
    /// Runs the kernel with a problem of this size.
    pub run: fn(&Job<'_>, usize) -> Result<Outcome>,
}

/// A kernel.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Its name.
    pub name: &'static str,
    /// The unit of `size`.
    pub size_is: &'static str,
    /// The size to measure.
    pub size: usize,
    /// A size for tests.
    pub small: usize,
    /// The unit of its rate.
    pub unit: &'static str,
    /// Its versions.
    pub versions: &'static [Version],
}

/// All kernels.
pub const KERNELS: &[Kernel] = &[
    nstream::KERNEL,
    stencil::KERNEL_1,
    stencil::KERNEL_4,
    transpose::KERNEL,
    sync_p2p::KERNEL,
    sync_p2p::HOPS,
    sparse::KERNEL,
    histogram::KERNEL,
    gather::KERNEL,
    sparse_transpose::KERNEL,
    toposort::KERNEL,
    triangles::KERNEL,
    isx::KERNEL,
    random_access::KERNEL,
    ptrans::KERNEL,
    uts::KERNEL,
];

const fn version(
    side: Side,
    name: &'static str,
    run: fn(&Job<'_>, usize) -> Result<Outcome>,
) -> Version {
    Version { side, name, run }
}
