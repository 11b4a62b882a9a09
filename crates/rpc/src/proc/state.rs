//! A proc: one pass over parameters, and the buffer that holds them.
//!
//! Encoding starts in the buffer of the caller (the eager part of a message). When that is full,
//! everything moves to an *extra* buffer that the proc allocates
//! ([`portolan_engine::memory::large_buffer`]) and that can grow.
//!
//! Invariants: `summed <= at <= size`. The `size` bytes at `ptr` are the current buffer, the first
//! `at` of them are encoded or consumed (or reserved, see [`Proc::reserve`]), and the checksum
//! covers the first `summed`. The checksum catches up when its value is needed: one call for many
//! small parameters that are still in the cache.

use super::Fault;
use super::overflow::{Overflow, Source};
use crate::checksum::{Checksum, Method};
use portolan_engine::memory::large_buffer::LargeBuffer;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr;

pub const MAX_DEPTH: u32 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Encode,
    Decode,
    /// Free the memory that decoding has allocated.
    Free,
}

#[derive(Debug)]
enum Extra {
    None,
    Mine(LargeBuffer),
    /// The caller frees it with [`portolan_engine::memory::large_buffer::free`].
    Theirs,
}

/// A single pass over parameters. The buffer outlives `'a`.
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
    pub attached: Attached,
    buffer: PhantomData<&'a mut [u8]>,
}

/// Data that a caller attaches to a proc. The proc itself does not use it.
#[derive(Debug, Clone, Copy)]
pub struct Attached {
    pub class: *mut c_void,
    pub handle: *mut c_void,
    /// Flags, cleared by [`Proc::reset`].
    pub flags: u8,
}

