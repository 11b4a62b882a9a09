//! `hg_proc_*` of the basic types.

use super::proc::{HgProc, with};
use super::types::HgReturn;
use crate::rpc::proc::{Fault, Op};
use std::os::raw::c_void;

macro_rules! numbers {
    ($($name:ident: $ty:ty;)*) => {
        $(#[doc = concat!("Goes over one `", stringify!($ty), "`, little-endian.")]
        ///
        /// # Safety
        /// `proc` must be null or a live proc; `data` must be the address of such a
        /// value, valid for what the proc does.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(proc: HgProc, data: *mut c_void) -> HgReturn {
            // SAFETY: the caller's promise.
            unsafe {
                with(stringify!($name), proc, |proc| {
                    if cfg!(target_endian = "little") || proc.op() == Op::Free {
                        return proc.transfer(data.cast(), size_of::<$ty>());
                    }
                    if data.is_null() {
                        return Err(proc.fail(Fault::argument("the parameter's address is null")));
                    }
                    let data = data.cast::<$ty>();
                    if proc.op() == Op::Encode {
                        return proc.put(&data.read_unaligned().to_le_bytes());
                    }
                    data.write_unaligned(<$ty>::from_le_bytes(proc.take_array()?));
                    Ok(())
                })
            }
        })*
    };
}

numbers! {
    hg_proc_int8_t: i8;
    hg_proc_uint8_t: u8;
    hg_proc_int16_t: i16;
    hg_proc_uint16_t: u16;
    hg_proc_int32_t: i32;
    hg_proc_uint32_t: u32;
    hg_proc_int64_t: i64;
    hg_proc_uint64_t: u64;
    hg_proc_float: f32;
    hg_proc_double: f64;
}

/// Goes over one `bool`; a byte other than 0 and 1 is refused, because C's type
/// has no other value.
///
/// # Safety
/// As the numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_bool(proc: HgProc, data: *mut c_void) -> HgReturn {
    // SAFETY: the caller's promise.
    unsafe {
        with("hg_proc_bool", proc, |proc| {
            let data = data.cast::<u8>();
            if proc.op() == Op::Free {
                return Ok(());
            }
            if data.is_null() {
                return Err(proc.fail(Fault::argument("the parameter's address is null")));
            }
            if proc.op() == Op::Encode {
                return proc.put(&[u8::from(*data != 0)]);
            }
            match proc.take_array()? {
                [value @ (0 | 1)] => {
                    *data = value;
                    Ok(())
                }
                [other] => {
                    Err(proc.fail(Fault::protocol(format!("a bool is {other}, not 0 or 1"))))
                }
            }
        })
    }
}

macro_rules! raw {
    ($($name:ident)*) => {
        $(/// Goes over bytes as they are.
        ///
        /// # Safety
        /// `proc` must be null or a live proc; `data` must be valid for `data_size`
        /// bytes and what the proc does.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            proc: HgProc,
            data: *mut c_void,
            data_size: u64,
        ) -> HgReturn {
            // SAFETY: the caller's promise.
            unsafe {
                with(stringify!($name), proc, |proc| match usize::try_from(data_size) {
                    Ok(bytes) => proc.transfer(data.cast(), bytes),
                    Err(_) => Err(proc.fail(Fault::Memory(usize::MAX))),
                })
            }
        })*
    };
}

raw!(hg_proc_bytes hg_proc_raw hg_proc_memcpy);
