//! The C library's part of the machine: time, sleep, futexes, threads, mappings.
//!
//! This program defines functions of the C library under their own names, so the engine, the
//! standard library and `parking_lot` call these. On a thread of the machine they use its clock and
//! scheduler. On any other thread they call the C library.

use crate::machine;
use crate::threads::{self, Beginning};
use libc::{
    c_char, c_int, c_long, c_uint, c_void, clockid_t, off_t, pthread_attr_t, pthread_t, size_t,
    ssize_t, timespec,
};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

fn real(cache: &AtomicUsize, name: &std::ffi::CStr) -> usize {
    let known = cache.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: the name is a valid C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast::<c_char>()) } as usize;
    assert!(found != 0, "the C library has {name:?}");
    cache.store(found, Ordering::Relaxed);
    found
}

macro_rules! real {
    ($name:ident($($value:expr),*) as fn($($type:ty),*) -> $result:ty) => {{
        static FOUND: AtomicUsize = AtomicUsize::new(0);
        let name = const {
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            }
        };
        let function: unsafe extern "C" fn($($type),*) -> $result =
            // SAFETY: the C library's function with this name has this type.
            unsafe { std::mem::transmute(real(&FOUND, name)) };
        // SAFETY: the caller of the simulated function upholds the contract of the real one.
        unsafe { function($($value),*) }
    }};
}

const SECOND: u64 = 1_000_000_000;

fn nanoseconds(time: &timespec) -> u64 {
    (time.tv_sec.max(0) as u64).saturating_mul(SECOND).saturating_add(time.tv_nsec as u64)
}

/// The time of the clock at the start. All simulated clocks show the same time.
const BEGIN: u64 = 1_000_000 * SECOND;

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    if !machine::simulated() {
        return real!(clock_gettime(clock, time) as fn(clockid_t, *mut timespec) -> c_int);
    }
    let now = BEGIN + threads::tick(300);
    // SAFETY: the caller guarantees that `time` is valid for writes.
    unsafe {
        (*time).tv_sec = (now / SECOND) as libc::time_t;
        (*time).tv_nsec = (now % SECOND) as c_long;
    }
    0
}

/// A simulated thread is never preempted by other work.
///
/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrusage(whose: c_int, used: *mut libc::rusage) -> c_int {
    if !machine::simulated() {
        return real!(getrusage(whose, used) as fn(c_int, *mut libc::rusage) -> c_int);
    }
    // SAFETY: the caller guarantees that `used` is valid for writes, and zeroes are valid.
    unsafe { used.write_bytes(0, 1) };
    0
}

