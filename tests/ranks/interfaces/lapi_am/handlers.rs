//! The handlers of LAPI's active messages: they check what comes, and decide as the message says.

use super::{
    AT_ONCE, BURIED, CALLER, DROPPED_FIRST, ENDED, KEPT, LAPI_Get, OUTSIDE, OWN_CMPL, OWN_ENDED,
    POLLING, Plan, Ptr, SILENT, TABLES, TAKEN, TGT, Vectors, hndl, me, ok, plan, send_on, wait,
};
use crate::am_model::{self, Stamp, WORDS};
use parking_lot::Mutex;
use std::os::raw::{c_int, c_uint};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::SeqCst;

pub(super) type Completion = extern "C" fn(*mut c_uint, Ptr);
pub(super) type Header = extern "C" fn(
    *mut c_uint,
    *const u8,
    *mut c_uint,
    *mut Returns,
    *mut Option<Completion>,
    *mut Ptr,
) -> Ptr;

#[repr(C)]
pub(super) struct Returns {
    len: usize,
    magic: c_int,
    ret_flags: c_int,
    ctl_flags: c_int,
    dgsp: Ptr,
    bytes: usize,
    src: c_int,
    packet: *const u8,
    offset: usize,
}

const SEND_REPLY: c_int = 2;
const LOCAL_STATE: c_int = 1;
const BURY: c_int = 1;
const DROP: c_int = 2;

/// The messages without a completion handler: the address of the data, and what it must be.
static LANDED: Mutex<Vec<(usize, Vec<u8>)>> = Mutex::new(Vec::new());
/// The messages that were dropped, by their seeds, and whether their data came with the header.
static DROPPED: Mutex<Vec<(u64, bool)>> = Mutex::new(Vec::new());

struct Landing {
    stamp: Stamp,
    data: Vec<u8>,
    at_once: bool,
    /// The thread of the header handler, on which the completion handler must run directly after it.
    thread: Option<std::thread::ThreadId>,
}

pub(super) fn inside() {
    if POLLING.load(SeqCst) {
        assert!(!OUTSIDE.load(SeqCst), "a handler runs outside of the calls");
        assert_eq!(*CALLER.lock(), Some(std::thread::current().id()), "the thread of a handler");
    }
}

/// Reads and checks the header of a message.
fn check_header(uhdr: *const u8, len: c_uint) -> (Stamp, Plan) {
    inside();
    assert!(uhdr.addr().is_multiple_of(8), "a header at {uhdr:p}");
    // SAFETY: the library passes a header of this length.
    let header = unsafe { std::slice::from_raw_parts(uhdr, len as usize) };
    let stamp: Stamp = bytemuck::pod_read_unaligned(&header[..8 * WORDS]);
    let plan = plan(&stamp);
    assert!(plan.header == header, "the header of {stamp:?}");
    (stamp, plan)
}

/// Messages for an index that is set late are not in order with the others.
pub(super) extern "C" fn header<const IN_ORDER: bool>(
    handle: *mut c_uint,
    uhdr: *const u8,
    uhdr_len: *mut c_uint,
    returns: *mut Returns,
    completion: *mut Option<Completion>,
    info: *mut Ptr,
) -> Ptr {
    // SAFETY: the library passes live objects.
    unsafe { decide(&mut *handle, (uhdr, *uhdr_len), &mut *returns, (completion, info), IN_ORDER) }
}

