//! Internals that the crate's own tests, benches, fuzz targets and `portolan-info` need.
//!
//! They are not part of the interface and change with the sources. The modules have the names of
//! the crate's modules.

pub mod am {
    pub use crate::am::{
        Accept, Am, Arrival, Data, Destination, Handler, HandlerId, Hook, MAX_HEADER, Signal,
        Signals, Then,
    };
    pub mod aggregate {
        pub use crate::am::aggregate::Aggregator;
    }
    pub mod lock {
        pub use crate::am::lock::Hold;
    }
    pub mod wire {
        pub use crate::am::wire::{header, source, split};
    }
}
pub mod any_memory {
    pub use crate::any_memory::Span;
}
pub mod api {
    use crate::api::am::{Handlers, Messages};
    use crate::error::Result;
    use crate::runtime::Engine;

    /// Registration of message types in an engine that a test started itself. The messages must not
    /// be used after the engine has stopped.
    pub trait RegisterIn {
        fn register_in(self, engine: &Engine) -> Result<Messages<'_>>;
    }

    impl RegisterIn for Handlers {
        fn register_in(self, engine: &Engine) -> Result<Messages<'_>> {
            Handlers::register_in(self, engine)
        }
    }

    /// Returns the typed interface of an engine that a test started itself and will stop.
    pub fn runtime(engine: &std::sync::Arc<Engine>) -> crate::Runtime {
        crate::Runtime::over(engine.clone())
    }

    /// Returns the engine of a runtime.
    pub fn engine(runtime: &crate::Runtime) -> &Engine {
        runtime.engine()
    }
}
#[cfg(feature = "array")]
pub mod array {
    pub mod npy {
        pub use crate::array::npy::{Header, decode, encode};
    }
}
pub mod atomics {
    pub use crate::atomics::Rmw;
    pub mod mutex {
        pub use crate::atomics::mutex::MutexSet;
    }
}
pub mod collective {
    pub use crate::collective::{Element, Operator, agree, allgather, barrier, broadcast, reduce};
}
pub mod compose {
    pub use crate::compose::{Blocks, Composer, Composition, Kind, Trust};
    pub mod file {
        pub use crate::compose::file::{Place, crc, encode, place_of, read};
    }
}
pub mod config {
    pub use crate::config::{AmChoice, Config, PathChoice, ThreadChoice};
}
pub mod group {
    pub use crate::group::Group;
}
pub mod layout {
    pub use crate::layout::{Dim, Shape, Side, Vector};
}
pub mod memory {
    pub mod brlock {
        pub use crate::memory::brlock::is_reading;
    }
    pub mod free_list {
        pub use crate::memory::free_list::FreeList;
    }
    pub mod piece_index {
        pub use crate::memory::piece_index::{Piece, PieceIndex};
    }
    pub mod segment {
        pub use crate::memory::segment::{Purpose, Segment};
    }
    pub mod slab {
        pub use crate::memory::slab::KEEP_EMPTY_BYTES;
    }
}
pub mod mpi {
    pub use crate::mpi::{Comm, Flavour, Requests};
    pub mod init {
        pub use crate::mpi::init::{Started, ThreadLevel, abort, is_running, library_version};
    }
    pub mod p2p {
        pub use crate::mpi::p2p::{improbe, isend};
    }
}
pub mod mutation {
    pub use crate::mutation::Fault;
    #[cfg(feature = "mutations")]
    pub use crate::mutation::put_back;
}
pub mod path {
    pub use crate::path::Path;
    pub mod kernel {
        pub use crate::path::kernel::{Scale, accumulate};
    }
    pub mod ops {
        pub use crate::path::ops::{Rmw, TransferKind};
    }
    pub mod two_sided {
        pub use crate::path::two_sided::MOST_IN_FLIGHT;
        pub mod wire {
            pub use crate::path::two_sided::wire::{
                MAX_HEAD, RequestHeader, RequestKind, blocks, decode, encode, head_len,
            };
        }
    }
}
pub mod peer {
    pub use crate::peer::CompletionCounter;
}
pub mod rpc {
    pub mod hg {
        pub mod registry {
            pub use crate::rpc::hg::registry::check_of;
        }
        pub mod wire {
            pub use crate::rpc::hg::wire::{ANSWER, Answer, Parsed, REQUEST, Request};
        }
    }
    pub mod na {
        pub use crate::rpc::na::class_table::inject;
        pub mod dynamic {
            pub mod greeting {
                pub use crate::rpc::na::dynamic::greeting::{await_welcome, examine, introduce};
            }
            pub mod secret {
                pub use crate::rpc::na::dynamic::secret::{Key, Token};
            }
            pub mod service {
                pub use crate::rpc::na::dynamic::service::{NAMES, Named, read, write};
            }
        }
        pub mod wire {
            pub use crate::rpc::na::wire::Head;
        }
    }
}
pub mod runtime {
    pub use crate::runtime::{Engine, current, current_arc, is_running};
}
pub mod shm {
    pub use crate::shm::room_in;
}
pub mod topology {
    pub use crate::topology::host_name;
}
pub mod trace {
    pub use crate::trace::Observer;
}
pub mod transfer {
    pub use crate::transfer::{Handle, TransferKind};
}
pub mod wait {
    pub use crate::wait::{Boot, Progress};
}
pub mod watchdog {
    pub use crate::watchdog::configure;
}
