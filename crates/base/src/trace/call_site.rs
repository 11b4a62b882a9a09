//! Call sites: the return addresses of the library's calls, in the program. A binding to another
//! language may know the source line instead ([`crate::process::set_caller`]).
//!
//! An unwinder needs microseconds, too long for each call. But the size of a stack frame is
//! constant at each place in the code, so the positions of the return addresses, relative to the
//! stack pointer, depend only on the code path. A thread unwinds the stack once for each path and
//! caller. Later calls read and compare the return addresses at the remembered positions.
//!
//! **Invariants.** A chain is found only if all its return addresses are equal to the remembered
//! ones. Each determines the size of its function's frame, and so the position of the next one. No
//! position is read beyond the highest one that the unwinder has found in the thread's stack.
//! Memory below it belongs to the stack while the thread runs.
//!
//! In a dynamically linked library, a chain of return addresses ends with the first one outside of
//! it. In a statically linked program it has up to [`MOST`] addresses, and the report finds the
//! program's own by their names.

use std::cell::{Cell, UnsafeCell};

/// Of return addresses in a chain.
const MOST: usize = 12;
/// Number of addresses that are always compared, without a branch for each. A shorter chain repeats
/// its last one.
const FIRST: usize = 4;
/// The position of the last return address of an unused entry, beyond every stack.
const UNUSED: usize = isize::MAX as usize;
/// Number of sets, one for each kind of call, and the number of sites that a set remembers.
const SETS: usize = 32;
const WAYS: usize = 32;
/// Number of stacks that a thread unwinds at least, and of searches that permit one more.
const FREE: u64 = 1000;
const EACH: u64 = 64;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct KnownSite {
    len: usize,
    /// The highest position in the chain.
    last: usize,
    /// Index in the set of the site that was found after this one, as in loops.
    next: usize,
    site: Option<u64>,
    /// The position and the value of each return address, innermost first.
    chain: [(usize, usize); MOST],
}

impl KnownSite {
    const EMPTY: KnownSite =
        KnownSite { len: 0, last: UNUSED, next: 0, site: None, chain: [(0, 0); MOST] };

    /// # Safety
    /// `stack` must be the stack pointer of a running function of this thread, and `top` a position
    /// in its stack. See the invariant of the module.
    #[inline(always)]
    unsafe fn is_here(&self, stack: usize, top: usize) -> bool {
        // SAFETY: called only for positions up to `last`, which are in the stack if `top` is.
        let differs =
            |&(at, address): &(usize, usize)| unsafe { stack::read(stack + at) } ^ address;
        if stack + self.last > top {
            return false;
        }
        let (first, more) = self.chain.split_at(FIRST);
        first.iter().map(differs).fold(0, |all, bits| all | bits) == 0
            && more.iter().take(self.len.saturating_sub(FIRST)).all(|entry| differs(entry) == 0)
    }
}

#[derive(Debug, Clone)]
struct Set {
    recent: usize,
    /// A copy of `next` of the recent site, which saves one of the loads that follow each other.
    expected: usize,
    sites: [KnownSite; WAYS],
}

impl Set {
    /// A constant, because code that fills the fields one by one takes 40 KiB.
    const EMPTY: Set = Set { recent: 0, expected: 0, sites: [KnownSite::EMPTY; WAYS] };
}

#[derive(Debug)]
pub(super) struct CallSites {
    /// The highest address of a return address in the stack that the unwinder has found.
    top: Cell<usize>,
    sites: UnsafeCell<Box<[Set]>>,
    searched: Cell<u64>,
    unwound: Cell<u64>,
}

impl CallSites {
    pub(super) fn new(enabled: bool) -> CallSites {
        let sets = if enabled { SETS } else { 0 };
        if enabled && let Some(stack) = stack::pointer() {
            // The unwinder first reads its tables, which can take milliseconds.
            let _ = stack::unwind(stack);
        }
        CallSites {
            top: Cell::new(0),
            sites: UnsafeCell::new(vec![Set::EMPTY; sets].into()),
            searched: Cell::new(0),
            unwound: Cell::new(0),
        }
    }

    /// Numbers the call site. `intern` numbers a chain of return addresses, innermost first.
    #[inline(always)]
    pub(super) fn find(
        &self,
        kind: usize,
        intern: &dyn Fn(&[usize]) -> Option<u64>,
    ) -> Option<u64> {
        let stack = stack::pointer()?;
        // SAFETY: only the log's thread calls this, and `unwind` is not running.
        let set = unsafe { &mut *self.sites.get() }.get_mut(kind % SETS)?;
        let expected = set.expected % WAYS;
        let known = &set.sites[expected];
        // SAFETY: `stack` is the pointer of the calling function.
        if unsafe { known.is_here(stack, self.top.get()) } {
            (set.recent, set.expected) = (expected, known.next);
            return known.site;
        }
        self.search(kind, stack, intern)
    }

