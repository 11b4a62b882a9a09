//! `hg_proc_*` for the basic types.

use super::codes::HgReturn;
use super::procs;
use portolan_rpc::proc::{Fault, Op, Proc};
use std::os::raw::c_void;

macro_rules! numbers {
    ($($name:ident: $ty:ty;)*) => {
        procs! {$(
            #[doc = concat!("Encodes or decodes one `", stringify!($ty), "`, little-endian.")]
            /// `data` must be null or the address of a value, readable to encode, writable to
            /// decode.
            $name(data: *mut c_void), |proc| {
                if cfg!(target_endian = "little") || proc.op() == Op::Free {
                    // SAFETY: by contract, `data` is null or suitable.
                    return unsafe { proc.transfer(data.cast(), size_of::<$ty>()) };
                }
                if data.is_null() {
                    return Err(proc.fail(Fault::argument("the parameter's address is null")));
                }
                let data = data.cast::<$ty>();
                if proc.op() == Op::Encode {
                    // SAFETY: `data` is not null, so by contract it is readable.
                    return proc.put(&unsafe { data.read_unaligned() }.to_le_bytes());
                }
                let value = <$ty>::from_le_bytes(proc.take_array()?);
                // SAFETY: `data` is not null, so by contract it is writable.
                unsafe { data.write_unaligned(value) };
                Ok(())
            };
        )*}
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

procs! {
    /// Decoding refuses all bytes but 0 and 1, the only values in C.
    hg_proc_bool(data: *mut c_void), |proc| {
        let data = data.cast::<u8>();
        if proc.op() == Op::Free {
            return Ok(());
        }
        if data.is_null() {
            return Err(proc.fail(Fault::argument("the parameter's address is null")));
        }
        if proc.op() == Op::Encode {
            // SAFETY: `data` is not null, so by contract it is readable.
            return proc.put(&[u8::from(unsafe { *data } != 0)]);
        }
        match proc.take_array()? {
            [value @ (0 | 1)] => {
                // SAFETY: `data` is not null, so by contract it is writable.
                unsafe { *data = value };
                Ok(())
            }
            [other] => Err(proc.fail(Fault::protocol(format!("a bool is {other}, not 0 or 1")))),
        }
    };
}

macro_rules! raw {
    ($($name:ident)*) => {
        procs! {$(
            /// Encodes or decodes bytes without conversion. `data` must be null or valid for
            /// `data_size` bytes: for reads to encode, for writes to decode.
            $name(data: *mut c_void, data_size: u64), |proc| match usize::try_from(data_size) {
                // SAFETY: by contract, `data` is null or suitable.
                Ok(bytes) => unsafe { proc.transfer(data.cast(), bytes) },
                Err(_) => Err(proc.fail(Fault::Memory(usize::MAX))),
            };
        )*}
    };
}

raw!(hg_proc_bytes hg_proc_raw hg_proc_memcpy);
