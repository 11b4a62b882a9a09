//! `armci_stride_info_*`: the segments of strided memory, one by one, for programs that move
//! them by their own means.
//!
//! A program keeps the structure and may look into it: its layout is GA's. What these calls
//! cannot do ends the job, since they return no code.

use crate::capi::boundary::{array, or_abort_alone};
use crate::error::{Result, fail};
use crate::layout::MAX_LEVELS;
use std::os::raw::{c_char, c_int, c_void};

/// `stride_info_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct StrideInfo {
    /// Where the first segment begins.
    pub base_ptr: *mut c_char,
    /// How many strides there are.
    pub stride_levels: c_int,
    /// Distances in bytes, from the innermost out.
    pub stride_arr: [c_int; MAX_LEVELS],
    /// Bytes of a segment, and then how many there are at each level.
    pub seg_count: [c_int; MAX_LEVELS + 1],
    /// Number of segments.
    pub size: c_int,
    /// The current one, from 0 to `size`.
    pub pos: c_int,
    /// Its place at each level.
    pub itr: [c_int; MAX_LEVELS],
}

const _: () = assert!(std::mem::size_of::<StrideInfo>() == 120);

impl StrideInfo {
    /// # Safety
    /// The arrays must have `levels` strides and `levels + 1` counts.
    unsafe fn new(
        base: *mut c_void,
        levels: c_int,
        strides: *const c_int,
        counts: *const c_int,
    ) -> Result<StrideInfo> {
        let levels = match usize::try_from(levels) {
            Ok(levels) if levels <= MAX_LEVELS => levels,
            _ => fail!(Argument, "{levels} stride levels, but 0 to {MAX_LEVELS} are possible"),
        };
        // SAFETY: the caller vouches for the arrays.
        let (strides, counts) = unsafe {
            (
                array(strides, levels, "the stride array")?,
                array(counts, levels + 1, "the count array")?,
            )
        };
        if let Some(bad) = counts.iter().find(|c| **c < 0) {
            fail!(Argument, "a count of {bad}");
        }
        let none = counts.contains(&0);
        let size = counts[1..].iter().try_fold(1, |size: c_int, &n| size.checked_mul(n));
        let Some(size) = size.or(none.then_some(0)) else {
            fail!(
                Argument,
                "the counts {:?} are of more segments than an int counts",
                &counts[1..]
            );
        };
        let mut info = StrideInfo {
            base_ptr: base.cast(),
            stride_levels: levels as c_int,
            stride_arr: [0; MAX_LEVELS],
            seg_count: [0; MAX_LEVELS + 1],
            size: if none { 0 } else { size },
            pos: 0,
            itr: [0; MAX_LEVELS],
        };
        info.stride_arr[..levels].copy_from_slice(strides);
        info.seg_count[..=levels].copy_from_slice(counts);
        Ok(info)
    }

    fn levels(&self) -> usize {
        usize::try_from(self.stride_levels).unwrap_or(0).min(MAX_LEVELS)
    }

    fn has_more(&self) -> bool {
        self.pos < self.size
    }

    fn advance(&mut self) -> Result<()> {
        if !self.has_more() {
            fail!(State, "all {} segments were visited", self.size);
        }
        self.pos += 1;
        for level in 0..self.levels() {
            self.itr[level] += 1;
            if self.itr[level] < self.seg_count[level + 1] || level + 1 == self.levels() {
                break;
            }
            self.itr[level] = 0;
        }
        Ok(())
    }

    /// Bytes from the first segment to the current one.
    fn offset(&self) -> isize {
        let level = |i: usize| self.itr[i] as isize * self.stride_arr[i] as isize;
        (0..self.levels()).map(level).sum()
    }
}

