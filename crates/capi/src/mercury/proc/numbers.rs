//! `hg_proc_*` for the basic types.

use super::codes::HgReturn;
use super::{HgProc, with};
use portolan_rpc::proc::{Fault, Op};
use std::os::raw::c_void;

macro_rules! numbers {
    ($($name:ident: $ty:ty;)*) => {
        $(#[doc = concat!("Encodes or decodes one `", stringify!($ty), "`, little-endian.")]
        /// `proc` must be null or a live proc. `data` must be null or the address of a value,
        /// readable to encode, writable to decode.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(proc: HgProc, data: *mut c_void) -> HgReturn {
            // SAFETY: by contract, `proc` is null or live, and `data` null or suitable.
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

/// Decoding refuses all bytes but 0 and 1, the only values in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_bool(proc: HgProc, data: *mut c_void) -> HgReturn {
    // SAFETY: by contract, `proc` is null or live, and `data` is null or valid for the operation.
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
        $(/// Encodes or decodes bytes without conversion.
        /// `proc` must be null or a live proc. `data` must be null or valid for `data_size` bytes:
        /// for reads to encode, for writes to decode.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            proc: HgProc,
            data: *mut c_void,
            data_size: u64,
        ) -> HgReturn {
            // SAFETY: by contract, `proc` is null or live, and `data` null or suitable.
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
