//! Versions, error texts, networks, the log.

use super::class::name_of;
use super::codes::{calls, name};
use super::objects::CLASSES;
use super::types::ProtocolInfo;
use crate::capi::mercury::face::{maybe, place, text};
use crate::rpc::failure::{Result, refuse};
use crate::rpc::na::address::Scheme;
use crate::runtime::log_sink;
use parking_lot::Mutex;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr;

/// `int (*)(FILE *, const char *, ...)`, which a program prints the log by.
type LogFunction = Option<unsafe extern "C" fn(*mut c_void, *const c_char, ...) -> c_int>;

/// Where the program wants the log.
struct Sink {
    func: LogFunction,
    /// Of errors, of warnings, of the rest; 0 for standard error.
    streams: [usize; 3],
}

static SINK: Mutex<Sink> = Mutex::new(Sink { func: None, streams: [0; 3] });
const LEVELS: [&[&str]; 3] =
    [&["error", "err"], &["warning", "warn"], &["info", "debug", "dbg", "trace"]];

unsafe extern "C" {
    static stderr: *mut c_void;
}

/// Lets the log go by the sink.
fn install() {
    log_sink::set(Box::new(|level, line| {
        let (func, streams) = {
            let sink = SINK.lock();
            (sink.func, sink.streams)
        };
        let level = match level {
            log::Level::Error => 0,
            log::Level::Warn => 1,
            _ => 2,
        };
        let Ok(line) = std::ffi::CString::new(line) else { return };
        // SAFETY: the program's stream and function, which it keeps while they are set;
        // `fprintf` is as that function is.
        unsafe {
            let stream = match streams[level] {
                0 => stderr,
                stream => stream as *mut c_void,
            };
            match func {
                Some(func) => func(stream, c"%s".as_ptr(), line.as_ptr()),
                None => libc::fprintf(stream.cast(), c"%s".as_ptr(), line.as_ptr()),
            };
        }
    }));
}

/// The networks of a name, or all.
fn list(wanted: Option<&str>) -> Result<*mut ProtocolInfo> {
    let mut first: *mut ProtocolInfo = ptr::null_mut();
    for scheme in [Scheme::Own, Scheme::Dynamic, Scheme::Mpi] {
        let (class, protocol) = name_of(scheme);
        let (of_class, of_protocol) = (class.to_string_lossy(), protocol.to_string_lossy());
        let is_it = wanted.is_none_or(|wanted| {
            wanted == of_class
                || wanted == of_protocol
                || Scheme::parse(wanted).is_ok_and(|parsed| parsed == scheme)
        });
        if is_it {
            // SAFETY: the names are terminated; malloc's memory is freed by free.
            unsafe {
                let (class_name, protocol_name) =
                    (libc::strdup(class.as_ptr()), libc::strdup(protocol.as_ptr()));
                let device_name = libc::strdup(class.as_ptr());
                let next = first;
                first = Box::into_raw(Box::new(ProtocolInfo {
                    next,
                    class_name,
                    protocol_name,
                    device_name,
                }));
            }
        }
    }
    match (wanted, first.is_null()) {
        (Some(wanted), true) => {
            refuse!(PROTONOSUPPORT, "there is no network '{wanted}'; expected mpi or self")
        }
        _ => Ok(first),
    }
}

/// # Safety
/// `info` must be null or a terminated string, `to` null or valid.
unsafe fn protocols(info: *const c_char, to: *mut *mut ProtocolInfo) -> Result<()> {
    // SAFETY: passed on from the caller.
    unsafe {
        let to = place(to, "list of networks")?;
        let wanted = if info.is_null() { None } else { Some(text(info, "information string")?) };
        *to = list(wanted.as_deref())?;
    }
    Ok(())
}

/// # Safety
/// `info` must be null or a list of [`protocols`].
unsafe fn free_protocols(mut info: *mut ProtocolInfo) {
    while !info.is_null() {
        // SAFETY: made so by `list`.
        unsafe {
            let gone = Box::from_raw(info);
            for name in [gone.class_name, gone.protocol_name, gone.device_name] {
                libc::free(name.cast());
            }
            info = gone.next;
        }
    }
}

calls! {
    /// The version of the interface.
    HG_Version_get(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint) {
        for (to, number) in [(major, 2), (minor, 4), (patch, 1)] {
            // SAFETY: passed on from the caller.
            if let Some(to) = unsafe { maybe(to) } {
                *to = number;
            }
        }
        Ok(())
    }

    /// The name of a code.
    HG_Error_to_string(code: c_int) -> *const c_char, ptr::null(), { Ok(name(code).as_ptr()) }

    /// The networks that there are, or those that a string names.
    HG_Get_na_protocol_info(info: *const c_char, list: *mut *mut ProtocolInfo) {
        // SAFETY: passed on from the caller.
        unsafe { protocols(info, list) }
    }

    /// The networks that there are, or those that a string names.
    HG_Core_get_na_protocol_info(info: *const c_char, list: *mut *mut ProtocolInfo) {
        // SAFETY: passed on from the caller.
        unsafe { protocols(info, list) }
    }

    /// Frees such a list.
    HG_Free_na_protocol_info(list: *mut ProtocolInfo) -> (), (), {
        // SAFETY: passed on from the caller.
        unsafe { free_protocols(list) };
        Ok(())
    }

    /// Frees such a list.
    HG_Core_free_na_protocol_info(list: *mut ProtocolInfo) -> (), (), {
        // SAFETY: passed on from the caller.
        unsafe { free_protocols(list) };
        Ok(())
    }

    /// How much the library writes to its log, of what `PORTOLAN_LOG` lets through.
    HG_Set_log_level(level: *const c_char) -> (), (), {
        // SAFETY: passed on from the caller.
        let level = unsafe { text(level, "level of the log") }?;
        let filter = match level.as_str() {
            "none" => log::LevelFilter::Off,
            "error" | "err" => log::LevelFilter::Error,
            "warning" | "warn" => log::LevelFilter::Warn,
            "info" => log::LevelFilter::Info,
            "debug" | "dbg" => log::LevelFilter::Debug,
            "trace" => log::LevelFilter::Trace,
            _ => refuse!(INVALID_ARG, "there is no level '{level}'; expected none, error, warning, info, debug or trace"),
        };
        log_sink::set_level(filter);
        Ok(())
    }

    /// Parts of the log are chosen by `PORTOLAN_LOG`.
    HG_Set_log_subsys(_subsys: *const c_char) -> (), (), { Ok(()) }

    /// What prints the log, as `fprintf` does; null for that.
    HG_Set_log_func(func: LogFunction) -> (), (), {
        SINK.lock().func = func;
        install();
        Ok(())
    }

    /// Where lines of a level go; null for standard error.
    HG_Set_log_stream(level: *const c_char, stream: *mut c_void) -> (), (), {
        // SAFETY: passed on from the caller.
        let level = unsafe { text(level, "level of the log") }?;
        let Some(at) = LEVELS.iter().position(|names| names.contains(&level.as_str())) else {
            refuse!(INVALID_ARG, "there is no level '{level}'; expected error, warning or debug");
        };
        SINK.lock().streams[at] = stream as usize;
        install();
        Ok(())
    }

    /// Writes what happened in each class to the log.
    HG_Diag_dump_counters() -> (), (), {
        CLASSES.each(|token, held| log::info!("class {token:?}: {:?}", held.counts.read()));
        Ok(())
    }
}
