//! Bindings to the OTF2 library, which is loaded at run time.
//!
//! The declarations match version 3 of the library, whose file name ends in `.so.10`. Other
//! versions are not loaded, because their functions have different arguments.

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
/// Chunk sizes of the library's buffers, in bytes.
const CHUNK_EVENTS: u64 = 1 << 20;
const CHUNK_DEFINITIONS: u64 = 4 << 20;

type Otf2Handle = *mut c_void;
type Code = c_int;

/// Attributes of an event. The program passes `None`.
pub enum Attributes {}

#[repr(C)]
struct FlushCallbacks {
    before: extern "C" fn(Otf2Handle, u8, u64, Otf2Handle, bool) -> u8,
    after: Option<extern "C" fn(Otf2Handle, u8, u64) -> u64>,
}

extern "C" fn always(_: Otf2Handle, _: u8, _: u64, _: Otf2Handle, _: bool) -> u8 {
    FLUSH
}

static CALLBACKS: FlushCallbacks = FlushCallbacks { before: always, after: None };

/// The result type of a function of the library.
pub trait Outcome {
    type Value;
    /// Returns the value, or why the call failed.
    fn value(self) -> Result<Self::Value, String>;
}

impl Outcome for Code {
    type Value = ();
    fn value(self) -> Result<(), String> {
        if self == 0 { Ok(()) } else { Err(format!("failed with code {self}")) }
    }
}

impl Outcome for Otf2Handle {
    type Value = Otf2Handle;
    fn value(self) -> Result<Otf2Handle, String> {
        if self.is_null() { Err("failed".into()) } else { Ok(self) }
    }
}

/// Declares functions of the library, whose first argument is a handle. Each has a method of the
/// owner of the handle, with the other arguments.
macro_rules! functions {
    ($($owner:ident {$(
        $visible:vis $method:ident = $name:ident($($argument:ident: $type:ty),*) -> $result:ty;
    )*})*) => {
        #[allow(non_snake_case)]
        pub struct Otf2 {
            library: Library,
            $($($name: unsafe extern "C" fn(Otf2Handle, $($type),*) -> $result,)*)*
        }

        impl Otf2 {
            fn of(library: Library) -> Result<Otf2, libloading::Error> {
                Ok(Otf2 {
                    // SAFETY: the types match the headers of version 3, which the file name of the
                    // library guarantees. `library` keeps the functions loaded.
                    $($($name: unsafe { *library.get(stringify!($name))? },)*)*
                    library,
                })
            }
        }

        $(impl $owner<'_> {$(
            #[allow(clippy::too_many_arguments)]
            $visible fn $method(
                &self,
                $($argument: $type),*
            ) -> Result<<$result as Outcome>::Value, String> {
                // SAFETY: the handle comes from this library and is open. Pointers are arguments
                // only of this file, which passes terminated strings and arrays with their lengths.
                let result = unsafe { (self.otf2.$name)(self.handle, $($argument),*) };
                result.value().map_err(|why| {
                    format!("{} of the OTF2 library {why}", stringify!($name))
                })
            }
        )*})*
    };
}

functions! {
    Archive {
        set_flush = OTF2_Archive_SetFlushCallbacks(callbacks: *const FlushCallbacks, data: Otf2Handle) -> Code;
        set_serial = OTF2_Archive_SetSerialCollectiveCallbacks() -> Code;
        open_events = OTF2_Archive_OpenEvtFiles() -> Code;
        event_writer = OTF2_Archive_GetEvtWriter(location: u64) -> Otf2Handle;
        close_event_writer = OTF2_Archive_CloseEvtWriter(writer: Otf2Handle) -> Code;
        close_events = OTF2_Archive_CloseEvtFiles() -> Code;
        open_definitions = OTF2_Archive_OpenDefFiles() -> Code;
        definition_writer = OTF2_Archive_GetDefWriter(location: u64) -> Otf2Handle;
        close_definition_writer = OTF2_Archive_CloseDefWriter(writer: Otf2Handle) -> Code;
        close_definitions = OTF2_Archive_CloseDefFiles() -> Code;
        global_writer = OTF2_Archive_GetGlobalDefWriter() -> Otf2Handle;
        close = OTF2_Archive_Close() -> Code;
    }
    EventWriter {
        pub enter = OTF2_EvtWriter_Enter(attributes: Option<&Attributes>, time: u64, region: u32) -> Code;
        pub leave = OTF2_EvtWriter_Leave(attributes: Option<&Attributes>, time: u64, region: u32) -> Code;
        pub put = OTF2_EvtWriter_RmaPut(attributes: Option<&Attributes>, time: u64, window: u32, peer: u32, bytes: u64, id: u64) -> Code;
        pub get = OTF2_EvtWriter_RmaGet(attributes: Option<&Attributes>, time: u64, window: u32, peer: u32, bytes: u64, id: u64) -> Code;
        pub atomic = OTF2_EvtWriter_RmaAtomic(attributes: Option<&Attributes>, time: u64, window: u32, peer: u32, kind: u8, sent: u64, back: u64, id: u64) -> Code;
        pub complete = OTF2_EvtWriter_RmaOpCompleteBlocking(attributes: Option<&Attributes>, time: u64, window: u32, id: u64) -> Code;
        count = OTF2_EvtWriter_GetNumberOfEvents(events: *mut u64) -> Code;
    }
    Definitions {
        pub clock = OTF2_GlobalDefWriter_WriteClockProperties(ticks_per_second: u64, offset: u64, length: u64, started: u64) -> Code;
        define_string = OTF2_GlobalDefWriter_WriteString(number: u32, text: *const c_char) -> Code;
        pub tree_node = OTF2_GlobalDefWriter_WriteSystemTreeNode(number: u32, name: u32, class: u32, parent: u32) -> Code;
        pub location_group = OTF2_GlobalDefWriter_WriteLocationGroup(number: u32, name: u32, kind: u8, node: u32, creator: u32) -> Code;
        pub location = OTF2_GlobalDefWriter_WriteLocation(number: u64, name: u32, kind: u8, events: u64, group: u32) -> Code;
        pub region = OTF2_GlobalDefWriter_WriteRegion(number: u32, name: u32, canonical: u32, description: u32, role: u8, paradigm: u8, flags: u32, file: u32, from_line: u32, to_line: u32) -> Code;
        define_group = OTF2_GlobalDefWriter_WriteGroup(number: u32, name: u32, kind: u8, paradigm: u8, flags: u32, count: u32, members: *const u64) -> Code;
        pub communicator = OTF2_GlobalDefWriter_WriteComm(number: u32, name: u32, group: u32, parent: u32, flags: u32) -> Code;
        pub window = OTF2_GlobalDefWriter_WriteRmaWin(number: u32, name: u32, communicator: u32, flags: u32) -> Code;
    }
}

