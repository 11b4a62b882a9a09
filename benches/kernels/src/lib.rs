//! The kernels that compare one-sided libraries.
//!
//! Each module is a kernel: it makes the problem, runs it in several [`Version`]s, and verifies the
//! result as the definition of the kernel asks. The versions of a kernel share the problem, the
//! arithmetic and the verification, so that they differ in their communication only.
//!
//! | side | communication |
//! |---|---|
//! | [`Side::Portolan`] | the Rust interface of Portolan, as an expert uses it |
//! | [`Side::TwoSided`] | MPI's messages and collectives |
//! | [`Side::Window`] | MPI's one-sided calls in a window |
//! | [`Side::Local`] | none: the same work in a rank's own memory, as the bound |
//!
//! A version of another side uses nothing of Portolan. The program `kernels` runs it in a process
//! that does not start Portolan.
//!
//! | module | contents |
//! |---|---|
//! | [`job`] | what a version gets: ranks, barriers, sums, and the clock |
//! | [`two_sided`], [`pushes`] | MPI's messages; batches of small items made of them |
//! | [`window`] | MPI's windows |
//! | [`memory`] | operations that segments and windows have in common |
//! | [`rng`] | random numbers that are the same on every rank |

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
    /// Nothing.
    Local,
}

impl Side {
    /// All sides.
    pub const ALL: [Side; 4] = [Side::Portolan, Side::TwoSided, Side::Window, Side::Local];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Side::Portolan => "portolan",
            Side::TwoSided => "mpi",
            Side::Window => "window",
            Side::Local => "local",
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

/// Makes a [`Version`].
const fn version(
    side: Side,
    name: &'static str,
    run: fn(&Job<'_>, usize) -> Result<Outcome>,
) -> Version {
    Version { side, name, run }
}
