//! The engine of Portolan: memory that ranks share, transfers, atomic operations, collectives and
//! active messages. All interfaces of Portolan use it. This is an internal crate of the crate
//! `portolan`: its public items serve the other crates of the workspace, and change with them.
//! `ARCHITECTURE.md` describes the layers.

pub mod am;
pub mod any_memory;
pub mod atomics;
pub mod collective;
pub mod core;
pub mod memory;
pub mod mpi;
pub mod ops;
pub mod path;
pub mod runtime;
pub mod topology;
pub mod transfer;