/// # Safety
/// The header must have the length, and the places for results must be valid.
unsafe fn decide(
    handle: &mut c_uint,
    (uhdr, len): (*const u8, c_uint),
    returns: &mut Returns,
    (completion, info): (*mut Option<Completion>, *mut Ptr),
    in_order: bool,
) -> Ptr {
    assert_eq!(*handle, hndl());
    *handle = 77; // a copy
    let (stamp, plan) = check_header(uhdr, len);
    let size = plan.data.len();
    assert_eq!((returns.len, returns.bytes, returns.src), (size, size, stamp.origin as c_int));
    assert_eq!((returns.ret_flags, returns.ctl_flags), (0, 0));
    let whole = !returns.packet.is_null() && size > 0;
    assert!(whole || size == 0 || size > 64, "short data comes with its header");
    if whole {
        assert!(returns.packet.addr().is_multiple_of(8), "data at {:p}", returns.packet);
        // SAFETY: the packet has the data of the message.
        let packet = unsafe { std::slice::from_raw_parts(returns.packet, size) };
        assert!(packet == plan.data, "the packet of {stamp:?}");
    }
    let times = if plan.decision == DROPPED_FIRST { 1 + stamp.rng(2).below(3) } else { 0 };
    let same = |&&(seed, _): &&(u64, bool)| seed == stamp.seed;
    let (so_far, first) = {
        let dropped = DROPPED.lock();
        (dropped.iter().filter(same).count(), dropped.iter().find(same).map(|&(_, whole)| whole))
    };
    assert!(first.is_none_or(|first| first == whole), "the packet of a message that was dropped");
    if so_far == 0 && in_order {
        am_model::seen(&stamp);
    }
    if so_far < times {
        DROPPED.lock().push((stamp.seed, whole));
        returns.ctl_flags = DROP;
        return null_mut();
    }
    returns.ret_flags = match plan.decision {
        AT_ONCE => SEND_REPLY,
        SILENT => LOCAL_STATE,
        _ => 0,
    };
    if plan.decision == BURIED {
        returns.ctl_flags = BURY;
    }
    let mut data = vec![0xee; if plan.decision == BURIED { 16 } else { size }];
    let place = data.as_mut_ptr();
    let taken = plan.decision == TAKEN && whole;
    if taken {
        data.clone_from(&plan.data);
    }
    if plan.completes {
        let at_once = returns.ret_flags != 0;
        let place = if taken { data.as_mut_ptr() } else { place };
        let thread = (at_once && whole).then(|| std::thread::current().id());
        let landing = Landing { stamp, data, at_once, thread };
        // SAFETY: the library passes live objects.
        unsafe {
            (*completion, *info) =
                (Some(ended as Completion), Box::into_raw(Box::new(landing)).cast())
        };
        return if taken || size == 0 { null_mut() } else { place.cast() };
    }
    if plan.decision != BURIED && !taken {
        LANDED.lock().push((place.addr(), plan.data));
    }
    KEPT.lock().push(data);
    send_on(&stamp, false);
    if taken || size == 0 { null_mut() } else { place.cast() }
}

extern "C" fn ended(handle: *mut c_uint, info: Ptr) {
    // SAFETY: the library passes a live handle, and the header handler made the landing.
    let landing = unsafe {
        assert_eq!(*handle, hndl());
        Box::from_raw(info.cast::<Landing>())
    };
    inside();
    let here = std::thread::current().id();
    assert!(landing.thread.is_none_or(|thread| thread == here), "a reply that is not sent at once");
    let (stamp, plan) = (landing.stamp, plan(&landing.stamp));
    let want = if plan.decision == BURIED { vec![0xee; 16] } else { plan.data };
    assert!(landing.data == want, "{} bytes of {stamp:?}", want.len());
    assert!(TGT.value() <= ENDED.load(SeqCst), "a target counter before its handler");
    assert!(OWN_CMPL.value() <= OWN_ENDED.load(SeqCst), "a reply before its handler");
    ENDED.fetch_add(plan.counts.into(), SeqCst);
    OWN_ENDED.fetch_add((stamp.origin as usize == me()).into(), SeqCst);
    if !landing.at_once && stamp.rng(3).one_in(8) {
        // A completion handler may wait.
        let mut seen = usize::MAX;
        let mut org = [0u64; 2];
        let (from, org): (_, Ptr) = (stamp.origin as usize, (&raw mut org).cast());
        let word = TABLES.lock()[2][from] as Ptr;
        // SAFETY: the word and the counter live until the wait.
        ok(unsafe {
            let to = (&raw mut seen).cast();
            LAPI_Get(hndl(), from as c_uint, size_of::<usize>(), word, to, null_mut(), org.cast())
        });
        wait(org, 1);
        assert_eq!(seen, 1000 + from, "a get of a completion handler");
    }
    send_on(&stamp, !landing.at_once);
}

