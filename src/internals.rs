//! Items for the tests and tools of the workspace, and for bindings to other languages. They are not
//! part of the interface.

pub mod binding {
    #[cfg(feature = "array")]
    pub use crate::array::several::{
        AnyArray, access_all, are_distributed_alike, placed_like, release_all,
    };
    #[cfg(feature = "array")]
    pub use crate::binding::resume;
    pub use crate::binding::{
        agree_on_ranks, caller, finalize_borrowed, interrupted, keeps_mapped, ranks_of_color,
    };
    pub use crate::element::sealed::Sealed;
    pub use portolan_engine::path::kernel::Scale;
}

#[cfg(feature = "array")]
pub mod array {
    pub mod npy {
        pub use crate::array::npy::{Header, decode, encode};
    }
}

use crate::messages::{Handlers, Messages};
use portolan_base::error::Result;
use portolan_engine::runtime::Engine;

/// Registration of message types in an engine that a test started itself. The messages must not be
/// used after the engine has stopped.
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

/// Returns a segment that a test has allocated in the engine, and that it frees there.
pub fn segment<'rt, T: crate::Element>(
    runtime: &'rt crate::Runtime,
    segment: &std::sync::Arc<portolan_engine::memory::segment::Segment>,
) -> crate::Segment<'rt, T> {
    let group = crate::Group::wrap(runtime, segment.group().clone());
    crate::Segment::over(&group, segment.clone(), true)
}

/// Returns the engine of a runtime.
pub fn engine(runtime: &crate::Runtime) -> &Engine {
    runtime.engine()
}
