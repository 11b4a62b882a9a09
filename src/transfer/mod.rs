//! Parts, blocks and non-blocking transfers: the types around a [`Segment`](crate::Segment).
//!
//! [`Segment`](crate::Segment) has blocking transfers of contiguous elements. This module contains
//! the types of its other functions: the own part of a rank ([`Local`]), a range of any part with
//! known bounds ([`Remote`]), blocks of multi-dimensional arrays ([`Block`]), and transfers that
//! run while the program computes.
//!
//! ```
//! use portolan::Runtime;
//! use portolan::transfer::Block;
//!
//! fn main() -> portolan::Result<()> {
//!     let rt = Runtime::init()?;
//!     // Each rank owns a matrix of 8 rows and 10 columns.
//!     let matrix = rt.world().allocate::<f64>(80)?;
//!     let next = (rt.rank() + 1) % rt.size();
//!     // Rows 2 and 3, columns 5 to 7, of the neighbour's matrix.
//!     let block = Block::of(&[8, 10], &[2..4, 5..8])?;
//!     let (mut corner, mut row) = (vec![0.0; 6], vec![0.0; 10]);
//!     rt.scope(|scope| {
//!         scope.get_block(&matrix, next, &block, &mut corner, &Block::contiguous(0..6))?;
//!         let pending = scope.get(&matrix, next, 0, &mut row)?;
//!         // compute on something else meanwhile
//!         let _first = pending.wait()?[0]; // the row has arrived
//!         Ok(())
//!     })?; // all transfers of the scope are complete
//!     matrix.free()?;
//!     rt.finalize()
//! }
//! ```
//!
//! # Completion
//! - The end of a scope ([`Runtime::scope`](crate::Runtime::scope)) waits for all of its transfers,
//!   even if the body panics. [`Pending::wait`] waits for one transfer earlier.
//! - A transfer that [`Segment::start_get`](crate::Segment::start_get) and similar calls start owns
//!   its buffer. Dropping its [`Pending`] waits.
//! - When a get is complete, its elements are in the buffer. When a put or accumulate is complete,
//!   its source may be reused. A fence makes it visible at the target.
//! - Non-blocking transfers are not ordered with respect to each other. Wait for one before you
//!   start another on the same elements.

mod block;
mod local;
mod notify;
mod owned;
pub(crate) mod pending;
mod remote;
mod scope;
mod strided;

pub use block::Block;
pub use local::Local;
pub use pending::{Pending, PendingBuffer};
pub use remote::Remote;
pub use scope::Scope;
