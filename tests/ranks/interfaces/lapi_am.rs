//! LAPI's active messages under the model of [`am_model`]: by every call, to indices and addresses,
//! with every decision of a header handler, in polling mode and with interrupts.

mod handlers;

use super::lapi::{
    LAPI_Address_init, LAPI_Fence, LAPI_Get, LAPI_Gfence, LAPI_Init, LAPI_Term, LAPI_Waitcntr,
    LAPI_Xfer, Ptr, Vectors,
};
use crate::am_model::{self, Sender, Stamp, TO_ALL, WORDS};
use crate::child::Ctx;
use crate::rng::Rng;
use handlers::{Header, header, is_strided, vector_header};
use parking_lot::Mutex;
use std::os::raw::{c_int, c_uint};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// A LAPI counter has 16 bytes. The first four are its value.
#[repr(C, align(8))]
struct Counter([AtomicU32; 4]);

impl Counter {
    const fn new() -> Counter {
        Counter([const { AtomicU32::new(0) }; 4])
    }

    fn at(&'static self) -> Ptr {
        (&raw const *self).cast_mut().cast()
    }

    fn value(&self) -> u32 {
        self.0[0].load(SeqCst)
    }
}

unsafe extern "C" {
    fn LAPI_Qenv(hndl: c_uint, query: c_int, value: *mut c_int) -> c_int;
    fn LAPI_Senv(hndl: c_uint, query: c_int, value: c_int) -> c_int;
    fn LAPI_Addr_set(hndl: c_uint, addr: Ptr, index: c_int) -> c_int;
    fn LAPI_Group_create(hndl: c_uint, n: c_uint, list: *const c_uint, group: *mut c_uint)
    -> c_int;
    fn LAPI_Group_free(hndl: c_uint, group: c_uint) -> c_int;
    fn LAPI_Probe(hndl: c_uint) -> c_int;
    fn LAPI_Amsend(
        hndl: c_uint,
        tgt: c_uint,
        handler: Ptr,
        uhdr: *const u8,
        uhdr_len: c_uint,
        udata: *const u8,
        udata_len: usize,
        tgt_cntr: Ptr,
        org: Ptr,
        cmpl: Ptr,
    ) -> c_int;
    fn LAPI_Amsendv(
        hndl: c_uint,
        tgt: c_uint,
        handler: Ptr,
        uhdr: *const u8,
        uhdr_len: c_uint,
        vec: *const Vectors,
        tgt_cntr: Ptr,
        org: Ptr,
        cmpl: Ptr,
    ) -> c_int;
}

const INTERRUPT_SET: c_int = 8;
const MAX_UHDR_SZ: c_int = 2;
/// Indices of the header handlers. The last ones are set late, one in each phase.
const PLAIN: usize = 1;
const VECTOR: usize = 2;
const LATE: usize = 10;

static HNDL: AtomicU32 = AtomicU32::new(0);
static ME: AtomicUsize = AtomicUsize::new(0);
static ORG: Counter = Counter::new();
static CMPL: Counter = Counter::new();
/// Of messages to the own task, so that the handler sees when it counts.
static OWN_CMPL: Counter = Counter::new();
static TGT: Counter = Counter::new();
static WORD: AtomicUsize = AtomicUsize::new(0);

/// The numbers of completion handlers that have ended, for messages with [`TGT`] and from this task.
static ENDED: AtomicU32 = AtomicU32::new(0);
static OWN_ENDED: AtomicU32 = AtomicU32::new(0);

/// The values that [`CMPL`], [`OWN_CMPL`] and [`ORG`] must reach.
static ASKED: AtomicU32 = AtomicU32::new(0);
static OWN_ASKED: AtomicU32 = AtomicU32::new(0);
static LEAVING: AtomicU32 = AtomicU32::new(0);
/// Send completion handlers to run, less those that have run.
static HOOKS: AtomicU32 = AtomicU32::new(0);

static MAX_UHDR: AtomicUsize = AtomicUsize::new(0);
/// Whether each message asks for a reply, if its header handler allows one.
static ALL_ASK: AtomicBool = AtomicBool::new(false);
static POLLING: AtomicBool = AtomicBool::new(false);
static OUTSIDE: AtomicBool = AtomicBool::new(false);
static CALLER: Mutex<Option<std::thread::ThreadId>> = Mutex::new(None);

