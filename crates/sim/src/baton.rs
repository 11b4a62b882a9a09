//! The baton, which decides which thread of the simulated machine runs.
//!
//! Each thread of the machine is a thread of the C library with its own stack and thread-local
//! values, but the kernel need not schedule them. On x86-64, the one core that runs the machine
//! switches between them by itself ([`switch`]): it saves the registers, and continues with the
//! stack pointer and thread pointer of the other thread. This takes tens of nanoseconds; two
//! semaphores take microseconds. The kernel thread of each suspended thread sleeps in code that
//! uses no stack ([`park`]), and gets its own stack back when the thread is about to end.
//!
//! On other architectures, and with `SIM_SEMAPHORES=1` (for debuggers, which only know kernel
//! threads), each thread sleeps on a semaphore until it gets the baton.
//!
//! Invariant: a stack is used by the core that has the baton, or after [`Baton::leave`] by the
//! kernel thread of its owner, which is woken only when the core has left the stack.

use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

#[repr(C)]
struct SavedRegisters {
    stack: UnsafeCell<usize>,
    thread_pointer: UnsafeCell<usize>,
}

/// States of a kernel thread, besides 0 for running: parked, and permitted to end.
const PARKED: u32 = 1;
const MAY_END: u32 = 2;

struct Place {
    context: SavedRegisters,
    kernel: AtomicU32,
    semaphore: UnsafeCell<libc::sem_t>,
}

/// The state of one thread that can hold the baton. It is valid until [`Baton::free`].
#[derive(Clone, Copy)]
pub struct Baton(*mut Place);

// SAFETY: the fields that several threads access at a time are atomics or semaphores. The holder of
// the baton alone accesses the others.
unsafe impl Send for Baton {}

/// The thread that has left for good and whose kernel thread has not been woken yet.
static LEFT: AtomicPtr<Place> = AtomicPtr::new(std::ptr::null_mut());

/// Returns whether the core switches threads by itself.
fn by_itself() -> bool {
    static YES: OnceLock<bool> = OnceLock::new();
    *YES.get_or_init(|| {
        /// The bit of `HWCAP2_FSGSBASE`: programs may set their thread pointer.
        const MAY_SET: libc::c_ulong = 1 << 1;
        // SAFETY: the call only reads a table of the process.
        let may = unsafe { libc::getauxval(libc::AT_HWCAP2) } & MAY_SET != 0;
        cfg!(target_arch = "x86_64") && may && std::env::var_os("SIM_SEMAPHORES").is_none()
    })
}

impl Baton {
    pub fn new() -> Baton {
        let context =
            SavedRegisters { stack: UnsafeCell::new(0), thread_pointer: UnsafeCell::new(0) };
        // SAFETY: `sem_t` is plain data, and `sem_init` initialises it before its first use.
        unsafe {
            let semaphore = UnsafeCell::new(std::mem::zeroed());
            let place = Box::new(Place { context, kernel: AtomicU32::new(0), semaphore });
            libc::sem_init(place.semaphore.get(), 0, 0);
            Baton(Box::into_raw(place))
        }
    }

    fn place(&self) -> &Place {
        // SAFETY: the place is valid until `free`, after which nothing uses it.
        unsafe { &*self.0 }
    }

    fn wait(self) {
        // SAFETY: the semaphore is valid until `free`. An interrupted wait is repeated.
        while unsafe { libc::sem_wait(self.place().semaphore.get()) } != 0 {}
    }

    fn post(self) {
        // SAFETY: the semaphore is valid until `free`.
        unsafe { libc::sem_post(self.place().semaphore.get()) };
    }

    /// Waits for the first turn of a new thread.
    pub fn enter(self) {
        if !by_itself() {
            return self.wait();
        }
        // SAFETY: the place outlives the thread. All signals are blocked, because a handler must
        // not use the stack, which belongs to the core from now on.
        unsafe {
            let mut all = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
            park(&self.place().context, self.place().kernel.as_ptr());
        }
        wake_left();
    }

