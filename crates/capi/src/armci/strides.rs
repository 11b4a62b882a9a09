//! `armci_stride_info_*`: iteration over the segments of strided memory. The program owns the
//! structure and may read it, so it has the layout of Global Arrays. An error ends the job.

use crate::boundary::{array, export, or_abort_alone};
use portolan_base::error::{Result, fail};
use portolan_base::layout::MAX_LEVELS;
use std::os::raw::{c_char, c_int, c_void};

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct StrideInfo {
    pub base_ptr: *mut c_char,
    pub stride_levels: c_int,
    /// In bytes, innermost first.
    pub stride_arr: [c_int; MAX_LEVELS],
    /// Size of a segment in bytes, followed by the count at each level.
    pub seg_count: [c_int; MAX_LEVELS + 1],
    pub size: c_int,
    /// Number of the current segment, from 0 to `size`.
    pub pos: c_int,
    pub itr: [c_int; MAX_LEVELS],
}

const _: () = assert!(std::mem::size_of::<StrideInfo>() == 120);

impl StrideInfo {
    /// # Safety
    /// `strides` must have `levels` elements, and `counts` must have `levels + 1`.
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
        // SAFETY: the caller guarantees the lengths of the arrays.
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

    fn offset(&self) -> isize {
        let level = |i: usize| self.itr[i] as isize * self.stride_arr[i] as isize;
        (0..self.levels()).map(level).sum()
    }
}

/// # Safety
/// `info` must be null or valid.
unsafe fn with<R>(
    call: &'static str,
    info: *mut StrideInfo,
    body: impl FnOnce(&mut StrideInfo) -> Result<R>,
) -> R {
    or_abort_alone(call, || {
        // SAFETY: the caller guarantees that `info` is null or valid.
        match unsafe { info.as_mut() } {
            Some(info) => body(info),
            None => fail!(Argument, "the stride_info_t is null"),
        }
    })
}

export! {
    /// `sinfo` must be valid for writes, `stride_arr` must have `stride_levels` elements, and
    /// `seg_count` must have `stride_levels + 1`.
    armci_stride_info_init(
        sinfo: *mut StrideInfo, base_ptr: *mut c_void, stride_levels: c_int,
        stride_arr: *const c_int, seg_count: *const c_int,
    ) = or_abort_alone(|| {
        if sinfo.is_null() {
            fail!(Argument, "the stride_info_t is null");
        }
        // SAFETY: by contract, the arrays are valid, and `sinfo` is valid for writes. `write` does
        // not read the old contents, which may be uninitialised.
        unsafe { sinfo.write(StrideInfo::new(base_ptr, stride_levels, stride_arr, seg_count)?) };
        Ok(())
    });

    armci_stride_info_destroy(sinfo: *mut StrideInfo) {
        // SAFETY: the caller guarantees that `sinfo` is valid.
        unsafe {
            with("armci_stride_info_destroy", sinfo, |info| {
                (info.size, info.pos) = (0, 0);
                Ok(())
            })
        }
    }

    armci_stride_info_next(sinfo: *mut StrideInfo) {
        // SAFETY: the caller guarantees that `sinfo` is valid.
        unsafe { with("armci_stride_info_next", sinfo, StrideInfo::advance) }
    }
}

macro_rules! questions {
    ($($name:ident -> $ty:ty, $answer:expr;)*) => {
        export! {
            $($name(sinfo: *mut StrideInfo) -> $ty {
                let answer: fn(&StrideInfo) -> Result<$ty> = $answer;
                // SAFETY: the caller guarantees that `sinfo` is valid.
                unsafe { with(stringify!($name), sinfo, |info| answer(info)) }
            })*
        }
    };
}

fn place(info: &StrideInfo) -> Result<*mut c_void> {
    Ok(info.base_ptr.wrapping_offset(info.offset()).cast())
}

questions! {
    armci_stride_info_size -> c_int, |info| Ok(info.size);
    armci_stride_info_count -> c_int, |info| Ok(info.size);
    armci_stride_info_seg_count -> c_int, |info| Ok(info.size);
    armci_stride_info_pos -> c_int, |info| Ok(info.pos);
    armci_stride_info_has_more -> c_int, |info| Ok(c_int::from(info.has_more()));
    armci_stride_info_has_next -> c_int, |info| Ok(c_int::from(info.has_more()));
    armci_stride_info_seg_ptr -> *mut c_void, place;
    armci_stride_info_get -> *mut c_void, place;
    armci_stride_info_seg_size -> c_int, |info| Ok(info.seg_count[0]);
    armci_stride_info_seg_off -> c_int, |info| match c_int::try_from(info.offset()) {
        Ok(offset) => Ok(offset),
        Err(_) => fail!(Argument, "an offset of {} bytes is more than an int holds", info.offset()),
    };
}