/// The addresses of all tasks for handlers, target counters and words.
static TABLES: Mutex<[Vec<usize>; 3]> = Mutex::new([const { Vec::new() }; 3]);
/// Data that must live until the messages have left, and landing places.
static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
fn ok(code: c_int) {
    assert_eq!(code, 0, "a call of LAPI");
}

fn hndl() -> c_uint {
    HNDL.load(SeqCst)
}

fn me() -> usize {
    ME.load(SeqCst)
}

fn wait(counter: Ptr, value: u32) {
    let mut left = -1;
    // SAFETY: the counter is live.
    ok(unsafe { LAPI_Waitcntr(hndl(), counter.cast(), value as c_int, &mut left) });
}

/// The contents of a message, and the decision of its header handler.
struct Plan {
    header: Vec<u8>,
    data: Vec<u8>,
    /// The lengths of the blocks of a vector message, which others are not.
    blocks: Option<Vec<usize>>,
    decision: usize,
    completes: bool,
    counts: bool,
    replies: bool,
}

const NORMAL: usize = 0;
const AT_ONCE: usize = 1;
const SILENT: usize = 2;
const BURIED: usize = 3;
const DROPPED_FIRST: usize = 4;
const TAKEN: usize = 5;

fn plan(stamp: &Stamp) -> Plan {
    let mut rng = stamp.rng(1);
    let extra = match rng.below(8) {
        0 => MAX_UHDR.load(SeqCst) - 8 * WORDS,
        1 => rng.below(400),
        2..6 => rng.below(60),
        _ => 0,
    };
    let header = [bytemuck::bytes_of(stamp), &rng.bytes(extra)].concat();
    let len = match rng.below(30) {
        0 => *rng.pick(&[70_000, 300_000, 1 << 20]),
        1..5 => rng.below(9000),
        5..20 => rng.below(96),
        _ => 0,
    };
    let data = rng.bytes(len);
    let alone = stamp.number != TO_ALL;
    let blocks = (alone && len > 0 && rng.one_in(5)).then(|| match rng.below(3) {
        0 => vec![len],
        1 => vec![len / 3, 0, len - len / 3],
        _ if len.is_multiple_of(4) => vec![len / 4; 4],
        _ => vec![len / 4, len - len / 4],
    });
    let vector = blocks.is_some();
    let decision = if vector { NORMAL } else { rng.below(6) };
    let completes = vector || decision == SILENT || !rng.one_in(4);
    let counts = rng.one_in(3) && completes && alone;
    Plan { header, data, blocks, decision, completes, counts, replies: decision != SILENT }
}

fn send_on(stamp: &Stamp, may_wait: bool) {
    for (to, child) in am_model::came(stamp, me()) {
        send(&[to], child, &mut child.rng(5), may_wait, false);
    }
}

extern "C" fn has_left(handle: *mut c_uint, info: Ptr, about: *const c_uint) {
    handlers::inside();
    // SAFETY: the library passes a live handle and structure.
    let (handle, target, reason) = unsafe { (*handle, *about, *about.add(1)) };
    assert_eq!((handle, target as usize, reason), (hndl(), info.addr(), 0));
    HOOKS.fetch_sub(1, SeqCst);
}

