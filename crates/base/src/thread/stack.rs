//! The remaining stack space of a thread. User-level threads may run on stacks with unknown bounds.

use std::cell::Cell;
use std::mem::MaybeUninit;

#[derive(Debug, Clone, Copy)]
struct StackBounds {
    lowest: usize,
    size: usize,
}

thread_local! {
    static BOUNDS: Cell<Option<StackBounds>> = const { Cell::new(None) };
}

/// Returns whether less than a quarter of the thread's stack is left, or `None` if unknown.
pub fn is_short() -> Option<bool> {
    let here = 0u8;
    let at = &raw const here as usize;
    let StackBounds { lowest, size } = bounds();
    let left = at.checked_sub(lowest).filter(|&left| left < size)?;
    Some(left < size / 4)
}

fn bounds() -> StackBounds {
    BOUNDS.with(|known| match known.get() {
        Some(bounds) => bounds,
        None => {
            let found = find().unwrap_or(StackBounds { lowest: 0, size: 0 });
            known.set(Some(found));
            found
        }
    })
}

fn find() -> Option<StackBounds> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are used only if the first call initialized them, and are destroyed
    // once. All pointers refer to local variables.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
        let traced = libc::pthread_attr_getstack(attributes.as_ptr(), &mut lowest, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (traced == 0).then_some(StackBounds { lowest: lowest as usize, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns [`is_short`] at least `bytes` below `top`: the compiler decides the size of a frame.
    #[inline(never)]
    fn descend(top: usize, bytes: usize) -> Option<bool> {
        let block = std::hint::black_box([0u8; 512]);
        let deep = top.saturating_sub(&raw const block as usize) >= bytes;
        let short = if deep { is_short() } else { descend(top, bytes) };
        std::hint::black_box(block);
        short
    }

    #[test]
    fn a_thread_knows_when_its_stack_is_nearly_used() {
        assert_eq!(is_short(), Some(false));
        let thread = std::thread::Builder::new().stack_size(1 << 20);
        let deep = thread.spawn(|| {
            let here = 0u8;
            let top = &raw const here as usize;
            // The stack may be larger than requested: the C library reuses stacks of ended threads.
            let part = bounds().size / 10;
            (descend(top, part), descend(top, 8 * part), descend(top, 0))
        });
        assert_eq!(deep.unwrap().join().unwrap(), (Some(false), Some(true), Some(false)));
    }
}
