//! Distributed arrays: a matrix, or any dense array, that is one thing on all ranks.
//!
//! A [`DistArray`] has a shape, and each rank of a group owns a part of its elements. Any rank reads,
//! writes and adds to any *patch*, by global index, without the owner's help. The elements that a
//! rank owns it computes on as `ndarray` views, with nothing copied. Operations on whole arrays,
//! ghost cells, products of matrices, sharing of work and files stand on that.
//!
//! ```no_run
//! use ndarray::array;
//! use portolan::array::DistArray;
//!
//! fn main() -> std::process::ExitCode {
//!     portolan::run(|rt| -> portolan::Result<()> {
//!         let mut a = DistArray::<f64, _>::new(&rt.world(), [100, 100])?; // zeros
//!         a.fill(1.0)?;
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
//! # What is collective
//! Creation, [`free`](DistArray::free), [`sync`](DistArray::sync), [`access`](DistArray::access) and
//! [`release`](Access::release), ghost updates, operations on whole arrays, products, and files:
//! all ranks of the array's group call them in the same order. Transfers of patches, `gather`,
//! `scatter` and `read_inc` are called by one rank alone.
//!
//! # When a transfer is done
//! As for segments: a blocking put or accumulate returns when its source may be reused, a get when
//! the elements are here; blocking operations of one rank on one element take effect in program
//! order; [`sync`](DistArray::sync) completes everything for all ranks. Operations on whole arrays
//! begin and end with one. Accumulates and `read_inc` of several ranks to one element are atomic
//! against each other. A put is not: two ranks that write one patch without a sync between leave
//! one's elements, or the other's, or a mixture.
//!
//! # Access
//! Own elements are reached in an *access*, which lies between two collective calls. While it lasts
//! every rank has its own part for itself: there are views of it ([`Access::local`],
//! [`Access::local_mut`]), ghost cells may be updated, and writes of patches are refused. Gets
//! are allowed; of elements that their owner is changing they bring old or new ones.
//!
//! The borrow checker knows this on one rank. A view does not outlive the access:
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
//! and nothing is put while one is there:
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
//! What types cannot know is what *other* ranks do. That they make the same collective calls is the
//! rule on which the safety of views rests, as on every rank's word. That two ranks do not write one
//! element between two syncs is the program's business: a run with `PORTOLAN_CHECK=1` finds it, and the next collective call on the array returns an error on all
//! ranks with both lines of source. It knows barriers of the array and of its group; accesses that
//! are ordered by flags or mutexes alone it reports as well.
//!
//! # Distributions
//! [`Distribution`] has blocks over a grid of ranks that is chosen or given, rows, blocks with
//! explicit bounds, and blocks that are dealt out in turns. A patch is cut into one transfer for each
//! rank that owns elements of it, and all of them are under way at once. Where blocks are dealt out in
//! turns they are up to three along each axis for each owner: its full blocks, and the two ends.
//!
//! # Errors
//! Every error names the array, its shape, and the patch or index. Nothing has moved then. A panic or
//! an error that ends one rank ends the job with its message, as everywhere ([`crate::run`]).
//!
//! | module | owns |
//! |---|---|
//! | `array` | the handle: creation, freeing, questions |
//! | `distribution`, `axis` | who owns what: pure |
//! | `patch` | which elements |
//! | `transfers`, `scoped` | get, put, accumulate of patches |
//! | `indices` | lists of elements, counters |
//! | `access` | views of own elements |
//! | `ghosts`, `stencil` | ghost cells |
//! | `whole`, `reductions`, `copies` | operations on whole arrays |
//! | `product` | products of matrices |
//! | `tiles` | sharing of work |
//! | `npy` | files |
//! | `check` | the finder of races |
//! | `common` | what all of these use |

mod access;
#[allow(clippy::module_inception, reason = "the file of the type that the module is about")]
mod array;
mod axis;
mod check;
mod common;
mod copies;
mod distribution;
mod ghosts;
mod indices;
pub(crate) mod npy;
mod patch;
mod product;
mod reductions;
mod scoped;
mod stencil;
#[cfg(test)]
mod tests;
mod tiles;
mod transfers;
mod whole;

pub use crate::api::pending_array::PendingArray;
pub use crate::api::views::PendingView;
pub use access::Access;
pub use array::{DistArray, Options};
pub use distribution::Distribution;
pub use ghosts::GhostUpdate;
pub use npy::NpyElement;
pub use patch::Patch;
pub use reductions::Magnitude;
pub use tiles::{Tile, Tiles};
