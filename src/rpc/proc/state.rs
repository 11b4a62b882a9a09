//! A proc: one pass over parameters, and the buffer that it goes over.
//!
//! Encoding begins in the buffer that it was given (the eager part of a message).
//! When that is full, everything moves to an *extra* buffer of the proc's own
//! ([`crate::memory::large_buffer`]), which grows; from then on the extra buffer holds the whole
//! message.
//!
//! Invariants: `at <= size`, the first `size` bytes at `ptr` are the current
//! buffer, the first `at` of them are encoded or consumed, and the checksum covers
//! the first `summed <= at`. It catches up when someone asks for it, over bytes
//! that are still in the cache, so that small parameters cost no checksum each,
//! and bytes that a caller writes by itself ([`Proc::reserve`]) count as written.

use super::Fault;
use super::overflow::{Overflow, Source};
use crate::memory::large_buffer::LargeBuffer;
use crate::rpc::checksum::{Checksum, Method};
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr;

/// Deepest nesting of values.
pub const MAX_DEPTH: u32 = 128;

/// What a proc does with parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Parameters become bytes.
    Encode,
    /// Bytes become parameters.
    Decode,
    /// What decoding has allocated is freed.
    Free,
}

/// The buffer beyond the one that was given.
#[derive(Debug)]
enum Extra {
    None,
    Mine(LargeBuffer),
    /// Somebody frees it, by [`crate::memory::large_buffer::free`].
    Theirs,
}

/// One pass over parameters. The buffer outlives `'a`.
#[derive(Debug)]
pub struct Proc<'a> {
    pub(super) ptr: *mut u8,
    pub(super) size: usize,
    pub(super) at: usize,
    pub(super) op: Op,
    fault: Option<Fault>,
    undoing: u32,
    depth: u32,
    extra: Extra,
    pub(super) source: Source,
    pub(super) trailer: bool,
    pub(super) closed: bool,
    pub(super) summed: usize,
    pub(super) sum: Checksum,
    /// What the caller has attached: its class, its handle, its flags.
    pub(crate) attached: Attached,
    buffer: PhantomData<&'a mut [u8]>,
}

/// What a caller attaches to a proc; the proc does not look at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attached {
    /// A class of RPCs.
    pub class: *mut c_void,
    /// A call.
    pub handle: *mut c_void,
    /// Flags, cleared by [`Proc::reset`].
    pub flags: u8,
}

