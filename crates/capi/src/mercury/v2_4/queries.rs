//! Versions, error texts, networks and the log.

use super::class::name_of;
use super::codes::name;
use super::types::{Counters, ProtocolInfo};
use crate::mercury::entry::{place, text, write_version};
use crate::mercury::interface::calls;
use crate::mercury::objects::class::CLASSES;
use parking_lot::Mutex;
use portolan_engine::runtime::log_sink;
use portolan_rpc::failure::{Result, refuse};
use portolan_rpc::na::address::{Network, Scheme};
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

/// Prints log lines: `int (*)(FILE *, const char *, ...)`.
type LogFunction = Option<unsafe extern "C" fn(*mut c_void, *const c_char, ...) -> c_int>;

struct Sink {
    func: LogFunction,
    /// `FILE *` for errors, for warnings and for all other levels; 0 stands for standard error.
    streams: [usize; 3],
}

static SINK: Mutex<Sink> = Mutex::new(Sink { func: None, streams: [0; 3] });
const LEVELS: [&[&str]; 3] =
    [&["error", "err"], &["warning", "warn"], &["info", "debug", "dbg", "trace"]];

unsafe extern "C" {
    static stderr: *mut c_void;
}

fn install() {
    log_sink::set(Arc::new(|level, line| {
        let (func, streams) = {
            let sink = SINK.lock();
            (sink.func, sink.streams)
        };
        let level = match level {
            log::Level::Error => 0,
            log::Level::Warn => 1,
            _ => 2,
        };
        let Ok(line) = CString::new(line) else { return };
        // SAFETY: the stream is standard error or a `FILE *` that the program keeps open while it
        // is set. `func` has the signature of `fprintf`. The format and `line` are NUL-terminated.
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

/// Returns the network interfaces that are up and have an IP address, or none on failure.
fn interfaces() -> Vec<CString> {
    let mut first = ptr::null_mut();
    // SAFETY: `first` is valid for a write.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Vec::new();
    }
    let (mut names, mut at) = (Vec::new(), first);
    // SAFETY: `at` is null or an entry of the list, which is freed after the loop.
    while let Some(entry) = unsafe { at.as_ref() } {
        at = entry.ifa_next;
        // SAFETY: `ifa_addr` is null or the valid address of the entry.
        let family = unsafe { entry.ifa_addr.as_ref() }.map(|addr| c_int::from(addr.sa_family));
        let is_up = entry.ifa_flags & libc::IFF_UP as c_uint != 0;
        if is_up && matches!(family, Some(libc::AF_INET | libc::AF_INET6)) {
            // SAFETY: the name of an entry is NUL-terminated.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            if !names.iter().any(|known: &CString| known.as_c_str() == name) {
                names.push(name.to_owned());
            }
        }
    }
    // SAFETY: `getifaddrs` returned the list, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(first) };
    names
}

fn devices(scheme: Scheme) -> Vec<CString> {
    match scheme {
        Scheme::Tcp => interfaces(),
        Scheme::Sm => vec![c"shm".to_owned()],
        _ => vec![name_of(scheme).0.to_owned()],
    }
}

/// Lists the networks that match `wanted`, or all networks if it is `None`, with an entry for each
/// device. Fails as [`Network::parse`] does if no network matches.
fn list(wanted: Option<&str>) -> Result<*mut ProtocolInfo> {
    let mut first: *mut ProtocolInfo = ptr::null_mut();
    for scheme in [Scheme::Own, Scheme::Mpi, Scheme::Tcp, Scheme::Sm] {
        let (class, protocol) = name_of(scheme);
        let (of_class, of_protocol) = (class.to_string_lossy(), protocol.to_string_lossy());
        let is_it = wanted.is_none_or(|wanted| {
            wanted == of_class
                || wanted == of_protocol
                || Network::parse(wanted).is_ok_and(|parsed| parsed.scheme == scheme)
        });
        let devices = if is_it { devices(scheme) } else { Vec::new() };
        for device in devices.iter().rev() {
            // SAFETY: the names are NUL-terminated. `free_protocols` frees the copies with `free`.
            unsafe {
                let (class_name, protocol_name) =
                    (libc::strdup(class.as_ptr()), libc::strdup(protocol.as_ptr()));
                let device_name = libc::strdup(device.as_ptr());
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
    if let Some(wanted) = wanted
        && first.is_null()
    {
        Network::parse(wanted)?;
    }
    Ok(first)
}

/// # Safety
/// `info` must be null or a NUL-terminated string; `to` must be null or valid for a write.
pub(super) unsafe fn protocols(info: *const c_char, to: *mut *mut ProtocolInfo) -> Result<()> {
    // SAFETY: by contract, `info` is null or NUL-terminated and `to` is null or valid.
    unsafe {
        let to = place(to, "list of networks")?;
        let wanted = if info.is_null() { None } else { Some(text(info, "information string")?) };
        *to = list(wanted.as_deref())?;
    }
    Ok(())
}

/// # Safety
/// `info` must be null or a list returned by [`protocols`] that has not been freed.
pub(super) unsafe fn free_protocols(mut info: *mut ProtocolInfo) {
    while !info.is_null() {
        // SAFETY: `list` created the node with `Box::into_raw` and its names with `strdup`.
        unsafe {
            let gone = Box::from_raw(info);
            for name in [gone.class_name, gone.protocol_name, gone.device_name] {
                libc::free(name.cast());
            }
            info = gone.next;
        }
    }
}

/// # Safety
/// `level` must be null or a NUL-terminated string.
pub(super) unsafe fn set_level(level: *const c_char) -> Result<()> {
    // SAFETY: by this function's contract, `level` is null or NUL-terminated.
    let level = unsafe { text(level, "level of the log") }?;
    let filter = match level.as_str() {
        "none" => log::LevelFilter::Off,
        "error" | "err" => log::LevelFilter::Error,
        "warning" | "warn" => log::LevelFilter::Warn,
        "info" => log::LevelFilter::Info,
        "debug" | "dbg" => log::LevelFilter::Debug,
        "trace" => log::LevelFilter::Trace,
        _ => refuse!(
            INVALID_ARG,
            "unknown level '{level}'; expected none, error, warning, info, debug or trace"
        ),
    };
    log_sink::set_level(filter);
    Ok(())
}

calls! { V2_4:
    /// Version 2.4.1. Null pointers are skipped.
    HG_Version_get(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint) {
        // SAFETY: by the call's contract, each pointer is null or valid for a write.
        unsafe { write_version([(major, 2), (minor, 4), (patch, 1)]) };
        Ok(())
    }

    HG_Error_to_string(code: c_int) -> *const c_char, ptr::null(), { Ok(name(code).as_ptr()) }

    /// Lists all networks or, if `info` is not null, those that it names, with their devices.
    HG_Get_na_protocol_info | HG_Core_get_na_protocol_info(
        info: *const c_char,
        list: *mut *mut ProtocolInfo,
    ) {
        // SAFETY: by contract, `info` is null or NUL-terminated and `list` is null or valid.
        unsafe { protocols(info, list) }
    }

    HG_Free_na_protocol_info | HG_Core_free_na_protocol_info(list: *mut ProtocolInfo) -> (), (), {
        // SAFETY: by the call's contract, `list` is null or a list from one of these calls.
        unsafe { free_protocols(list) };
        Ok(())
    }

    /// Version 4.1.0. Null pointers are skipped.
    HG_Util_version_get(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint) -> (), (), {
        // SAFETY: by the call's contract, each pointer is null or valid for a write.
        unsafe { write_version([(major, 4), (minor, 1), (patch, 0)]) };
        Ok(())
    }

    /// Sets the highest level that is logged. `PORTOLAN_LOG` still filters the log.
    HG_Set_log_level | HG_Util_set_log_level(level: *const c_char) -> (), (), {
        // SAFETY: by the call's contract, `level` is null or a NUL-terminated string.
        unsafe { set_level(level) }
    }

    /// Does nothing: `PORTOLAN_LOG` selects the parts of the log.
    HG_Set_log_subsys(_subsys: *const c_char) -> (), (), { Ok(()) }

    /// Sets a function like `fprintf` that prints log lines. Null restores `fprintf`.
    HG_Set_log_func(func: LogFunction) -> (), (), {
        SINK.lock().func = func;
        install();
        Ok(())
    }

    /// Null restores standard error.
    HG_Set_log_stream(level: *const c_char, stream: *mut c_void) -> (), (), {
        // SAFETY: by the call's contract, `level` is null or a NUL-terminated string.
        let level = unsafe { text(level, "level of the log") }?;
        let Some(at) = LEVELS.iter().position(|names| names.contains(&level.as_str())) else {
            refuse!(INVALID_ARG, "unknown level '{level}'; expected error, warning or debug");
        };
        SINK.lock().streams[at] = stream as usize;
        install();
        Ok(())
    }

    HG_Diag_dump_counters() -> (), (), {
        CLASSES.each(|token, held| {
            log::info!("class {token:?}: {:?}", Counters::from(&held.counts));
        });
        Ok(())
    }
}
