//! Global definitions of an archive: clock, strings, ranks and their threads, regions, groups.

use super::ffi::{Code, Otf2Handle, call, checked, text};
use libloading::{Library, Symbol};
use std::cell::Cell;
use std::ffi::c_char;

const UNDEFINED: u32 = u32::MAX;
const THREAD: u8 = 1;
const PROCESS: u8 = 1;
pub const COMM_LOCATIONS: u8 = 4;
pub const COMM_GROUP: u8 = 5;

pub struct Definitions<'a> {
    pub(super) library: &'a Library,
    pub(super) writer: Otf2Handle,
    pub(super) strings: Cell<u32>,
}

impl Definitions<'_> {
    /// Defines the clock, from 0 to `length` ns. It starts at `started`, in ns since 1970.
    pub fn clock(&self, length: u64, started: u64) -> Result<(), String> {
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteClockProperties",
            fn(Otf2Handle, u64, u64, u64, u64),
            self.writer,
            1_000_000_000,
            0,
            length,
            started
        )
    }

    /// Defines a string and returns its number.
    pub fn string(&self, value: &str) -> Result<u32, String> {
        let number = self.strings.get();
        self.strings.set(number + 1);
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteString",
            fn(Otf2Handle, u32, *const c_char),
            self.writer,
            number,
            text(value).as_ptr()
        )?;
        Ok(number)
    }

    pub fn tree_node(
        &self,
        number: u32,
        name: u32,
        class: u32,
        parent: Option<u32>,
    ) -> Result<(), String> {
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteSystemTreeNode",
            fn(Otf2Handle, u32, u32, u32, u32),
            self.writer,
            number,
            name,
            class,
            parent.unwrap_or(UNDEFINED)
        )
    }

    pub fn location_group(&self, number: u32, name: u32, node: u32) -> Result<(), String> {
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteLocationGroup",
            fn(Otf2Handle, u32, u32, u8, u32, u32),
            self.writer,
            number,
            name,
            PROCESS,
            node,
            UNDEFINED
        )
    }

    pub fn location(&self, number: u64, name: u32, events: u64, group: u32) -> Result<(), String> {
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteLocation",
            fn(Otf2Handle, u64, u32, u8, u64, u32),
            self.writer,
            number,
            name,
            THREAD,
            events,
            group
        )
    }

    pub fn region(
        &self,
        number: u32,
        name: u32,
        empty: u32,
        role: u8,
        paradigm: u8,
    ) -> Result<(), String> {
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteRegion",
            fn(Otf2Handle, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32),
            self.writer,
            number,
            name,
            name,
            empty,
            role,
            paradigm,
            0,
            empty,
            0,
            0
        )
    }

    /// Defines a group of locations ([`COMM_LOCATIONS`]), or of ranks ([`COMM_GROUP`]). The members
    /// of the latter are indexes into the former.
    pub fn group(
        &self,
        number: u32,
        name: u32,
        kind: u8,
        paradigm: u8,
        members: &[u64],
    ) -> Result<(), String> {
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteGroup",
            fn(Otf2Handle, u32, u32, u8, u8, u32, u32, *const u64),
            self.writer,
            number,
            name,
            kind,
            paradigm,
            0,
            members.len() as u32,
            members.as_ptr()
        )
    }

    pub fn communicator(&self, number: u32, name: u32, group: u32) -> Result<(), String> {
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteComm",
            fn(Otf2Handle, u32, u32, u32, u32, u32),
            self.writer,
            number,
            name,
            group,
            UNDEFINED,
            0
        )
    }

    pub fn window(&self, number: u32, name: u32, communicator: u32) -> Result<(), String> {
        checked!(
            self.library,
            "OTF2_GlobalDefWriter_WriteRmaWin",
            fn(Otf2Handle, u32, u32, u32, u32),
            self.writer,
            number,
            name,
            communicator,
            0
        )
    }
}
