//! Bindings to the OTF2 library, which is loaded at run time.
//!
//! The declarations match version 3 of the library, whose file name ends in `.so.10`. Other
//! versions are not loaded, because their functions have different arguments.

use super::definitions::Definitions;
use libloading::{Library, Symbol};
use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

/// File names of version 3 of the library: Debian's and upstream's.
const NAMES: [&str; 2] = ["libopen-trace-format2.so.10", "libotf2.so.10"];
const MODE_WRITE: u8 = 0;
const SUBSTRATE_POSIX: u8 = 1;
const NO_COMPRESSION: u8 = 1;
const FLUSH: u8 = 1;
const FETCH_AND_ADD: u8 = 5;
const ACCUMULATE: u8 = 0;
/// Chunk sizes of the library's buffers, in bytes.
const CHUNK_EVENTS: u64 = 1 << 20;
const CHUNK_DEFINITIONS: u64 = 4 << 20;

pub(super) type Otf2Handle = *mut c_void;
pub(super) type Code = c_int;

#[repr(C)]
struct FlushCallbacks {
    before: extern "C" fn(Otf2Handle, u8, u64, Otf2Handle, bool) -> u8,
    after: Option<extern "C" fn(Otf2Handle, u8, u64) -> u64>,
}

extern "C" fn always(_: Otf2Handle, _: u8, _: u64, _: Otf2Handle, _: bool) -> u8 {
    FLUSH
}

static CALLBACKS: FlushCallbacks = FlushCallbacks { before: always, after: None };

/// Calls a function of the library, given its name, type and arguments.
macro_rules! call {
    ($library:expr, $name:literal, fn($($type:ty),*) -> $result:ty, $($argument:expr),*) => {{
        let name = concat!($name, "\0");
        type Function = unsafe extern "C" fn($($type),*) -> $result;
        let function: Result<Symbol<'_, Function>, _> = {
            // SAFETY: the type matches the headers of version 3, which the file name of the library
            // guarantees. The symbol borrows `$library`, which keeps it loaded.
            unsafe { $library.get(name.as_bytes()) }
        };
        match function {
            Ok(function) => {
                // SAFETY: handles come from this library and are not closed, strings are
                // null-terminated, and arrays have the lengths that are passed with them.
                let result = unsafe { function($($argument),*) };
                Ok(result)
            }
            Err(e) => Err(format!("the OTF2 library has no {}: {e}", $name)),
        }
    }};
}

/// Calls a function that returns an error code, and converts the code to a `Result`.
macro_rules! checked {
    ($library:expr, $name:literal, fn($($type:ty),*), $($argument:expr),*) => {
        match call!($library, $name, fn($($type),*) -> Code, $($argument),*) {
            Ok(0) => Ok(()),
            Ok(code) => Err(format!("{} of the OTF2 library failed with code {code}", $name)),
            Err(why) => Err(why),
        }
    };
}

pub(super) use {call, checked};

pub struct Archive {
    library: Library,
    archive: Otf2Handle,
}

impl Archive {
    /// Creates `directory/name.otf2`. The library fails if the directory exists.
    pub fn create(directory: &Path, name: &str) -> Result<Archive, String> {
        if directory.exists() {
            return Err(format!(
                "{} exists already: OTF2 needs a new directory",
                directory.display()
            ));
        }
        // SAFETY: loading runs the library's initialisers; OTF2 has none that change the process.
        let loaded = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
        let library = loaded.ok_or_else(|| {
            format!("--otf2 needs version 3 of the OTF2 library ({}), which is not installed; on Debian: apt install otf2-tools libotf2-trace-dev", NAMES.join(" or "))
        })?;
        let path = text(&directory.display().to_string());
        let archive = call!(
            library,
            "OTF2_Archive_Open",
            fn(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Otf2Handle,
            path.as_ptr(),
            text(name).as_ptr(),
            MODE_WRITE,
            CHUNK_EVENTS,
            CHUNK_DEFINITIONS,
            SUBSTRATE_POSIX,
            NO_COMPRESSION
        )?;
        if archive.is_null() {
            return Err(format!("the OTF2 library cannot create {}", directory.display()));
        }
        let new = Archive { library, archive };
        checked!(
            new.library,
            "OTF2_Archive_SetFlushCallbacks",
            fn(Otf2Handle, *const FlushCallbacks, Otf2Handle),
            new.archive,
            &raw const CALLBACKS,
            std::ptr::null_mut()
        )?;
        checked!(
            new.library,
            "OTF2_Archive_SetSerialCollectiveCallbacks",
            fn(Otf2Handle),
            new.archive
        )?;
        checked!(new.library, "OTF2_Archive_OpenEvtFiles", fn(Otf2Handle), new.archive)?;
        Ok(new)
    }

    pub fn events(&self, location: u64) -> Result<EventWriter<'_>, String> {
        let writer = call!(
            self.library,
            "OTF2_Archive_GetEvtWriter",
            fn(Otf2Handle, u64) -> Otf2Handle,
            self.archive,
            location
        )?;
        if writer.is_null() {
            return Err(format!("the OTF2 library has no writer for location {location}"));
        }
        let library = &self.library;
        // SAFETY: `EnterLeave` is the type of both functions in the headers of version 3, which the
        // file name of the library guarantees. The symbols borrow the library, which keeps it
        // loaded. They are looked up only once, because they are called for each event.
        unsafe {
            let get =
                |name: &[u8]| format!("the OTF2 library has no {}", String::from_utf8_lossy(name));
            Ok(EventWriter {
                archive: self,
                writer,
                enter: library.get(b"OTF2_EvtWriter_Enter\0").map_err(|_| get(b"Enter"))?,
                leave: library.get(b"OTF2_EvtWriter_Leave\0").map_err(|_| get(b"Leave"))?,
            })
        }
    }