    /// Waits until a new thread is parked for its first turn, so that the core can switch to it.
    pub fn await_entry(self) {
        if !by_itself() {
            return;
        }
        while self.place().kernel.load(Ordering::Acquire) != PARKED {
            // SAFETY: `sched_yield` accesses no memory. The call goes by number because the
            // function of that name is the simulated one.
            unsafe { libc::syscall(libc::SYS_sched_yield) };
        }
    }

    /// Passes the baton from the calling thread to another one, and waits to get it back.
    pub fn pass(self, to: Baton) {
        if !by_itself() {
            to.post();
            return self.wait();
        }
        // SAFETY: the other thread waits in `enter` or here, so its saved context is complete.
        unsafe { switch(&self.place().context, &to.place().context) };
        wake_left();
    }

    /// Passes the baton on for good, because the calling thread ends.
    pub fn leave(self, to: Baton) {
        if !by_itself() {
            return to.post();
        }
        LEFT.store(self.0, Ordering::Relaxed);
        // SAFETY: the other thread waits in `enter` or `pass`, so its saved context is complete.
        // The kernel thread that owns this stack continues after the call.
        unsafe { switch(&self.place().context, &to.place().context) };
    }

    pub fn free(self) {
        // SAFETY: `new` made the box, and the thread has ended, so nothing uses it any more.
        unsafe {
            libc::sem_destroy(self.place().semaphore.get());
            drop(Box::from_raw(self.0));
        }
    }
}

/// Wakes the kernel thread of a thread that ends, whose stack the core has left.
fn wake_left() {
    let left = LEFT.swap(std::ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: a place is valid until its thread has been joined.
    if let Some(place) = unsafe { left.as_ref() } {
        let word = &place.kernel;
        word.store(MAY_END, Ordering::Release);
        // SAFETY: the word is part of the place, which is valid here.
        unsafe { wake(word.as_ptr()) };
    }
}

unsafe extern "C" {
    /// Saves the caller's context in `from` and continues with the context in `to`.
    #[link_name = "sim_switch"]
    fn switch(from: *const SavedRegisters, to: *const SavedRegisters);
    /// Saves the context and puts its kernel thread to sleep. Any kernel thread may switch to it.
    #[link_name = "sim_park"]
    fn park(context: *const SavedRegisters, word: *mut u32);
    /// Wakes the kernel thread that is parked on a word.
    #[link_name = "sim_wake"]
    fn wake(word: *mut u32);
}

// `sim_switch` and `sim_park` save registers in the same order, so either can resume the other.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".macro sim_save",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov [rdi], rsp",
    "mov rax, qword ptr fs:[0]",
    "mov [rdi + 8], rax",
    ".endm",
    ".macro sim_restore",
    "ldmxcsr [rsp]",
    "fldcw [rsp + 4]",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".endm",
    ".global sim_switch",
    "sim_switch:",
    "sim_save",
    "mov rsp, [rsi]",
    "mov rax, [rsi + 8]",
    "wrfsbase rax",
    "sim_restore",
    ".global sim_park",
    "sim_park:",
    "sim_save",
    "mov rbx, rdi",
    "mov r12, rsi",
    // The code below does not use the stack.
    "mov dword ptr [r12], 1",
    "2: mov eax, 202",
    "mov rdi, r12",
    "mov esi, 128",
    "mov edx, 1",
    "xor r10d, r10d",
    "syscall",
    "cmp dword ptr [r12], 1",
    "je 2b",
    "mov rsp, [rbx]",
    "sim_restore",
    ".global sim_wake",
    "sim_wake:",
    "mov eax, 202",
    "mov esi, 129",
    "mov edx, 1",
    "syscall",
    "ret",
);

#[cfg(not(target_arch = "x86_64"))]
mod none {
    //! Stubs that are never called: without x86-64 the machine uses semaphores.
    #[unsafe(no_mangle)]
    extern "C" fn sim_switch(_: *const super::SavedRegisters, _: *const super::SavedRegisters) {}
    #[unsafe(no_mangle)]
    extern "C" fn sim_park(_: *const super::SavedRegisters, _: *mut u32) {}
    #[unsafe(no_mangle)]
    extern "C" fn sim_wake(_: *mut u32) {}
}