/// Sends a message by one of the calls. If it may wait, the memory is changed when it has left.
fn send(to: &[usize], stamp: Stamp, rng: &mut Rng, may_wait: bool, early: bool) {
    let Plan { mut header, mut data, blocks, completes, counts, replies, .. } = plan(&stamp);
    let (target, h) = (to[0], hndl());
    let tgt_cntr = if counts { TABLES.lock()[1][target] } else { 0 };
    let asks = to.len() == 1 && (rng.one_in(2) || ALL_ASK.load(SeqCst));
    let own = target == me() && completes;
    let (cmpl, asked) = if own { (&OWN_CMPL, &OWN_ASKED) } else { (&CMPL, &ASKED) };
    let cmpl = if asks { cmpl.at() } else { null_mut() };
    if asks && replies {
        asked.fetch_add(1, SeqCst);
    }
    let mut org = [0u64; 2];
    let waits = may_wait && !early && rng.one_in(2);
    let org: Ptr = if waits { (&raw mut org).cast() } else { ORG.at() };
    let hooked = rng.one_in(2);
    let (handler, tgt) = (handler_for(to, blocks.is_some(), early, rng), target as c_uint);
    let (uhdr, uhdr_len) = (header.as_ptr(), header.len());
    let from = if data.is_empty() { null() } else { data.as_ptr() };
    let flags = *rng.pick(&[0, 1, 2, 0x20, 0x40, 0x3f6]);
    let hook = if hooked { has_left as extern "C" fn(_, _, _) as usize } else { 0 };
    let mut x = [usize::MAX; 16];
    let head = |x: &mut [usize; 16], kind: usize, to: usize| {
        x[..5].copy_from_slice(&[kind | flags << 32, to, handler, uhdr_len, uhdr.addr()]);
    };
    let is_light = !asks && !counts && blocks.is_none() && header.len() + data.len() <= 128;
    let is_light = is_light && handler <= VECTOR && to.len() == 1;
    let by_org = to.len() == 1 && !is_light;
    if by_org && !waits {
        LEAVING.fetch_add(1, SeqCst);
    }
    // SAFETY: header and data live until the waits below or, in `KEPT`, until all is at rest.
    unsafe {
        if let Some(lens) = &blocks {
            let places =
                lens.iter().scan(from.addr(), |at, len| Some(std::mem::replace(at, *at + len)));
            let places: Vec<usize> = places.collect();
            let number = lens.len() as c_uint;
            let strides = [from.addr(), lens[0], lens[0]];
            let vec = match is_strided(&stamp, lens) {
                true => Vectors { kind: 1, number, info: strides.as_ptr(), len: null() },
                false => Vectors { kind: 0, number, info: places.as_ptr(), len: lens.as_ptr() },
            };
            if hooked {
                head(&mut x, 5, target);
                let vec = (&raw const vec).addr();
                let rest = [hook, target, vec, tgt_cntr, org.addr(), cmpl.addr()];
                x[5..11].copy_from_slice(&rest);
                HOOKS.fetch_add(1, SeqCst);
                ok(LAPI_Xfer(h, &mut x));
            } else {
                let tgt_cntr = tgt_cntr as Ptr;
                let uhdr_len = uhdr_len as c_uint;
                ok(LAPI_Amsendv(h, tgt, handler as Ptr, uhdr, uhdr_len, &vec, tgt_cntr, org, cmpl));
            }
        } else if to.len() > 1 {
            let list: Vec<c_uint> = to.iter().map(|&t| t as c_uint).collect();
            let mut group = 0;
            ok(LAPI_Group_create(h, list.len() as c_uint, list.as_ptr(), &mut group));
            head(&mut x, 11, group as usize);
            x[5..9].copy_from_slice(&[from.addr(), data.len(), hook, group as usize]);
            HOOKS.fetch_add(u32::from(hooked), SeqCst);
            ok(LAPI_Xfer(h, &mut x));
            ok(LAPI_Group_free(h, group));
        } else if is_light {
            head(&mut x, 9, target);
            x[5..7].copy_from_slice(&[from.addr(), data.len()]);
            ok(LAPI_Xfer(h, &mut x));
            data.fill(0x55);
        } else if hooked {
            head(&mut x, 1, target);
            let rest = [from.addr(), data.len(), hook, target, tgt_cntr, org.addr(), cmpl.addr()];
            x[5..12].copy_from_slice(&rest);
            HOOKS.fetch_add(1, SeqCst);
            ok(LAPI_Xfer(h, &mut x));
        } else {
            let (tgt_cntr, len) = (tgt_cntr as Ptr, uhdr_len as c_uint);
            let n = data.len();
            ok(LAPI_Amsend(h, tgt, handler as Ptr, uhdr, len, from, n, tgt_cntr, org, cmpl));
        }
    }
    header.fill(0x55); // the call has copied it
    if by_org && waits {
        wait(org, 1);
        data.fill(0x55);
    }
    KEPT.lock().push(data);
}

/// A handler by index, by its address at the target, or by its address here.
fn handler_for(to: &[usize], vector: bool, early: bool, rng: &mut Rng) -> usize {
    let own =
        if vector { vector_header as Header as usize } else { header::<true> as Header as usize };
    match (early, rng.below(3)) {
        (true, _) if !vector => LATE,
        (_, 0) if !vector && to.len() == 1 => TABLES.lock()[0][to[0]],
        (_, 1) => own,
        _ if vector => VECTOR,
        _ => PLAIN,
    }
}

struct Lapi {
    /// Messages until the late index is set.
    early: usize,
}