/// The room with the blocks, and their description, which must live until the data is there.
struct VectorLanding {
    stamp: Stamp,
    room: Vec<u8>,
    places: Vec<usize>,
    lens: Vec<usize>,
    strides: [usize; 3],
    vectors: Vectors,
}

/// Both sides describe some messages by a stride.
pub(super) fn is_strided(stamp: &Stamp, lens: &[usize]) -> bool {
    lens.len() == 4 && stamp.rng(7).one_in(2)
}

pub(super) extern "C" fn vector_header(
    _: *mut c_uint,
    uhdr: *const u8,
    uhdr_len: *mut c_uint,
    lens: *mut Returns,
    completion: *mut Option<Completion>,
    info: *mut Ptr,
) -> Ptr {
    // SAFETY: the library passes live objects, and a length for each block.
    unsafe {
        let (stamp, plan) = check_header(uhdr, *uhdr_len);
        let blocks = plan.blocks.expect("a vector");
        let lens = std::slice::from_raw_parts(lens.cast::<usize>(), blocks.len());
        assert_eq!(lens, blocks, "the blocks of {stamp:?}");
        // The destination has one block for all bytes, or the same blocks with gaps between them.
        let joins = !is_strided(&stamp, &blocks) && stamp.rng(4).one_in(3);
        let lens = if joins { vec![plan.data.len()] } else { blocks };
        let room = vec![0xee; plan.data.len() + 8 * lens.len()];
        let next = |at: &mut usize, len: &usize| Some(std::mem::replace(at, *at + len + 8));
        let places: Vec<usize> = lens.iter().scan(room.as_ptr().addr(), next).collect();
        let strides = [places[0], lens[0], lens[0] + 8];
        let is_strided = is_strided(&stamp, &lens);
        let kind = match lens.len() {
            1 => 2,
            _ => c_int::from(is_strided),
        };
        let vectors = Vectors { kind, number: lens.len() as c_uint, info: null(), len: null() };
        let mut all = Box::new(VectorLanding { stamp, room, places, lens, strides, vectors });
        all.vectors.info = if is_strided { all.strides.as_ptr() } else { all.places.as_ptr() };
        all.vectors.len = if is_strided { null() } else { all.lens.as_ptr() };
        let all = Box::into_raw(all);
        (*completion, *info) = (Some(vector_ended as Completion), all.cast());
        (&raw mut (*all).vectors).cast()
    }
}

extern "C" fn vector_ended(handle: *mut c_uint, info: Ptr) {
    // SAFETY: the header handler made the landing.
    let all = unsafe { Box::from_raw(info.cast::<VectorLanding>()) };
    let base = all.room.as_ptr().addr();
    let blocks = all.places.iter().zip(&all.lens).map(|(at, n)| &all.room[at - base..][..*n]);
    let data = blocks.collect::<Vec<_>>().concat();
    let landing = Landing { stamp: all.stamp, data, at_once: false, thread: None };
    ended(handle, Box::into_raw(Box::new(landing)).cast());
}

/// Checks the data of messages without completion handlers, at rest.
pub(super) fn check_landed() {
    for (at, want) in LANDED.lock().drain(..) {
        // SAFETY: the place is in `KEPT`.
        let got = unsafe { std::slice::from_raw_parts(at as *const u8, want.len()) };
        assert!(got == want, "{} bytes without a completion handler", want.len());
    }
    DROPPED.lock().clear();
}