/// Fails the run if the calling thread is reading the registry. A thread that waits for other ranks
/// must not be reading: a writer waits for all readers, which here are those of all ranks.
fn reads_nothing(does: &str) {
    if portolan_base::sync::brlock::is_reading() {
        machine::fail(&format!("a thread {does} while it reads the registry"));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn sched_yield() -> c_int {
    if !machine::simulated() {
        return real!(sched_yield() as fn() -> c_int);
    }
    reads_nothing("yields");
    threads::point("yield", true, 500);
    0
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    if !machine::simulated() {
        return real!(nanosleep(time, left) as fn(*const timespec, *mut timespec) -> c_int);
    }
    reads_nothing("sleeps");
    // SAFETY: the caller guarantees that `time` is valid for reads.
    threads::sleep("sleep", Some(nanoseconds(unsafe { &*time })));
    0
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    if !machine::simulated() {
        return real!(clock_nanosleep(clock, flags, time, left)
            as fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int);
    }
    // SAFETY: the caller guarantees that `time` is valid for reads.
    let mut sleep = nanoseconds(unsafe { &*time });
    if flags & libc::TIMER_ABSTIME != 0 {
        sleep = sleep.saturating_sub(BEGIN + threads::tick(100));
    }
    reads_nothing("sleeps");
    threads::sleep("sleep", Some(sleep));
    0
}

fn failed(code: c_int) -> c_long {
    // SAFETY: `__errno_location` returns a valid pointer to the calling thread's error number.
    unsafe { *libc::__errno_location() = code };
    -1
}

/// # Safety
/// The contract of the kernel's futex call applies.
unsafe fn futex(word: *const u32, operation: c_int, value: u32, time: *const timespec) -> c_long {
    let place = machine::with(|machine| machine.word_at(word as u64));
    let command = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    match command {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => {
            // SAFETY: by contract the word is mapped. No other thread of the machine runs now.
            if unsafe { word.read_volatile() } != value {
                return failed(libc::EAGAIN);
            }
            let time = if time.is_null() {
                None
            } else {
                // SAFETY: the caller guarantees that `time` is valid for reads. Waits with a bit
                // set have an absolute time.
                let time = nanoseconds(unsafe { &*time });
                let now = BEGIN + threads::tick(100);
                Some(if command == libc::FUTEX_WAIT { time } else { time.saturating_sub(now) })
            };
            if threads::futex_wait(place, time) { 0 } else { failed(libc::ETIMEDOUT) }
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => {
            let woken = threads::futex_wake(place, value as usize);
            if woken > 0 {
                threads::interrupt();
            }
            woken as c_long
        }
        other => machine::fail(&format!("futex operation {other} is not simulated")),
    }
}

/// # Safety
/// The contract of the variadic C function applies. This one takes the six register arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if machine::simulated() {
        match number {
            // SAFETY: the caller passes valid arguments of a futex call.
            libc::SYS_futex => return unsafe { futex(a as _, b as c_int, c as u32, d as _) },
            // Only one thread runs at a time, and passing the baton orders all memory accesses.
            libc::SYS_membarrier | libc::SYS_sched_getattr | libc::SYS_sched_setattr => return 0,
            _ => {}
        }
    }
    real!(syscall(number, a, b, c, d, e, f)
        as fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long)
}

thread_local! {
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(to: *mut c_void, len: size_t, flags: c_uint) -> ssize_t {
    if !machine::simulated() {
        return real!(getrandom(to, len, flags) as fn(*mut c_void, size_t, c_uint) -> ssize_t);
    }
    let seed = machine::with(|machine| machine.seed);
    let drawn = DRAWN.get() + 1;
    DRAWN.set(drawn);
    let mut rng = crate::dice::Dice::new(seed ^ (machine::rank() as u64) << 32 ^ drawn);
    for at in 0..len {
        // SAFETY: the caller guarantees that `to` is valid for writes of `len` bytes.
        unsafe { to.cast::<u8>().add(at).write(rng.next() as u8) };
    }
    len as ssize_t
}

type Start = extern "C" fn(*mut c_void) -> *mut c_void;

struct Task {
    beginning: Beginning,
    start: Start,
    argument: *mut c_void,
}

static KEY: AtomicUsize = AtomicUsize::new(0);

/// Runs as the last part of a thread, after its thread-local values are destroyed.
unsafe extern "C" fn ended(_: *mut c_void) {
    threads::end_thread();
}

fn key() -> libc::pthread_key_t {
    if KEY.load(Ordering::Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: the key is created once, when the first thread of a machine starts alone.
        unsafe { libc::pthread_key_create(&mut key, Some(ended)) };
        KEY.store(key as usize + 1, Ordering::Relaxed);
    }
    (KEY.load(Ordering::Relaxed) - 1) as libc::pthread_key_t
}

extern "C" fn begin(task: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` below made the box for this thread.
    let task = unsafe { Box::from_raw(task.cast::<Task>()) };
    // SAFETY: the key is live, and its value is never dereferenced.
    unsafe { libc::pthread_setspecific(key(), std::ptr::dangling::<u8>().cast()) };
    let Task { beginning, start, argument } = *task;
    beginning.enter();
    start(argument)
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    native: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let (start, argument, made) = match threads::begin_thread() {
        None => (start, argument, None),
        Some(beginning) => {
            key();
            let (id, baton) = (beginning.id(), beginning.baton());
            let task = Box::new(Task { beginning, start, argument });
            (begin as Start, Box::into_raw(task).cast::<c_void>(), Some((id, baton)))
        }
    };
    let code = real!(pthread_create(native, attributes, start, argument)
        as fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void) -> c_int);
    if let Some((id, baton)) = made {
        if code != 0 {
            machine::fail("a thread of the machine cannot be started");
        }
        baton.await_entry();
        // SAFETY: the C library has stored the handle, because the call succeeded.
        threads::began(unsafe { *native }, id);
    }
    code
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_join(native: pthread_t, value: *mut *mut c_void) -> c_int {
    if machine::simulated() {
        threads::await_end(native);
    }
    real!(pthread_join(native, value) as fn(pthread_t, *mut *mut c_void) -> c_int)
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    len: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    let base = real!(mmap(at, len, protection, flags, file, offset)
        as fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void);
    if machine::simulated()
        && file >= 0
        && flags & libc::MAP_SHARED != 0
        && base != libc::MAP_FAILED
    {
        // SAFETY: `stat` is valid if zeroed, and `fstat` writes only to it.
        let status = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            libc::fstat(file, &mut status);
            status
        };
        machine::with(|machine| {
            machine.map(base as u64, len as u64, status.st_dev, status.st_ino, offset as u64);
        });
    }
    base
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(base: *mut c_void, len: size_t) -> c_int {
    if machine::simulated() {
        machine::with(|machine| machine.unmap(base as u64));
    }
    real!(munmap(base, len) as fn(*mut c_void, size_t) -> c_int)
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostname(name: *mut libc::c_char, len: size_t) -> c_int {
    if !machine::simulated() {
        return real!(gethostname(name, len) as fn(*mut libc::c_char, size_t) -> c_int);
    }
    let host = machine::with(|machine| machine::rank() / machine.behaviour.ranks_per_host);
    let text = format!("host{host}\0");
    if text.len() > len {
        return -1;
    }
    // SAFETY: the caller guarantees `len` bytes at `name`, and the text is not longer.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len()) };
    0
}

/// # Safety
/// The contract of the C library's function applies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getaffinity(
    process: libc::pid_t,
    len: size_t,
    set: *mut libc::cpu_set_t,
) -> c_int {
    if !machine::simulated() {
        return real!(sched_getaffinity(process, len, set)
            as fn(libc::pid_t, size_t, *mut libc::cpu_set_t) -> c_int);
    }
    let cores = machine::with(|machine| machine.behaviour.cores).min(len * 8);
    // SAFETY: the caller guarantees that `set` is valid for `len` bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(set.cast::<u8>(), len) };
    bytes.fill(0);
    (0..cores).for_each(|core| bytes[core / 8] |= 1 << (core % 8));
    0
}