    /// Closes the event files and writes an empty definition file for each location, which readers
    /// require.
    pub fn local_definitions(&self, locations: impl Iterator<Item = u64>) -> Result<(), String> {
        checked!(self.library, "OTF2_Archive_CloseEvtFiles", fn(Otf2Handle), self.archive)?;
        checked!(self.library, "OTF2_Archive_OpenDefFiles", fn(Otf2Handle), self.archive)?;
        for location in locations {
            let writer = call!(
                self.library,
                "OTF2_Archive_GetDefWriter",
                fn(Otf2Handle, u64) -> Otf2Handle,
                self.archive,
                location
            )?;
            checked!(
                self.library,
                "OTF2_Archive_CloseDefWriter",
                fn(Otf2Handle, Otf2Handle),
                self.archive,
                writer
            )?;
        }
        checked!(self.library, "OTF2_Archive_CloseDefFiles", fn(Otf2Handle), self.archive)
    }

    pub fn definitions(&self) -> Result<Definitions<'_>, String> {
        let writer = call!(
            self.library,
            "OTF2_Archive_GetGlobalDefWriter",
            fn(Otf2Handle) -> Otf2Handle,
            self.archive
        )?;
        if writer.is_null() {
            return Err("the OTF2 library has no writer for definitions".into());
        }
        Ok(Definitions { library: &self.library, writer, strings: Cell::new(0) })
    }

    pub fn end(self) -> Result<(), String> {
        checked!(self.library, "OTF2_Archive_Close", fn(Otf2Handle), self.archive)
    }
}

type EnterLeave = unsafe extern "C" fn(Otf2Handle, Otf2Handle, u64, u32) -> Code;

/// Writer of the events of one location, which must be written in time order.
pub struct EventWriter<'a> {
    archive: &'a Archive,
    writer: Otf2Handle,
    enter: Symbol<'a, EnterLeave>,
    leave: Symbol<'a, EnterLeave>,
}

const NONE: Otf2Handle = std::ptr::null_mut();
const WINDOW: u32 = 0;

impl EventWriter<'_> {
    pub fn enter(&self, time: u64, region: u32) -> Result<(), String> {
        // SAFETY: the writer is open, and OTF2 accepts a null attribute list.
        written("Enter", unsafe { (self.enter)(self.writer, NONE, time, region) })
    }

    pub fn leave(&self, time: u64, region: u32) -> Result<(), String> {
        // SAFETY: the writer is open, and OTF2 accepts a null attribute list.
        written("Leave", unsafe { (self.leave)(self.writer, NONE, time, region) })
    }

    pub fn put(&self, time: u64, peer: u32, bytes: u64, id: u64) -> Result<(), String> {
        checked!(
            self.archive.library,
            "OTF2_EvtWriter_RmaPut",
            fn(Otf2Handle, Otf2Handle, u64, u32, u32, u64, u64),
            self.writer,
            NONE,
            time,
            WINDOW,
            peer,
            bytes,
            id
        )
    }

    pub fn get(&self, time: u64, peer: u32, bytes: u64, id: u64) -> Result<(), String> {
        checked!(
            self.archive.library,
            "OTF2_EvtWriter_RmaGet",
            fn(Otf2Handle, Otf2Handle, u64, u32, u32, u64, u64),
            self.writer,
            NONE,
            time,
            WINDOW,
            peer,
            bytes,
            id
        )
    }

    /// Writes an accumulate, or a fetch-and-add if bytes are returned.
    pub fn atomic(
        &self,
        time: u64,
        peer: u32,
        [sent, back]: [u64; 2],
        id: u64,
    ) -> Result<(), String> {
        let kind = if back > 0 { FETCH_AND_ADD } else { ACCUMULATE };
        checked!(
            self.archive.library,
            "OTF2_EvtWriter_RmaAtomic",
            fn(Otf2Handle, Otf2Handle, u64, u32, u32, u8, u64, u64, u64),
            self.writer,
            NONE,
            time,
            WINDOW,
            peer,
            kind,
            sent,
            back,
            id
        )
    }

    pub fn complete(&self, time: u64, id: u64) -> Result<(), String> {
        checked!(
            self.archive.library,
            "OTF2_EvtWriter_RmaOpCompleteBlocking",
            fn(Otf2Handle, Otf2Handle, u64, u32, u64),
            self.writer,
            NONE,
            time,
            WINDOW,
            id
        )
    }

    /// Closes the writer and returns the number of events.
    pub fn end(self) -> Result<u64, String> {
        let (library, mut events) = (&self.archive.library, 0u64);
        checked!(
            library,
            "OTF2_EvtWriter_GetNumberOfEvents",
            fn(Otf2Handle, *mut u64),
            self.writer,
            &raw mut events
        )?;
        checked!(
            library,
            "OTF2_Archive_CloseEvtWriter",
            fn(Otf2Handle, Otf2Handle),
            self.archive.archive,
            self.writer
        )?;
        Ok(events)
    }
}

fn written(what: &str, code: Code) -> Result<(), String> {
    if code == 0 {
        Ok(())
    } else {
        Err(format!("{what} of the OTF2 library failed with code {code}"))
    }
}

/// Converts a string for C, truncated at the first null character.
pub(super) fn text(value: &str) -> CString {
    let end = value.find('\0').unwrap_or(value.len());
    CString::new(&value[..end]).unwrap_or_default()
}