impl Otf2 {
    pub fn load() -> Result<Otf2, String> {
        // SAFETY: loading runs the library's initialisers; OTF2 has none that change the process.
        let loaded = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
        let library = loaded.ok_or_else(|| {
            format!("--otf2 needs version 3 of the OTF2 library ({}), which is not installed; on Debian: apt install otf2-tools libotf2-trace-dev", NAMES.join(" or "))
        })?;
        Otf2::of(library).map_err(|e| format!("the OTF2 library lacks a function: {e}"))
    }

    /// Creates `directory/name.otf2`. The library fails if the directory exists.
    pub fn create(&self, directory: &Path, name: &str) -> Result<Archive<'_>, String> {
        type Open =
            unsafe extern "C" fn(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Otf2Handle;
        let (path, name) = (text(&directory.display().to_string()), text(name));
        // SAFETY: the type matches the headers of version 3, and both strings are null-terminated.
        let handle = unsafe {
            let open: Symbol<'_, Open> =
                self.library.get("OTF2_Archive_Open").map_err(|e| e.to_string())?;
            open(
                path.as_ptr(),
                name.as_ptr(),
                MODE_WRITE,
                CHUNK_EVENTS,
                CHUNK_DEFINITIONS,
                SUBSTRATE_POSIX,
                NO_COMPRESSION,
            )
        };
        if handle.is_null() {
            return Err(format!("the OTF2 library cannot create {}", directory.display()));
        }
        let new = Archive { otf2: self, handle };
        new.set_flush(&raw const CALLBACKS, std::ptr::null_mut())?;
        new.set_serial()?;
        new.open_events()?;
        Ok(new)
    }
}

pub struct Archive<'a> {
    otf2: &'a Otf2,
    handle: Otf2Handle,
}

impl Archive<'_> {
    pub fn events(&self, location: u64) -> Result<EventWriter<'_>, String> {
        let handle = self.event_writer(location)?;
        Ok(EventWriter { otf2: self.otf2, archive: self, handle })
    }

    /// Closes the event files and writes an empty definition file for each location, which readers
    /// require.
    pub fn local_definitions(&self, locations: impl Iterator<Item = u64>) -> Result<(), String> {
        self.close_events()?;
        self.open_definitions()?;
        for location in locations {
            self.close_definition_writer(self.definition_writer(location)?)?;
        }
        self.close_definitions()
    }

    pub fn definitions(&self) -> Result<Definitions<'_>, String> {
        let handle = self.global_writer()?;
        Ok(Definitions { otf2: self.otf2, handle, strings: Cell::new(0) })
    }

    pub fn end(self) -> Result<(), String> {
        self.close()
    }
}

/// Writer of the events of one location, which must be written in time order.
pub struct EventWriter<'a> {
    otf2: &'a Otf2,
    archive: &'a Archive<'a>,
    handle: Otf2Handle,
}

impl EventWriter<'_> {
    /// Closes the writer and returns the number of events.
    pub fn end(self) -> Result<u64, String> {
        let mut events = 0u64;
        self.count(&raw mut events)?;
        self.archive.close_event_writer(self.handle)?;
        Ok(events)
    }
}

/// Writer of the global definitions.
pub struct Definitions<'a> {
    otf2: &'a Otf2,
    handle: Otf2Handle,
    strings: Cell<u32>,
}

impl Definitions<'_> {
    /// Defines a string and returns its number.
    pub fn string(&self, value: &str) -> Result<u32, String> {
        let number = self.strings.replace(self.strings.get() + 1);
        self.define_string(number, text(value).as_ptr())?;
        Ok(number)
    }

    pub fn group(
        &self,
        number: u32,
        name: u32,
        kind: u8,
        paradigm: u8,
        members: &[u64],
    ) -> Result<(), String> {
        self.define_group(number, name, kind, paradigm, 0, members.len() as u32, members.as_ptr())
    }
}

/// Converts a string for C, truncated at the first null character.
fn text(value: &str) -> CString {
    let end = value.find('\0').unwrap_or(value.len());
    CString::new(&value[..end]).unwrap_or_default()
}