impl Lapi {
    fn start(ctx: &Ctx) -> Lapi {
        let mut h = 0;
        ME.store(ctx.me, SeqCst);
        WORD.store(1000 + ctx.me, SeqCst);
        *CALLER.lock() = Some(std::thread::current().id());
        // SAFETY: the array of zeros is larger than `lapi_info_t`, and tables have n entries.
        unsafe {
            ok(LAPI_Init(&mut h, &mut [0; 16]));
            HNDL.store(h, SeqCst);
            let mut most = 0;
            ok(LAPI_Qenv(h, MAX_UHDR_SZ, &mut most));
            assert!(most >= 512 && most % 8 == 0, "MAX_UHDR_SZ is {most}");
            MAX_UHDR.store(most as usize, SeqCst);
            ok(LAPI_Addr_set(h, header::<true> as Header as Ptr, PLAIN as c_int));
            ok(LAPI_Addr_set(h, vector_header as Header as Ptr, VECTOR as c_int));
            let mine = [header::<true> as Header as Ptr, TGT.at(), WORD.as_ptr().cast()];
            for (i, mine) in mine.into_iter().enumerate() {
                let mut table = vec![null_mut(); ctx.n];
                ok(LAPI_Address_init(h, mine, table.as_mut_ptr()));
                TABLES.lock()[i] = table.iter().map(|a| a.addr()).collect();
            }
            Lapi { early: 0 }
        }
    }

    fn set_late(&mut self) {
        // SAFETY: the handler is a header handler.
        ok(unsafe { LAPI_Addr_set(hndl(), header::<false> as Header as Ptr, LATE as c_int) });
        self.early = 0;
    }

    fn counters(&self) {
        for (counter, want) in [(&ORG, &LEAVING), (&CMPL, &ASKED), (&OWN_CMPL, &OWN_ASKED)] {
            wait(counter.at(), want.swap(0, SeqCst));
        }
    }
}

impl Sender for Lapi {
    fn begin(&mut self, phase: usize) {
        let polling = phase % 2 == 1;
        POLLING.store(polling, SeqCst);
        ALL_ASK.store(phase % 4 == 2, SeqCst);
        handlers::check_landed();
        KEPT.lock().clear();
        OWN_ENDED.store(0, SeqCst);
        // SAFETY: LAPI is initialised; null clears an index.
        unsafe {
            ok(LAPI_Senv(hndl(), INTERRUPT_SET, (!polling).into()));
            ok(LAPI_Addr_set(hndl(), null_mut(), LATE as c_int));
        }
        self.early = 5;
    }

    fn send(&mut self, to: &[usize], stamp: Stamp, rng: &mut Rng) {
        let early = self.early > 0 && to.len() == 1;
        send(to, stamp, rng, true, early);
        if self.early == 1 {
            return self.set_late();
        }
        self.early = self.early.saturating_sub(1);
    }

    fn pause(&mut self, _: &mut Rng) {
        OUTSIDE.store(true, SeqCst);
        std::thread::sleep(Duration::from_millis(2));
        OUTSIDE.store(false, SeqCst);
        // SAFETY: LAPI is initialised.
        ok(unsafe { LAPI_Probe(hndl()) });
    }

    fn complete(&mut self) {
        self.counters();
        // SAFETY: LAPI is initialised.
        ok(unsafe { LAPI_Fence(hndl()) });
    }

    fn rest(&mut self, here: u64) {
        let probe_until = |done: &dyn Fn() -> bool| {
            while !done() {
                // SAFETY: LAPI is initialised.
                ok(unsafe { LAPI_Probe(hndl()) });
                std::thread::yield_now();
            }
        };
        probe_until(&|| am_model::number_here() >= here);
        // SAFETY: LAPI is initialised.
        ok(unsafe { LAPI_Gfence(hndl()) });
        self.counters();
        wait(TGT.at(), ENDED.swap(0, SeqCst));
        probe_until(&|| HOOKS.load(SeqCst) == 0);
        let rest = [&ORG, &CMPL, &OWN_CMPL, &TGT].map(Counter::value);
        assert_eq!(rest, [0; 4], "counters at rest");
        // SAFETY: LAPI is initialised.
        ok(unsafe { LAPI_Gfence(hndl()) });
    }
}

pub fn run(ctx: &Ctx) {
    let mut lapi = Lapi::start(ctx);
    am_model::run(ctx, &mut lapi, true);
    lapi.begin(0);
    // SAFETY: no call is under way.
    ok(unsafe { LAPI_Term(hndl()) });
}
