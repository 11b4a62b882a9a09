//! Start, end, memory, ranks and error texts.

use super::{call, table};
use crate::boundary::{self, export, guard};
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_engine::memory::segment::Purpose;
use portolan_engine::runtime;
use portolan_engine::runtime::sharing;
use std::os::raw::{c_char, c_int, c_void};
use std::sync::Arc;

/// The number of `cp_init` calls without a matching `cp_finalize`.
static DEPTH: Mutex<usize> = Mutex::new(0);

export! {
    cp_init() -> c_int = guard(|error| -error.kind().code(), || {
        let mut depth = DEPTH.lock();
        if !runtime::is_running() {
            *depth = 0; // MPI_Finalize has stopped the earlier run
        }
        if *depth == 0 {
            // SAFETY: no communicator is passed, so none has to be live.
            let engine = boundary::starting("cp_init", || unsafe { sharing::attach(None) })?;
            let composer = table::composer(engine)?;
            let _own = engine.observer().exclude_calls();
            composer.prepare(engine)?;
        }
        *depth += 1;
        Ok(0)
    });
}

fn finalize() -> Result<c_int> {
    let mut depth = DEPTH.lock();
    if *depth == 0 {
        return Ok(0); // a surplus call has no effect
    }
    if *depth > 1 {
        *depth -= 1;
        return Ok(0);
    }
    let interface = table::take()?;
    *depth = 0;
    if !runtime::is_running() {
        return Ok(0);
    }
    let engine = runtime::current()?;
    if let Some(interface) = interface {
        drop(interface.table);
        if let Some(composer) = Arc::into_inner(interface.composer) {
            let _own = engine.observer().exclude_calls();
            composer.free(engine)?;
        }
    }
    sharing::detach()?;
    Ok(0)
}

export! {
    cp_finalize() -> c_int = guard(|error| -error.kind().code(), finalize);

    cp_rank() -> c_int = call(|engine| Ok(engine.rank() as c_int));

    cp_nprocs() -> c_int = call(|engine| Ok(engine.size() as c_int));

    /// `ptrs` must be null or valid for writes of one pointer for each rank.
    cp_malloc(ptrs: *mut *mut c_void, bytes: usize) -> c_int = call(|engine| {
        let asked = if ptrs.is_null() {
            Err(portolan_base::error::Error::new(
                portolan_base::error::ErrorKind::Argument,
                "the array for the addresses is null",
            ))
        } else {
            Ok(bytes)
        };
        let segment = engine.allocate_for(Purpose::Addresses, engine.world(), asked)?;
        for (rank, part) in segment.parts().enumerate() {
            // SAFETY: by this function's contract, `ptrs` has an element for each rank.
            unsafe { ptrs.add(rank).write(part.address() as *mut c_void) };
        }
        Ok(0)
    });

    cp_free(ptr: *mut c_void) -> c_int = call(|engine| {
        let mine = (!ptr.is_null()).then_some(ptr as usize);
        engine.release_at(engine.world(), mine)?;
        Ok(0)
    });

    cp_errmsg() -> *const c_char { boundary::last_error() }
}
