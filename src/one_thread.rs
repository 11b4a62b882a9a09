//! The marker of types that stay on the thread of the runtime.

use std::marker::PhantomData;

/// The reason why a type is neither `Send` nor `Sync`. The compiler's errors name each field that
/// prevents them, so the other fields of the runtime and of an array do not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OneThread {
    _not_send: PhantomData<*const RuntimeStaysOnItsThread>,
}

#[derive(Debug)]
enum RuntimeStaysOnItsThread {}