    /// `stack` is the stack pointer of the calling function.
    #[inline(never)]
    fn search(
        &self,
        kind: usize,
        stack: usize,
        intern: &dyn Fn(&[usize]) -> Option<u64>,
    ) -> Option<u64> {
        // SAFETY: only the log's thread calls this, from `find`, which uses its reference no more.
        let set = unsafe { &mut *self.sites.get() }.get_mut(kind % SETS)?;
        // SAFETY: the function with this stack pointer has called this one.
        let here = |site: &KnownSite| unsafe { site.is_here(stack, self.top.get()) };
        let Some(known) = set.sites.iter().position(here) else {
            return self.unwind(kind, stack, intern);
        };
        set.sites[set.recent].next = known;
        (set.recent, set.expected) = (known, set.sites[known].next);
        set.sites[known].site
    }

    #[cold]
    #[inline(never)]
    fn unwind(
        &self,
        kind: usize,
        stack: usize,
        intern: &dyn Fn(&[usize]) -> Option<u64>,
    ) -> Option<u64> {
        self.searched.set(self.searched.get() + 1);
        // SAFETY: only the log's thread calls these functions, which are not reentered, and the
        // callers no longer use their references.
        let set = unsafe { &mut *self.sites.get() }.get_mut(kind % SETS)?;
        if self.unwound.get() > FREE + self.searched.get() / EACH {
            return None;
        }
        self.unwound.set(self.unwound.get() + 1);
        let mut found = stack::unwind(stack)?;
        let last = found.chain[found.len - 1];
        found.last = last.0;
        found.chain[found.len..].fill(last);
        self.top.set(self.top.get().max(stack + found.last));
        let addresses: Vec<usize> =
            found.chain[..found.len].iter().map(|(_, address)| *address).collect();
        found.site = intern(&addresses);
        let free = set.sites.iter().position(|site| site.len == 0);
        let at = free.unwrap_or(self.unwound.get() as usize % WAYS);
        set.sites[set.recent].next = at;
        (set.recent, set.expected) = (at, at);
        found.next = at;
        set.sites[at] = found;
        found.site
    }
}

/// A return address as the report resolves it: the file of its module, and the address in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InModule {
    pub file: String,
    pub offset: u64,
}

pub(super) fn module_of(address: usize) -> Option<InModule> {
    let module = stack::module(address)?;
    let file = match module.name.is_empty() || module.base == stack::program_base()? {
        true => std::fs::read_link("/proc/self/exe").ok()?.to_string_lossy().into_owned(),
        false => module.name,
    };
    Some(InModule { file, offset: (address - module.base) as u64 })
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod stack {
    use crate::trace::call_site::{KnownSite, MOST};
    use std::ffi::{CStr, c_int, c_void};

    unsafe extern "C" {
        fn _Unwind_Backtrace(
            visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
            argument: *mut c_void,
        ) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
        fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    }

    /// Of the calling function.
    #[inline(always)]
    pub(super) fn pointer() -> Option<usize> {
        let pointer: usize;
        // SAFETY: the instruction only reads a register.
        unsafe {
            std::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
        }
        Some(pointer)
    }

    /// # Safety
    /// The position must be in the calling thread's stack.
    #[inline(always)]
    pub(super) unsafe fn read(position: usize) -> usize {
        // SAFETY: the caller guarantees it. Other code may have written the word as another type.
        unsafe { std::ptr::with_exposed_provenance::<usize>(position).read_volatile() }
    }

    /// Innermost first: address in the code, stack pointer.
    struct Frames {
        all: [(usize, usize); 32],
        len: usize,
    }

    extern "C" fn visit(context: *mut c_void, frames: *mut c_void) -> c_int {
        // SAFETY: `unwind` passes its frames, and the unwinder passes a valid context.
        let (frames, frame) = unsafe {
            (&mut *frames.cast::<Frames>(), (_Unwind_GetIP(context), _Unwind_GetCFA(context)))
        };
        if frames.len == frames.all.len() {
            const STOP: c_int = 4;
            return STOP;
        }
        frames.all[frames.len] = frame;
        frames.len += 1;
        0
    }

    /// Unwinds from the function that had this stack pointer. Returns the positions of its return
    /// address and of those above, relative to the pointer, with their values.
    #[cold]
    #[inline(never)]
    pub(super) fn unwind(pointer: usize) -> Option<KnownSite> {
        let mut frames = Frames { all: [(0, 0); 32], len: 0 };
        // SAFETY: `visit` matches the interface, and the frames outlive the call.
        unsafe { _Unwind_Backtrace(visit, (&raw mut frames).cast()) };
        let all = &frames.all[..frames.len];
        // Return addresses below the pointer belong to functions that this one has called.
        let start = all.iter().position(|(_, stack)| *stack >= pointer + 8)?;
        let own = module(unwind as *const () as usize)?.base;
        let is_static = program_base() == Some(own);
        let mut path = KnownSite::EMPTY;
        for (address, stack) in all[start..].iter().take(MOST) {
            let position = stack - 8;
            // SAFETY: the unwinder has found the frame in this thread's stack. The return address
            // of a frame is below the stack pointer of its caller.
            if unsafe { read(position) } != *address {
                break;
            }
            path.chain[path.len] = (position - pointer, *address);
            path.len += 1;
            if !is_static && module(*address).is_none_or(|module| module.base != own) {
                break;
            }
        }
        (path.len > 0).then_some(path)
    }

    pub(super) struct Module {
        pub base: usize,
        pub name: String,
    }

    pub(super) fn module(address: usize) -> Option<Module> {
        // SAFETY: zeroes are a valid `Dl_info`.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: the call only looks the address up, and overwrites the structure.
        if unsafe { libc::dladdr(address as *const c_void, &mut info) } == 0 {
            return None;
        }
        let name = match info.dli_fname.is_null() {
            true => String::new(),
            // SAFETY: the loader keeps the name while the module, whose code is running, is loaded.
            false => unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned(),
        };
        Some(Module { base: info.dli_fbase as usize, name })
    }

    pub(super) fn program_base() -> Option<usize> {
        // SAFETY: the call has no preconditions.
        let entry = unsafe { libc::getauxval(libc::AT_ENTRY) };
        module(entry as usize).map(|module| module.base)
    }
}

/// Other architectures keep return addresses elsewhere. Their traces lack call sites.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod stack {
    use crate::trace::call_site::KnownSite;

    pub(super) fn pointer() -> Option<usize> {
        None
    }

    pub(super) unsafe fn read(_: usize) -> usize {
        0
    }

    pub(super) fn unwind(_: usize) -> Option<KnownSite> {
        None
    }

    pub(super) struct Module {
        pub base: usize,
        pub name: String,
    }

    pub(super) fn module(_: usize) -> Option<Module> {
        None
    }

    pub(super) fn program_base() -> Option<usize> {
        None
    }
}

