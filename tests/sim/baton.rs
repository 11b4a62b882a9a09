//! The baton: which of the machine's threads runs.
//!
//! Each thread of the machine is a thread of the C library with its own stack and its own
//! thread-local values, but the kernel need not choose among them: on x86-64 the one core that
//! runs the machine goes from thread to thread by itself ([`switch`]). It saves the registers, takes the other
//! thread's stack and thread pointer, and goes on there, in some tens of nanoseconds, where two
//! semaphores would take some microseconds. The kernel's thread of each sleeps meanwhile, in
//! code that uses no stack ([`park`]), and gets its own back when it is to end.
//!
//! Elsewhere, and with `SIM_SEMAPHORES=1` (for debuggers, which know threads by the kernel's),
//! each thread sleeps on a semaphore until it is given the baton.
//!
//! Invariant: a stack is used by the core that has the baton, or after [`Baton::leave`] by the
//! kernel's thread of its owner, which is woken only when the core has left the stack.

use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// What a thread that does not run has left: its stack and its thread pointer.
#[repr(C)]
struct Context {
    stack: UnsafeCell<usize>,
    thread_pointer: UnsafeCell<usize>,
}

/// States of a thread of the kernel: it runs as always, is parked, or may end.
const PARKED: u32 = 1;
const MAY_END: u32 = 2;

struct Place {
    context: Context,
    kernel: AtomicU32,
    semaphore: UnsafeCell<libc::sem_t>,
}

/// One thread's place in the order of turns. It lives until [`Baton::free`].
#[derive(Clone, Copy)]
pub struct Baton(*mut Place);

// SAFETY: what several threads touch at a time is atomic or a semaphore.
unsafe impl Send for Baton {}

/// The thread that has left for good, whose kernel's thread is yet to be woken.
static LEFT: AtomicPtr<Place> = AtomicPtr::new(std::ptr::null_mut());

/// Whether the core switches by itself.
fn by_itself() -> bool {
    static YES: OnceLock<bool> = OnceLock::new();
    *YES.get_or_init(|| {
        /// The kernel lets programs set their thread pointer (`HWCAP2_FSGSBASE`).
        const MAY_SET: libc::c_ulong = 1 << 1;
        // SAFETY: the call reads a table of the process.
        let may = unsafe { libc::getauxval(libc::AT_HWCAP2) } & MAY_SET != 0;
        cfg!(target_arch = "x86_64") && may && std::env::var_os("SIM_SEMAPHORES").is_none()
    })
}

impl Baton {
    pub fn new() -> Baton {
        let context = Context { stack: UnsafeCell::new(0), thread_pointer: UnsafeCell::new(0) };
        // SAFETY: sem_t is plain data, set up by sem_init before its first use.
        unsafe {
            let semaphore = UnsafeCell::new(std::mem::zeroed());
            let place = Box::new(Place { context, kernel: AtomicU32::new(0), semaphore });
            libc::sem_init(place.semaphore.get(), 0, 0);
            Baton(Box::into_raw(place))
        }
    }

    fn place(&self) -> &Place {
        // SAFETY: it lives until `free`, after which nothing uses it.
        unsafe { &*self.0 }
    }

    fn wait(self) {
        // SAFETY: the semaphore lives; an interrupted wait is begun again.
        while unsafe { libc::sem_wait(self.place().semaphore.get()) } != 0 {}
    }

    fn post(self) {
        // SAFETY: the semaphore lives.
        unsafe { libc::sem_post(self.place().semaphore.get()) };
    }

    /// A new thread waits for its first turn.
    pub fn enter(self) {
        if !by_itself() {
            return self.wait();
        }
        // SAFETY: the place lives longer than the thread. No signal may come in on the stack,
        // which is the core's from now on.
        unsafe {
            let mut all = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
            park(&self.place().context, self.place().kernel.as_ptr());
        }
        wake_left();
    }

    /// Waits until a new thread is about to wait for its first turn: then it can be switched to.
    pub fn await_entry(self) {
        if !by_itself() {
            return;
        }
        while self.place().kernel.load(Ordering::Acquire) != PARKED {
            // SAFETY: the call touches no memory; by its number it is the kernel's, not the
            // machine's.
            unsafe { libc::syscall(libc::SYS_sched_yield) };
        }
    }

    /// Gives the baton from the thread with this place, which runs, to another one, and waits
    /// until it has it again.
    pub fn pass(self, to: Baton) {
        if !by_itself() {
            to.post();
            return self.wait();
        }
        // SAFETY: the other thread waits in `enter` or here, so its context is whole.
        unsafe { switch(&self.place().context, &to.place().context) };
        wake_left();
    }

    /// Gives the baton away for good: the caller's thread ends.
    pub fn leave(self, to: Baton) {
        if !by_itself() {
            return to.post();
        }
        LEFT.store(self.0, Ordering::Relaxed);
        // SAFETY: as for `pass`. What goes on behind the call is the kernel's thread to which
        // this stack belongs.
        unsafe { switch(&self.place().context, &to.place().context) };
    }

    /// Gives the place back.
    pub fn free(self) {
        // SAFETY: made by `new`; the thread has ended, so nothing will use it.
        unsafe {
            libc::sem_destroy(self.place().semaphore.get());
            drop(Box::from_raw(self.0));
        }
    }
}

/// The core has left the stack of a thread that ends: its kernel's thread goes on with it.
fn wake_left() {
    let left = LEFT.swap(std::ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: places live until their threads were joined.
    if let Some(place) = unsafe { left.as_ref() } {
        let word = &place.kernel;
        word.store(MAY_END, Ordering::Release);
        // SAFETY: the word lives as long as the place.
        unsafe { wake(word.as_ptr()) };
    }
}

unsafe extern "C" {
    /// Saves the caller's context in the first place and goes on with that in the second.
    #[link_name = "sim_switch"]
    fn switch(from: *const Context, to: *const Context);
    /// Saves the caller's context and puts the kernel's thread to sleep; returns in
    /// whichever thread of the kernel switches to the context.
    #[link_name = "sim_park"]
    fn park(context: *const Context, word: *mut u32);
    /// Wakes the kernel's thread that is parked on a word.
    #[link_name = "sim_wake"]
    fn wake(word: *mut u32);
}

// The order of what lies on a saved stack is that of the pushes of both.
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
    // From here on the stack is not touched.
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
    //! Never called: the machine goes by semaphores.
    #[unsafe(no_mangle)]
    extern "C" fn sim_switch(_: *const super::Context, _: *const super::Context) {}
    #[unsafe(no_mangle)]
    extern "C" fn sim_park(_: *const super::Context, _: *mut u32) {}
    #[unsafe(no_mangle)]
    extern "C" fn sim_wake(_: *mut u32) {}
}