/// # Safety
/// `info` must be valid, or null.
unsafe fn with<R>(
    call: &'static str,
    info: *mut StrideInfo,
    body: impl FnOnce(&mut StrideInfo) -> Result<R>,
) -> R {
    or_abort_alone(call, || {
        // SAFETY: the caller vouches for the structure.
        match unsafe { info.as_mut() } {
            Some(info) => body(info),
            None => fail!(Argument, "the stride_info_t is null"),
        }
    })
}

/// Begins at the first segment.
///
/// # Safety
/// The pointers must be valid: `stride_levels` strides, and one count more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn armci_stride_info_init(
    sinfo: *mut StrideInfo,
    base_ptr: *mut c_void,
    stride_levels: c_int,
    stride_arr: *const c_int,
    seg_count: *const c_int,
) {
    or_abort_alone("armci_stride_info_init", || {
        if sinfo.is_null() {
            fail!(Argument, "the stride_info_t is null");
        }
        // SAFETY: the caller vouches for the arrays, and for the place, which need not hold
        // anything yet.
        unsafe { sinfo.write(StrideInfo::new(base_ptr, stride_levels, stride_arr, seg_count)?) };
        Ok(())
    })
}

/// Ends; the structure holds nothing that must be freed, and has no segments any more.
///
/// # Safety
/// `sinfo` must be valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn armci_stride_info_destroy(sinfo: *mut StrideInfo) {
    // SAFETY: the caller vouches for the structure.
    unsafe {
        with("armci_stride_info_destroy", sinfo, |info| {
            (info.size, info.pos) = (0, 0);
            Ok(())
        })
    }
}

/// Goes to the next segment; an error, which ends the job, where there is no current one.
///
/// # Safety
/// `sinfo` must be valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn armci_stride_info_next(sinfo: *mut StrideInfo) {
    // SAFETY: the caller vouches for the structure.
    unsafe { with("armci_stride_info_next", sinfo, StrideInfo::advance) }
}

/// A call that answers a question about the structure.
macro_rules! question {
    ($(#[$doc:meta])* $name:ident -> $ty:ty, $answer:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// `sinfo` must be valid.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(sinfo: *mut StrideInfo) -> $ty {
            let answer: fn(&StrideInfo) -> Result<$ty> = $answer;
            // SAFETY: the caller vouches for the structure.
            unsafe { with(stringify!($name), sinfo, |info| answer(info)) }
        }
    };
}

/// The place of the current segment.
fn place(info: &StrideInfo) -> Result<*mut c_void> {
    Ok(info.base_ptr.wrapping_offset(info.offset()).cast())
}

question! {
    /// The number of segments.
    armci_stride_info_size -> c_int, |info| Ok(info.size)
}
question! {
    /// As `armci_stride_info_size`.
    armci_stride_info_count -> c_int, |info| Ok(info.size)
}
question! {
    /// As `armci_stride_info_size`.
    armci_stride_info_seg_count -> c_int, |info| Ok(info.size)
}
question! {
    /// How many segments were visited before the current one.
    armci_stride_info_pos -> c_int, |info| Ok(info.pos)
}
question! {
    /// 1 while there is a current segment, 0 behind the last one.
    armci_stride_info_has_more -> c_int, |info| Ok(c_int::from(info.has_more()))
}
question! {
    /// As `armci_stride_info_has_more`.
    armci_stride_info_has_next -> c_int, |info| Ok(c_int::from(info.has_more()))
}
question! {
    /// Where the current segment begins.
    armci_stride_info_seg_ptr -> *mut c_void, place
}
question! {
    /// As `armci_stride_info_seg_ptr`.
    armci_stride_info_get -> *mut c_void, place
}
question! {
    /// Bytes of each segment.
    armci_stride_info_seg_size -> c_int, |info| Ok(info.seg_count[0])
}
question! {
    /// Bytes from the first segment to the current one.
    armci_stride_info_seg_off -> c_int, |info| match c_int::try_from(info.offset()) {
        Ok(offset) => Ok(offset),
        Err(_) => fail!(Argument, "an offset of {} bytes is more than an int holds", info.offset()),
    }
}
