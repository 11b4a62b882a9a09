//! Distributed arrays: matrices and other dense arrays that span all ranks of a group.
//!
//! A [`DistArray`] has a shape, and each rank of a group owns a part of its elements. Any rank
//! reads, writes and adds to any *patch*, by global index, without the owner's help. A rank
//! computes on its own elements in place, through `ndarray` views. Operations on whole arrays,
//! ghost cells, matrix products, work sharing and files build on these transfers and views.
//!
//! ```
//! use ndarray::array;
//! use portolan::array::DistArray;
//!
//! fn main() -> std::process::ExitCode {
//!     portolan::run(|rt| -> portolan::Result<()> {
//!         let mut a = DistArray::from_elem(&rt.world(), [100, 100], 1.0)?;
//!         if rt.rank() == 0 {
//!             // Rows 10 and 11, columns 5 to 7, whoever owns them.
//!             a.put([10..12, 5..8], &array![[1., 2., 3.], [4., 5., 6.]])?;
//!         }
//!         a.sync()?; // complete, and seen by all ranks
//!         let patch = a.get([9..12, 4..8])?; // an ndarray::Array2
//!         assert_eq!(patch, array![[1., 1., 1., 1.], [1., 1., 2., 3.], [1., 4., 5., 6.]]);
//!
//!         let mut mine = a.access()?; // collective: now every rank has its own part
//!         mine.local_mut().mapv_inplace(f64::sqrt);
//!         mine.release()?;
//!         println!("{}", a.sum()?);
//!         a.free()
//!     })
//! }
//! ```
//!
//! # Collective calls
//! Creation, [`free`](DistArray::free), [`sync`](DistArray::sync), [`access`](DistArray::access)
//! and [`release`](Access::release), ghost updates, operations on whole arrays, products, and files
//! are collective: all ranks of the array's group call them in the same order. Transfers of
//! patches, `gather`, `scatter` and `fetch_add` are not collective: any rank may call them alone.
//!
//! # Completion
//! The rules are the same as for segments. A blocking put or accumulate returns when its source may
//! be reused, and a blocking get returns when its elements have arrived. Blocking operations of one
//! rank on one element take effect in program order. [`sync`](DistArray::sync) completes all
//! operations of all ranks. Operations on whole arrays begin and end with a sync. Accumulates and
//! `fetch_add` of several ranks on one element are atomic with respect to each other. A put is not
//! atomic: if two ranks write the same patch without a sync in between, the patch holds the
//! elements of one rank, of the other, or a mixture.
//!
//! # Access
//! A rank reaches its own elements during an *access*, which lies between two collective calls.
//! During an access, every rank has exclusive access to its own part: it can take views
//! ([`Access::local`], [`Access::local_mut`]) and update ghost cells, and writes of patches are
//! refused. Gets are allowed; for elements that their owner is changing, they return old or new
//! values.
//!
//! The borrow checker enforces this on one rank. A view does not outlive its access:
//!
//! ```compile_fail,E0505
//! # use portolan::array::DistArray;
//! # use ndarray::Ix2;
//! fn late(a: &mut DistArray<'_, f64, Ix2>) -> portolan::Result<f64> {
//!     let mine = a.access()?;
//!     let view = mine.local();
//!     mine.release()?;
//!     Ok(view[[0, 0]])
//! }
//! ```
//!
//! The array cannot be written while a view exists:
//!
//! ```compile_fail,E0502
//! # use portolan::array::DistArray;
//! # use ndarray::{Ix1, array};
//! fn meanwhile(a: &mut DistArray<'_, f64, Ix1>) -> portolan::Result<()> {
//!     let mut mine = a.access()?;
//!     let mut view = mine.local_mut();
//!     a.put([0..2], &array![1.0, 2.0])?;
//!     view[0] = 3.0;
//!     mine.release()
//! }
//! ```
//!
//! The type system cannot check what *other* ranks do. The safety of views relies on all ranks
//! making the same collective calls. The program must ensure that two ranks do not write one
//! element between two syncs. A run with `PORTOLAN_CHECK=1` detects such races: the next collective
//! call on the array returns an error on all ranks, which names both source lines. The check takes
//! barriers of the array's group and of the world into account. It also reports accesses that only
//! flags or mutexes order.
//!
//! # Distributions
//! [`Distribution`] offers blocks over a grid of ranks (chosen or given), blocks of rows, blocks
//! with explicit bounds, and block-cyclic layouts. A patch is split into one transfer for each rank
//! that owns elements of it, or up to three along each axis with a block-cyclic layout. All
//! transfers are in flight at once.
//!
//! # Errors
//! Invalid arguments are detected before any element moves. The error names the array, its shape,
//! and the patch or index.

// `dist_array` holds the handle. `distribution` and `axis` map indices to owners and do not
// communicate. `views` transfers `ndarray` views, `exclusive` gives owners access to their parts, `tiles` is work sharing,
// and `check` the race detector.

mod access;
mod axis;
mod check;
mod copies;
mod dist_array;
mod distribution;
mod exclusive;
mod fresh_array;
mod ghosts;
mod indices;
pub(crate) mod npy;
mod patch;
mod product;
mod reductions;
mod scoped;
pub(crate) mod several;
mod stencil;
#[cfg(test)]
mod tests;
mod tiles;
mod transfers;
mod tree;
mod views;
mod whole;

pub use access::Access;
pub use dist_array::{Boundary, DistArray, Options};
pub use distribution::Distribution;
pub use ghosts::GhostUpdate;
pub use npy::NpyElement;
pub use patch::Patch;
pub use product::{Matmul, MatrixDim};
pub use reductions::Extremum;
pub use tiles::{Tile, Tiles};
pub use tree::Magnitude;
