//! Reductions and scans: the operators and the element types.
//!
//! A reduction combines the elements of all ranks of a [`Group`](crate::Group), each with the
//! elements at the same index on the other ranks: [`reduce`](crate::Group::reduce),
//! [`all_reduce`](crate::Group::all_reduce) and
//! [`all_reduce_value`](crate::Group::all_reduce_value). A scan combines those of the ranks up to
//! the caller: [`scan`](crate::Group::scan) and [`scan_exclusive`](crate::Group::scan_exclusive).
//!
//! ```no_run
//! use portolan::Runtime;
//! use portolan::reduce::{Max, Or, Sum};
//!
//! fn main() -> portolan::Result<()> {
//!     let rt = Runtime::init()?;
//!     let world = rt.world();
//!     let found = 10 + rt.rank(); // elements that this rank has found
//!     let most = world.all_reduce_value(found as u64, Max)?;
//!     let some = world.all_reduce_value(u8::from(found > 12), Or)? != 0;
//!     // The position of this rank's elements if the ranks write one after the other.
//!     let mut begin = [found as u64];
//!     world.scan_exclusive(&mut begin, Sum)?;
//!     println!("{most} at most, {some}, from {} on", begin[0]);
//!     rt.finalize()
//! }
//! ```
//!
//! | operator | integers | floats | complex numbers |
//! |---|---|---|---|
//! | [`Sum`], [`Product`] | yes, they wrap | yes | yes |
//! | [`Min`], [`Max`] | yes | yes | |
//! | [`And`], [`Or`], [`Xor`] | yes | | |
//!
//! # Order
//! Reductions do not always combine values in rank order. The order depends on the number of ranks,
//! on their nodes and on the root, and so do the last bits of a sum of floats. All ranks of
//! [`all_reduce`](crate::Group::all_reduce) get the same bits for up to 64 KiB of data.

pub use crate::api::operator::{And, Max, Min, Operator, Or, Product, Sum, Xor};
#[doc(inline)]
pub use portolan_engine::collective::Reducible;