#[cfg(test)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::hint::black_box;

    thread_local! {
        static CHAINS: RefCell<Vec<Vec<usize>>> = const { RefCell::new(Vec::new()) };
    }

    fn intern(chain: &[usize]) -> Option<u64> {
        CHAINS.with_borrow_mut(|chains| {
            chains.push(chain.to_vec());
            Some(chains.len() as u64 - 1)
        })
    }

    #[inline(never)]
    fn call(sites: &CallSites) -> Option<u64> {
        black_box(sites.find(7, &intern))
    }

    #[inline(never)]
    fn with_frame(sites: &CallSites) -> Option<u64> {
        let room = black_box([1u8; 300]);
        let site = call(sites);
        black_box(&room);
        site
    }

    #[test]
    fn calls_from_one_place_have_one_site() {
        let sites = CallSites::new(true);
        let mut all = Vec::new();
        for _ in 0..100 {
            all.push([call(&sites), call(&sites), with_frame(&sites)]);
        }
        assert!(all.iter().all(|three| *three == all[0]), "{all:?}");
        let [a, b, c] = all[0].map(|site| site.expect("the stack can be unwound"));
        assert!(a != b && b != c && a != c, "{a} {b} {c}");
        assert_eq!((sites.unwound.get(), CHAINS.with_borrow(Vec::len)), (3, 3));
        CHAINS.with_borrow(|chains| {
            let module = module_of(chains[0][0]).expect("it is in this program");
            let program = std::fs::read_link("/proc/self/exe").expect("a program");
            assert_eq!(module.file, program.to_string_lossy());
        });
    }

    #[inline(never)]
    fn deep(sites: &CallSites, kind: usize, depth: u64) -> Option<u64> {
        match depth {
            0 => black_box(sites.find(kind, &intern)),
            _ => black_box(deep(sites, kind, depth - 1)),
        }
    }

    #[test]
    fn each_kind_of_call_has_its_own_sites() {
        let (sites, kinds, depths) = (CallSites::new(true), 8, 8);
        let mut unwound = Vec::new();
        // A loop that is unrolled has a call site for each round.
        for _ in 0..black_box(3) {
            for (kind, n) in (0..kinds).flat_map(|kind| (0..depths).map(move |n| (kind, n))) {
                let _ = deep(&sites, kind, n);
            }
            unwound.push(sites.unwound.get());
        }
        assert!(kinds * depths as usize > WAYS);
        assert_eq!(unwound, [unwound[0]; 3]);
    }

    #[test]
    fn unwinding_is_bounded() {
        let sites = CallSites::new(true);
        let times = if cfg!(miri) { 200 } else { 20_000 };
        for n in 0..times {
            let _ = deep(&sites, 7, n % 11);
        }
        assert!(sites.unwound.get() <= FREE + times / EACH + 1);
        let none = CallSites::new(false);
        assert_eq!(call(&none), None);
    }
}
