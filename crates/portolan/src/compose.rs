//! Compositions: sets of element copies that are described once and performed many times.
//!
//! A [`Composition`] names elements of this rank and the elements of another rank to which they are
//! copied. Compositions towards several ranks merge into one. Mapping checks all bounds and
//! prepares the copies, and a [`Composer`] performs the [`Mapped`] composition in one call. The
//! receivers count the performances that have arrived, so they need no barrier. This suits
//! exchanges that repeat, such as halos and transposes.
//!
//! ```no_run
//! use portolan::Runtime;
//! use portolan::compose::{Composer, Slice};
//!
//! fn main() -> portolan::Result<()> {
//!     let rt = Runtime::init()?;
//!     let (rows, columns) = (64, 100);
//!     let field = rt.world().allocate::<f64>(rows * columns)?; // row by row
//!     let composer = Composer::new(&rt)?;
//!     let right = (rt.rank() + 1) % rt.size();
//!     let column = |start| Slice { start, block: 1, stride: columns, count: rows };
//!     let mut edge = composer.simple(right)?;
//!     // My last column but one goes to the first column of the right neighbour.
//!     edge.add_slice(&field, column(columns - 2), &field, right, column(0))?;
//!     let edge = edge.map()?;
//!     for _ in 0..1000 {
//!         composer.sync()?; // collective: the first columns may be written
//!         composer.perform(&edge)?;
//!         composer.wait_for(1)?; // the column of the left neighbour has arrived
//!         // compute
//!     }
//!     composer.free()?;
//!     field.free()?;
//!     rt.finalize()
//! }
//! ```
//!
//! # Completion
//! - A *phase* is the time between two calls of [`Composer::sync`], which is collective over all
//!   ranks. Elements may be written from the sync on.
//! - [`Composer::perform`] starts the copies. On a node they are complete on return. For other
//!   targets the local elements must not change before the next [`Composer::wait_for`] or
//!   [`Composer::sync`].
//! - [`Composer::wait_for`] returns when the given number of performances has arrived completely at
//!   this rank since the last sync, and the performances of this rank have been sent.
//! - The copies of a performance are not ordered. The elements that a performance reads must not be
//!   among those that it, or another performance of the same phase, writes.

pub use crate::api::{Composer, Composition, CompositionKind, Loaded, Mapped, Slice};