impl<'a> Proc<'a> {
    /// Encodes, first into `buf`, which may be empty.
    pub fn encoder(buf: &'a mut [u8], method: Method) -> Proc<'a> {
        // SAFETY: the borrow lasts as long as the proc.
        unsafe { Proc::over(buf.as_mut_ptr(), buf.len(), Op::Encode, method, true) }
    }

    /// Decodes what is in `bytes`.
    pub fn decoder(bytes: &'a [u8], method: Method) -> Proc<'a> {
        let at = bytes.as_ptr().cast_mut();
        // SAFETY: the borrow lasts as long as the proc; decoding does not write.
        unsafe { Proc::over(at, bytes.len(), Op::Decode, method, true) }
    }

    /// Frees.
    pub fn freer() -> Proc<'static> {
        // SAFETY: there is no buffer.
        unsafe { Proc::over(ptr::null_mut(), 0, Op::Free, Method::None, false) }
    }

    /// A proc over a buffer; with `trailer`, [`Proc::flush`] writes or checks one.
    ///
    /// # Safety
    /// The `size` bytes at `buf` must be valid for `'a`: for reads to decode, for
    /// writes to encode.
    pub unsafe fn over(buf: *mut u8, size: usize, op: Op, method: Method, trailer: bool) -> Self {
        Proc {
            ptr: buf,
            size: if buf.is_null() { 0 } else { size },
            at: 0,
            op,
            fault: None,
            undoing: 0,
            depth: 0,
            extra: Extra::None,
            source: LargeBuffer::heap,
            trailer: trailer && method != Method::None,
            closed: false,
            summed: 0,
            sum: Checksum::new(method),
            attached: Attached { class: ptr::null_mut(), handle: ptr::null_mut(), flags: 0 },
            buffer: PhantomData,
        }
    }

    /// Starts again over another buffer, with the same checksum method.
    ///
    /// # Safety
    /// As [`Proc::over`].
    pub unsafe fn reset(&mut self, buf: *mut u8, size: usize, op: Op) {
        let (method, trailer) = (self.sum.method(), self.trailer);
        let (attached, source) = (Attached { flags: 0, ..self.attached }, self.source);
        // SAFETY: the caller's promise.
        *self = unsafe { Proc::over(buf, size, op, method, trailer) };
        (self.attached, self.source) = (attached, source);
    }

    /// Has extra buffers from somewhere else than the heap.
    pub(crate) fn set_source(&mut self, source: Source) {
        self.source = source;
    }

    /// What the pass does.
    #[inline]
    pub fn op(&self) -> Op {
        if self.undoing > 0 { Op::Free } else { self.op }
    }

    /// Bytes of the current buffer.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes encoded or consumed.
    pub fn used(&self) -> usize {
        self.at
    }

    /// Bytes left in the current buffer. Encoding may go beyond.
    #[inline]
    pub fn left(&self) -> usize {
        self.size - self.at
    }

    /// Whether encoding has left the buffer that it was given.
    pub fn overflow(&self) -> bool {
        !matches!(self.extra, Extra::None)
    }

    /// The extra buffer. It is one that a caller may free from now on, so what lay
    /// elsewhere moves.
    pub fn extra(&mut self) -> Option<*mut u8> {
        if let Extra::Mine(long) = &self.extra
            && long.shm_key().is_some()
        {
            self.source = LargeBuffer::heap;
            self.grow_to(self.size).ok()?;
        }
        self.overflow().then_some(self.ptr)
    }

    /// Whether the extra buffer is freed with the proc, as it is at first. If not,
    /// somebody calls `crate::memory::large_buffer::free` with it.
    pub fn set_extra_is_mine(&mut self, mine: bool) -> Result<(), Fault> {
        let Some(at) = self.extra() else {
            return Err(Fault::argument("there is no extra buffer"));
        };
        match (mine, std::mem::replace(&mut self.extra, Extra::Theirs)) {
            (true, Extra::Mine(long)) => self.extra = Extra::Mine(long),
            // SAFETY: it was given away below, and nobody has freed it, or the caller
            // would not give it back.
            (true, _) => self.extra = Extra::Mine(unsafe { LargeBuffer::from_heap(at, self.size) }),
            (false, Extra::Mine(long)) => {
                long.into_heap();
            }
            (false, _) => {}
        }
        Ok(())
    }

    /// What is encoded, with the extra buffer in which it lies; none where it lies in the
    /// buffer that was given, or the extra buffer is somebody else's.
    pub fn take_encoded(&mut self) -> Option<Overflow> {
        match std::mem::replace(&mut self.extra, Extra::None) {
            Extra::Mine(long) => {
                let len = std::mem::take(&mut self.at);
                (self.ptr, self.size, self.summed) = (ptr::null_mut(), 0, 0);
                Some(Overflow::new(long, len))
            }
            other => {
                self.extra = other;
                None
            }
        }
    }

    /// What is encoded, wherever it lies; when decoding, what is consumed.
    pub fn encoded(&self) -> &[u8] {
        // SAFETY: the first `at` bytes of the current buffer are written.
        unsafe { slice(self.ptr, self.at) }
    }

    /// The first fault, if there was one.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Keeps the first fault, and gives it back.
    #[cold]
    pub fn fail(&mut self, fault: Fault) -> Fault {
        self.fault.get_or_insert(fault).clone()
    }

    #[inline]
    pub(super) fn sound(&self) -> Result<(), Fault> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err(fault.clone()),
        }
    }

    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let to = self.reserve(bytes.len())?;
        // SAFETY: `to` has room for them; the caller's bytes are borrowed shared,
        // the buffer is the proc's alone.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Makes room for `bytes` bytes and counts them as encoded. The caller writes
    /// them before it encodes anything else, because the buffer may move then.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<*mut u8, Fault> {
        self.sound()?;
        if self.op != Op::Encode || self.closed {
            return Err(self.misused("encode"));
        }
        if bytes > self.left() {
            self.spill(bytes)?;
        }
        // SAFETY: `at + bytes <= size`; a null buffer has no bytes and no offset.
        let to = unsafe { self.ptr.add(self.at) };
        self.at += bytes;
        Ok(to)
    }

    /// Overwrites bytes that are encoded already, but not yet in the checksum.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        self.sound()?;
        let end = at.checked_add(bytes.len());
        if self.op != Op::Encode || at < self.summed || end.is_none_or(|end| end > self.at) {
            return Err(self.fail(Fault::argument("only what is encoded can be overwritten")));
        }
        // SAFETY: the range is inside what is encoded; the buffer is the proc's.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr.add(at), bytes.len()) };
        Ok(())
    }

    /// Consumes bytes.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        self.sound()?;
        if self.op != Op::Decode || self.closed {
            return Err(self.misused("decode"));
        }
        if bytes > self.left() {
            return Err(self.short(bytes as u64));
        }
        // SAFETY: `at + bytes <= size`, and what is decoded does not move or
        // change for `'a`.
        let taken = unsafe { slice(self.ptr.add(self.at), bytes) };
        self.at += bytes;
        Ok(taken)
    }

    /// Consumes as many bytes as a value has.
    #[inline]
    pub fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut value = [0; N];
        value.copy_from_slice(self.take(N)?);
        Ok(value)
    }

    /// Appends a size or count.
    pub fn put_size(&mut self, size: usize) -> Result<(), Fault> {
        self.put(&(size as u64).to_le_bytes())
    }

    /// Consumes a size or count of things that have at least a byte each: there
    /// are as many bytes left.
    pub fn take_size(&mut self) -> Result<usize, Fault> {
        let size = u64::from_le_bytes(self.take_array()?);
        match usize::try_from(size) {
            Ok(bytes) if bytes <= self.left() => Ok(bytes),
            _ => Err(self.short(size)),
        }
    }

    /// Goes over `bytes` bytes at `data` as the proc does: appends or consumes
    /// them; freeing does nothing.
    ///
    /// # Safety
    /// `data` must be valid for that: for reads to encode, for writes to decode.
    #[inline]
    pub unsafe fn transfer(&mut self, data: *mut u8, bytes: usize) -> Result<(), Fault> {
        if self.op() == Op::Free {
            return Ok(());
        }
        if bytes > 0 && data.is_null() {
            return Err(self.fail(Fault::argument("the parameter's address is null")));
        }
        match self.op {
            Op::Encode => {
                let to = self.reserve(bytes)?;
                // SAFETY: the caller vouches for `data`; `to` has room. They may
                // overlap where the caller encodes out of the buffer itself.
                unsafe { ptr::copy(data, to, bytes) };
            }
            _ => {
                let from = self.take(bytes)?;
                // SAFETY: as above.
                unsafe { ptr::copy(from.as_ptr(), data, bytes) };
            }
        }
        Ok(())
    }

    /// Goes over bytes in place: room to write into, or the bytes to read.
    pub fn in_place(&mut self, bytes: usize) -> Result<*mut u8, Fault> {
        match self.op() {
            Op::Encode => self.reserve(bytes),
            Op::Decode => {
                let at = self.position();
                self.take(bytes).map(|_| at)
            }
            Op::Free => Ok(ptr::null_mut()),
        }
    }

    /// Where the proc stands in the buffer.
    pub fn position(&self) -> *mut u8 {
        self.ptr.wrapping_add(self.at)
    }

    /// Makes it stand elsewhere in the buffer, but not before what the checksum
    /// has already gone over.
    pub fn set_position(&mut self, to: *mut u8) -> Result<(), Fault> {
        match (to as usize).checked_sub(self.ptr as usize) {
            Some(at) if at <= self.size && at >= self.summed => {
                self.at = at;
                Ok(())
            }
            _ => Err(self.fail(Fault::argument("the position is not in the proc's buffer"))),
        }
    }

    /// Checks that `bytes` bytes at `data` were given out by [`Proc::in_place`].
    pub fn check_in_place(&mut self, data: *const u8, bytes: usize) -> Result<(), Fault> {
        if self.op() == Op::Free {
            return Ok(());
        }
        self.sound()?;
        let end = (data as usize).checked_sub(self.ptr as usize).and_then(|o| o.checked_add(bytes));
        match end {
            Some(end) if end <= self.at => Ok(()),
            _ => Err(self.fail(Fault::argument(
                "the place is not in the proc's buffer (any more: encoding in between can move it)",
            ))),
        }
    }

    /// Sees to it that the buffer has `size` bytes at least.
    ///
    /// # Errors
    /// `Overflow` where that is more than there is to decode; `Memory`.
    pub fn set_size(&mut self, size: usize) -> Result<(), Fault> {
        match self.op() {
            Op::Free => Ok(()),
            _ if size <= self.size => Ok(()),
            Op::Decode => Err(self.short((size - self.at) as u64)),
            Op::Encode => self.grow_to(size),
        }
    }

    #[cold]
    fn spill(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.at.checked_add(bytes) {
            Some(needed) => self.grow_to(needed.max(self.size.saturating_mul(2))),
            None => Err(self.fail(Fault::Memory(usize::MAX))),
        }
    }

    fn grow_to(&mut self, size: usize) -> Result<(), Fault> {
        let Some(mut new) = (self.source)(size) else {
            return Err(self.fail(Fault::Memory(size)));
        };
        new[..self.at].copy_from_slice(self.encoded());
        (self.ptr, self.size) = (new.address(), new.len());
        self.extra = Extra::Mine(new);
        Ok(())
    }

    #[cold]
    fn short(&mut self, needed: u64) -> Fault {
        let left = self.left();
        self.fail(Fault::Overflow { needed, left })
    }

    #[cold]
    fn misused(&mut self, call: &str) -> Fault {
        let text = if self.closed {
            format!("cannot {call}: the proc is flushed")
        } else {
            format!("cannot {call} with a proc that is to {:?}", self.op)
        };
        self.fail(Fault::Argument(text))
    }

    /// One level of nesting more; [`Proc::leave`] ends it.
    #[inline]
    pub fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fail(Fault::Protocol(format!("nested deeper than {MAX_DEPTH}"))));
        }
        Ok(())
    }

    /// Ends a level of nesting.
    #[inline]
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// From now on the proc frees, whatever it does else: a struct whose decoding
    /// has failed gives back what it has decoded so far. Nests.
    pub fn begin_undo(&mut self) {
        self.undoing += 1;
    }

    /// Ends [`Proc::begin_undo`].
    pub fn end_undo(&mut self) {
        self.undoing = self.undoing.saturating_sub(1);
    }
}

/// Some bytes; a null address has none.
///
/// # Safety
/// The bytes must be valid for reads for `'a`.
pub(super) unsafe fn slice<'a>(ptr: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(ptr, len) }
}