impl<'a> Proc<'a> {
    /// Creates a proc that encodes, at first into `buf`, which may be empty.
    pub fn encoder(buf: &'a mut [u8], method: Method) -> Proc<'a> {
        // SAFETY: `buf` is borrowed for `'a`, so its bytes stay valid for writes during `'a`.
        unsafe { Proc::over(buf.as_mut_ptr(), buf.len(), Op::Encode, method, true) }
    }

    /// Creates a proc that decodes `bytes`.
    pub fn decoder(bytes: &'a [u8], method: Method) -> Proc<'a> {
        let at = bytes.as_ptr().cast_mut();
        // SAFETY: `bytes` is borrowed for `'a`, so it is valid for reads. Decoding does not write.
        unsafe { Proc::over(at, bytes.len(), Op::Decode, method, true) }
    }

    pub fn freer() -> Proc<'static> {
        // SAFETY: the buffer is empty.
        unsafe { Proc::over(ptr::null_mut(), 0, Op::Free, Method::None, false) }
    }

    /// Creates a proc over a buffer. With `trailer`, [`Proc::flush`] writes or checks a trailer.
    ///
    /// # Safety
    /// The `size` bytes at `buf` must be valid for `'a`: for reads to decode, for writes to encode.
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

    /// Restarts the proc over another buffer, with the same checksum method.
    ///
    /// # Safety
    /// The contract of [`Proc::over`] applies.
    pub unsafe fn reset(&mut self, buf: *mut u8, size: usize, op: Op) {
        let (method, trailer) = (self.sum.method(), self.trailer);
        let (attached, source) = (Attached { flags: 0, ..self.attached }, self.source);
        // SAFETY: the caller guarantees the contract of `Proc::over`.
        *self = unsafe { Proc::over(buf, size, op, method, trailer) };
        (self.attached, self.source) = (attached, source);
    }

    /// Sets the function that allocates extra buffers; the default allocates on the heap.
    pub fn set_source(&mut self, source: Source) {
        self.source = source;
    }

    #[inline]
    pub fn op(&self) -> Op {
        if self.undoing > 0 { Op::Free } else { self.op }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn used(&self) -> usize {
        self.at
    }

    /// Returns the number of bytes left in the current buffer. Encoding may exceed it.
    #[inline]
    pub fn left(&self) -> usize {
        self.size - self.at
    }

    pub fn overflow(&self) -> bool {
        !matches!(self.extra, Extra::None)
    }

    /// Returns the extra buffer, or `None` if there is none or memory is exhausted. The caller may
    /// free it, so a buffer shared with the node is first moved to the heap.
    pub fn extra(&mut self) -> Option<*mut u8> {
        if let Extra::Mine(long) = &self.extra
            && long.shm_key().is_some()
        {
            self.source = LargeBuffer::heap;
            self.grow_to(self.size).ok()?;
        }
        self.overflow().then_some(self.ptr)
    }

    /// Sets whether the proc frees the extra buffer, the default. Otherwise the caller frees it
    /// with `portolan_engine::memory::large_buffer::free`. Returns `Argument` if there is no extra
    /// buffer.
    pub fn set_extra_is_mine(&mut self, mine: bool) -> Result<(), Fault> {
        let Some(at) = self.extra() else {
            return Err(Fault::argument("there is no extra buffer"));
        };
        match (mine, std::mem::replace(&mut self.extra, Extra::Theirs)) {
            (true, Extra::Mine(long)) => self.extra = Extra::Mine(long),
            // SAFETY: `into_heap` gave the buffer away in an earlier call, with this address and
            // size. The caller gives it back, so it has not been freed.
            (true, _) => self.extra = Extra::Mine(unsafe { LargeBuffer::from_heap(at, self.size) }),
            (false, Extra::Mine(long)) => {
                long.into_heap();
            }
            (false, _) => {}
        }
        Ok(())
    }

    /// Takes the encoded parameters together with the extra buffer that holds them. Returns `None`
    /// if they are in the buffer of the caller, or if the caller frees the extra buffer.
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

    /// Returns the encoded bytes, wherever they are; when decoding, the consumed bytes.
    pub fn encoded(&self) -> &[u8] {
        // SAFETY: the first `at` bytes of the current buffer are written.
        unsafe { slice(self.ptr, self.at) }
    }

    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Records `fault` unless an earlier one is recorded, and returns the recorded one.
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

    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let to = self.reserve(bytes.len())?;
        // SAFETY: `reserve` has made room for them at `to`. The proc has exclusive access to its
        // buffer, so the shared slice `bytes` does not overlap it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Reserves `bytes` bytes and counts them as encoded. The caller must write them before it
    /// encodes anything else, because the buffer may move then.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<*mut u8, Fault> {
        self.sound()?;
        if self.op != Op::Encode || self.closed {
            return Err(self.misused("encode"));
        }
        if bytes > self.left() {
            self.spill(bytes)?;
        }
        // SAFETY: `at + bytes <= size`. A null buffer has size 0, so the offset is 0.
        let to = unsafe { self.ptr.add(self.at) };
        self.at += bytes;
        Ok(to)
    }

    /// Overwrites bytes that are encoded but not yet part of the checksum.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        self.sound()?;
        let end = at.checked_add(bytes.len());
        if self.op != Op::Encode || at < self.summed || end.is_none_or(|end| end > self.at) {
            return Err(self.fail(Fault::argument("only encoded bytes can be overwritten")));
        }
        // SAFETY: the range lies within the first `at` bytes of the buffer. The proc has exclusive
        // access to its buffer, so the shared slice `bytes` does not overlap it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr.add(at), bytes.len()) };
        Ok(())
    }

    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        self.sound()?;
        if self.op != Op::Decode || self.closed {
            return Err(self.misused("decode"));
        }
        if bytes > self.left() {
            return Err(self.short(bytes as u64));
        }
        // SAFETY: `at + bytes <= size`, and the decoded buffer stays unchanged in place for `'a`.
        let taken = unsafe { slice(self.ptr.add(self.at), bytes) };
        self.at += bytes;
        Ok(taken)
    }

    #[inline]
    pub fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut value = [0; N];
        value.copy_from_slice(self.take(N)?);
        Ok(value)
    }

    pub fn put_size(&mut self, size: usize) -> Result<(), Fault> {
        self.put(&(size as u64).to_le_bytes())
    }

    /// Consumes a size, or a count of elements of at least one byte each. The result never exceeds
    /// the number of bytes left.
    pub fn take_size(&mut self) -> Result<usize, Fault> {
        let size = u64::from_le_bytes(self.take_array()?);
        match usize::try_from(size) {
            Ok(bytes) if bytes <= self.left() => Ok(bytes),
            _ => Err(self.short(size)),
        }
    }

    /// Encodes from `data` or decodes to `data`. Does nothing when freeing.
    ///
    /// # Safety
    /// The `bytes` bytes at `data` must be valid for reads when encoding, for writes when decoding.
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
                // SAFETY: the caller guarantees that `data` is valid, and `reserve` has made room
                // at `to`. The ranges may overlap if the caller encodes from the buffer itself.
                unsafe { ptr::copy(data, to, bytes) };
            }
            _ => {
                let from = self.take(bytes)?;
                // SAFETY: by contract, `data` is valid for writes; `from` has `bytes` bytes.
                unsafe { ptr::copy(from.as_ptr(), data, bytes) };
            }
        }
        Ok(())
    }

    /// Returns the address of `bytes` bytes in the buffer: room to write when encoding, the bytes
    /// to read when decoding, null when freeing.
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

    pub fn position(&self) -> *mut u8 {
        self.ptr.wrapping_add(self.at)
    }

    /// Moves the position within the buffer, but not to before the bytes that the checksum covers.
    pub fn set_position(&mut self, to: *mut u8) -> Result<(), Fault> {
        match (to as usize).checked_sub(self.ptr as usize) {
            Some(at) if at <= self.size && at >= self.summed => {
                self.at = at;
                Ok(())
            }
            _ => Err(self.fail(Fault::argument("the position is not in the proc's buffer"))),
        }
    }

    /// Checks that [`Proc::in_place`] returned the `bytes` bytes at `data`, still in the buffer.
    pub fn check_in_place(&mut self, data: *const u8, bytes: usize) -> Result<(), Fault> {
        if self.op() == Op::Free {
            return Ok(());
        }
        self.sound()?;
        let end = (data as usize).checked_sub(self.ptr as usize).and_then(|o| o.checked_add(bytes));
        match end {
            Some(end) if end <= self.at => Ok(()),
            _ => Err(self.fail(Fault::argument(
                "the position is not in the proc's buffer (encoding in the meantime can move the buffer)",
            ))),
        }
    }

    /// Makes the buffer at least `size` bytes long. Returns `Overflow` if fewer bytes are there to
    /// decode, `Memory` if memory is exhausted.
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

    /// Enters a level of nesting. Returns `Protocol` if the depth exceeds [`MAX_DEPTH`].
    #[inline]
    pub fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fail(Fault::Protocol(format!("nested deeper than {MAX_DEPTH}"))));
        }
        Ok(())
    }

    #[inline]
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Makes the proc free, whatever its mode, until [`Proc::end_undo`]. A struct uses this to free
    /// its decoded fields if decoding fails halfway. Calls nest.
    pub fn begin_undo(&mut self) {
        self.undoing += 1;
    }

    pub fn end_undo(&mut self) {
        self.undoing = self.undoing.saturating_sub(1);
    }
}

/// Returns the `len` bytes at `ptr`. A null address is valid if `len` is 0.
///
/// # Safety
/// The bytes must be valid for reads for `'a`.
pub(super) unsafe fn slice<'a>(ptr: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller guarantees that the bytes are valid for reads for `'a`.
    unsafe { std::slice::from_raw_parts(ptr, len) }
}
