//! The simulated MPI: the functions that the engine calls, under their own names.
//!
//! This program defines them itself, so its references are bound to these and none to the MPI
//! library's, which is linked but never initialised. Handles are numbers of [`crate::network`],
//! in the type that the MPI gives them.

use crate::machine::{self, Machine};
use crate::network::{Kind, WORLD};
use crate::threads;
use mpi::ffi::{
    self, MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info, MPI_Message, MPI_Op,
    MPI_Request, MPI_Status,
};
use std::os::raw::{c_char, c_int, c_void};
use std::sync::Arc;

const OK: c_int = 0;
/// `MPI_ERR_TRUNCATE` and `MPI_ERR_OTHER` of both.
const ERR_TRUNCATE: c_int = 15;
const ERR_OTHER: c_int = 16;

unsafe extern "C" {
    fn portolan_shim_type(which: c_int) -> MPI_Datatype;
    fn portolan_shim_in_place() -> *mut c_void;
}

/// A handle from a number, and back: handles are integers or pointers.
fn handle<H: Copy>(number: u32) -> H {
    let (narrow, wide) = (number, u64::from(number));
    // SAFETY: a handle is a plain integer or pointer of four or eight bytes.
    unsafe {
        match size_of::<H>() {
            4 => std::mem::transmute_copy::<u32, H>(&narrow),
            8 => std::mem::transmute_copy::<u64, H>(&wide),
            _ => unreachable!("a handle has four or eight bytes"),
        }
    }
}

fn raw<H: Copy>(handle: H) -> u64 {
    // SAFETY: as above.
    unsafe {
        match size_of::<H>() {
            4 => u64::from(std::mem::transmute_copy::<H, u32>(&handle)),
            8 => std::mem::transmute_copy::<H, u64>(&handle),
            _ => unreachable!("a handle has four or eight bytes"),
        }
    }
}

fn number<H: Copy>(handle: H) -> u32 {
    u32::try_from(raw(handle)).unwrap_or(u32::MAX)
}

fn context(comm: MPI_Comm) -> u32 {
    // SAFETY: a constant of the bindings.
    if raw(comm) == raw(unsafe { ffi::RSMPI_COMM_WORLD }) { WORLD } else { number(comm) }
}

fn is_null(request: MPI_Request) -> bool {
    // SAFETY: a constant of the bindings.
    raw(request) == raw(unsafe { ffi::RSMPI_REQUEST_NULL })
}

/// Bytes of an element of a predefined datatype.
fn size_of_type(datatype: MPI_Datatype) -> usize {
    const SIZES: [usize; 8] = [1, 4, 8, 4, 8, 8, 16, 8];
    // SAFETY: a constant of the bindings.
    if raw(unsafe { ffi::RSMPI_INT32_T }) == raw(datatype) {
        return 4;
    }
    // SAFETY: the function only returns a constant.
    let is = |which: &usize| raw(unsafe { portolan_shim_type(*which as c_int) }) == raw(datatype);
    match (0..SIZES.len()).find(is) {
        Some(which) => SIZES[which],
        None => machine::fail("a datatype that the simulated MPI does not know"),
    }
}

/// A call of MPI by the calling rank: another thread may run before it, and what has come by
/// then happens.
fn call<R>(name: &'static str, body: impl FnOnce(&mut Machine, usize) -> R) -> R {
    if !machine::simulated() {
        eprintln!("{name} is called outside of a simulated rank");
        std::process::abort();
    }
    threads::point(name, false, 500);
    machine::with(|machine| {
        let rank = machine::rank();
        machine.progress(rank);
        body(machine, rank)
    })
}

/// Waits for a request as MPI's blocking calls do: serving nobody but MPI.
fn block(name: &'static str, request: u32) -> (usize, i32, usize) {
    loop {
        if let Some(done) = call(name, |machine, rank| machine.test(rank, request)) {
            return done;
        }
        threads::point(name, true, 500);
    }
}

/// # Safety
/// `status` is writable, or to be ignored.
unsafe fn fill(status: *mut MPI_Status, source: usize, tag: i32, bytes: usize) {
    // SAFETY: a constant of the bindings.
    if status.is_null() || status == unsafe { ffi::RSMPI_STATUS_IGNORE } {
        return;
    }
    // SAFETY: the caller's promise. The count is kept where no error is noted.
    unsafe {
        (*status).MPI_SOURCE = source as c_int;
        (*status).MPI_TAG = tag;
        (*status).MPI_ERROR = bytes as c_int;
    }
}

fn wanted(machine: &Machine, comm: u32, source: c_int, tag: c_int) -> (Option<usize>, Option<i32>) {
    // SAFETY: constants of the bindings.
    let (any_source, any_tag) = unsafe { (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG) };
    let source = (source != any_source).then(|| machine.members(comm)[source as usize]);
    (source, (tag != any_tag).then_some(tag))
}

/// Defines functions under the names of MPI's.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        /// # Safety
        /// As MPI's.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promises are those that MPI asks for.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )*};
}

functions! {
    fn MPI_Initialized(flag: *mut c_int) {
        *flag = c_int::from(machine::simulated());
        OK
    }

    fn MPI_Finalized(flag: *mut c_int) {
        *flag = 0;
        OK
    }

    fn MPI_Query_thread(provided: *mut c_int) {
        *provided = ffi::RSMPI_THREAD_MULTIPLE;
        OK
    }

    fn MPI_Abort(_comm: MPI_Comm, code: c_int) {
        machine::fail(&format!("MPI_Abort with code {code}"))
    }

    fn MPI_Error_string(code: c_int, text: *mut c_char, len: *mut c_int) {
        let words = format!("simulated error {code}\0");
        std::ptr::copy_nonoverlapping(words.as_ptr(), text.cast(), words.len());
        *len = words.len() as c_int - 1;
        OK
    }

    fn MPI_Comm_set_errhandler(_comm: MPI_Comm, _handler: MPI_Errhandler) {
        OK
    }

    fn MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) {
        let place = call("MPI_Comm_rank", |machine, me| {
            let members = machine.members(context(comm));
            members.iter().position(|&member| member == me)
        });
        *rank = place.expect("the caller is a member") as c_int;
        OK
    }

    fn MPI_Comm_size(comm: MPI_Comm, size: *mut c_int) {
        *size = call("MPI_Comm_size", |machine, _| machine.members(context(comm)).len()) as c_int;
        OK
    }

    fn MPI_Comm_test_inter(_comm: MPI_Comm, flag: *mut c_int) {
        *flag = 0;
        OK
    }

    fn MPI_Comm_dup(comm: MPI_Comm, made: *mut MPI_Comm) {
        *made = handle(meet("MPI_Comm_dup", context(comm), Kind::Dup));
        OK
    }

    fn MPI_Comm_split_type(
        comm: MPI_Comm,
        _kind: c_int,
        _key: c_int,
        _info: MPI_Info,
        made: *mut MPI_Comm,
    ) {
        *made = handle(meet("MPI_Comm_split_type", context(comm), Kind::SplitByHost));
        OK
    }

    fn MPI_Comm_create_group(comm: MPI_Comm, group: MPI_Group, tag: c_int, made: *mut MPI_Comm) {
        let on = call("MPI_Comm_create_group", |machine, _| {
            let members = match machine.network.group(number(group)) {
                Some(members) => members,
                None => machine.fail("a group that is none"),
            };
            machine.meeting(context(comm), tag, &members)
        });
        *made = handle(meet("MPI_Comm_create_group", on, Kind::Create));
        OK
    }

    fn MPI_Comm_free(comm: *mut MPI_Comm) {
        call("MPI_Comm_free", |machine, rank| machine.free_context(rank, context(*comm)));
        OK
    }

    fn MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) {
        *group = handle(call("MPI_Comm_group", |machine, _| {
            let members = machine.members(context(comm));
            machine.network.new_group(members)
        }));
        OK
    }

    fn MPI_Group_incl(of: MPI_Group, n: c_int, ranks: *const c_int, made: *mut MPI_Group) {
        let ranks = std::slice::from_raw_parts(ranks, n as usize);
        *made = handle(call("MPI_Group_incl", |machine, _| {
            let all = machine.network.group(number(of)).expect("a live group");
            let members = ranks.iter().map(|&rank| all[rank as usize]).collect();
            machine.network.new_group(Arc::new(members))
        }));
        OK
    }

    fn MPI_Group_translate_ranks(
        of: MPI_Group,
        n: c_int,
        ranks: *const c_int,
        to: MPI_Group,
        found: *mut c_int,
    ) {
        let ranks = std::slice::from_raw_parts(ranks, n as usize);
        let found = std::slice::from_raw_parts_mut(found, n as usize);
        call("MPI_Group_translate_ranks", |machine, _| {
            let live = |group| machine.network.group(number(group)).expect("a live group");
            let (of, to) = (live(of), live(to));
            let places: std::collections::HashMap<usize, usize> =
                to.iter().enumerate().map(|(place, &rank)| (rank, place)).collect();
            for (rank, found) in ranks.iter().zip(found) {
                // Any negative number is undefined to the engine.
                *found = places.get(&of[*rank as usize]).map_or(-1, |&place| place as c_int);
            }
        });
        OK
    }

    fn MPI_Group_free(group: *mut MPI_Group) {
        let freed = call("MPI_Group_free", |machine, _| machine.network.free_group(number(*group)));
        if freed { OK } else { machine::fail("a group is freed twice") }
    }

    fn MPI_Isend(
        data: *const c_void,
        count: c_int,
        datatype: MPI_Datatype,
        to: c_int,
        tag: c_int,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        *request = handle(call("MPI_Isend", |machine, rank| {
            let comm = context(comm);
            let to = machine.members(comm)[to as usize];
            machine.send(rank, comm, to, tag, data.cast(), len, false)
        }));
        OK
    }

    fn MPI_Send(
        data: *const c_void,
        count: c_int,
        datatype: MPI_Datatype,
        to: c_int,
        tag: c_int,
        comm: MPI_Comm,
    ) {
        let len = count as usize * size_of_type(datatype);
        let request = call("MPI_Send", |machine, rank| {
            let comm = context(comm);
            let to = machine.members(comm)[to as usize];
            // Programs rely on it that a few bytes leave at once.
            machine.send(rank, comm, to, tag, data.cast(), len, len <= 64)
        });
        block("MPI_Send", request);
        OK
    }

    fn PMPI_Recv(
        data: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        source: c_int,
        tag: c_int,
        comm: MPI_Comm,
        status: *mut MPI_Status,
    ) {
        let len = count as usize * size_of_type(datatype);
        let request = call("MPI_Recv", |machine, rank| {
            let comm = context(comm);
            let (source, tag) = wanted(machine, comm, source, tag);
            machine.receive(rank, comm, source, tag, data.cast(), len)
        });
        let (source, tag, bytes) = block("MPI_Recv", request);
        fill(status, source, tag, bytes);
        OK
    }

    fn MPI_Irecv(
        data: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        source: c_int,
        tag: c_int,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        *request = handle(call("MPI_Irecv", |machine, rank| {
            let comm = context(comm);
            let (source, tag) = wanted(machine, comm, source, tag);
            machine.receive(rank, comm, source, tag, data.cast(), len)
        }));
        OK
    }

    fn MPI_Iprobe(
        source: c_int,
        tag: c_int,
        comm: MPI_Comm,
        flag: *mut c_int,
        status: *mut MPI_Status,
    ) {
        let found = call("MPI_Iprobe", |machine, rank| {
            let comm = context(comm);
            let (source, tag) = wanted(machine, comm, source, tag);
            let (source, tag, bytes) = machine.network.look(rank, comm, source, tag)?;
            Some((machine.network.context(comm)?.place(source)?, tag, bytes))
        });
        *flag = c_int::from(found.is_some());
        if let Some((source, tag, bytes)) = found {
            fill(status, source, tag, bytes);
        }
        OK
    }

    fn MPI_Improbe(
        source: c_int,
        tag: c_int,
        comm: MPI_Comm,
        flag: *mut c_int,
        message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) {
        let found = call("MPI_Improbe", |machine, rank| {
            let comm = context(comm);
            let (source, tag) = wanted(machine, comm, source, tag);
            let (id, source, tag, bytes) = machine.probe(rank, comm, source, tag)?;
            let source = machine.network.context(comm)?.place(source)?;
            Some((id, source, tag, bytes))
        });
        *flag = c_int::from(found.is_some());
        if let Some((id, source, tag, bytes)) = found {
            *message = handle(id);
            fill(status, source, tag, bytes);
        }
        OK
    }

    fn MPI_Imrecv(
        data: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        message: *mut MPI_Message,
        request: *mut MPI_Request,
    ) {
        let room = count as usize * size_of_type(datatype);
        *request = handle(call("MPI_Imrecv", |machine, rank| {
            machine.receive_matched(rank, number(*message), data.cast(), room)
        }));
        OK
    }

    fn MPI_Mrecv(
        data: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) {
        let room = count as usize * size_of_type(datatype);
        let (request, bytes) = call("MPI_Mrecv", |machine, rank| {
            let bytes = machine.matched_bytes(number(*message));
            (machine.receive_matched(rank, number(*message), data.cast(), room), bytes)
        });
        let (source, tag, got) = block("MPI_Mrecv", request);
        fill(status, source, tag, got);
        if bytes > room { ERR_TRUNCATE } else { OK }
    }

    fn MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) {
        if is_null(*request) {
            *flag = 1;
            fill(status, 0, 0, 0);
            return OK;
        }
        let done = call("MPI_Test", |machine, rank| machine.test(rank, number(*request)));
        *flag = c_int::from(done.is_some());
        if let Some((source, tag, bytes)) = done {
            *request = ffi::RSMPI_REQUEST_NULL;
            fill(status, source, tag, bytes);
        }
        OK
    }

    fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) {
        if !is_null(*request) {
            let (source, tag, bytes) = block("MPI_Wait", number(*request));
            *request = ffi::RSMPI_REQUEST_NULL;
            fill(status, source, tag, bytes);
        }
        OK
    }

    fn MPI_Testsome(
        n: c_int,
        requests: *mut MPI_Request,
        found: *mut c_int,
        indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) {
        let requests = std::slice::from_raw_parts_mut(requests, n as usize);
        *found = call("MPI_Testsome", |machine, rank| {
            let mut done = 0;
            for (index, request) in requests.iter_mut().enumerate() {
                if is_null(*request) {
                    continue;
                }
                if let Some((source, tag, bytes)) = machine.test(rank, number(*request)) {
                    *request = ffi::RSMPI_REQUEST_NULL;
                    *indices.add(done) = index as c_int;
                    fill(statuses.add(done), source, tag, bytes);
                    done += 1;
                }
            }
            done as c_int
        });
        OK
    }

    fn MPI_Cancel(request: *mut MPI_Request) {
        call("MPI_Cancel", |machine, rank| machine.cancel(rank, number(*request)));
        OK
    }

    fn MPI_Get_count(status: *const MPI_Status, _datatype: MPI_Datatype, count: *mut c_int) {
        *count = (*status).MPI_ERROR;
        OK
    }

    fn MPI_Ibarrier(comm: MPI_Comm, request: *mut MPI_Request) {
        *request = begin("MPI_Ibarrier", comm, Kind::Barrier, std::ptr::null(), 0, std::ptr::null_mut());
        OK
    }

    fn MPI_Ibcast(
        data: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        root: c_int,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        let kind = Kind::Broadcast { root: root as usize };
        *request = begin("MPI_Ibcast", comm, kind, data, len, data);
        OK
    }

    fn MPI_Iallgather(
        data: *const c_void,
        count: c_int,
        datatype: MPI_Datatype,
        to: *mut c_void,
        _to_count: c_int,
        _to_type: MPI_Datatype,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        *request = begin("MPI_Iallgather", comm, Kind::Allgather, data, len, to);
        OK
    }

    fn MPI_Iallreduce(
        _data: *const c_void,
        to: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        op: MPI_Op,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        let kind = reduction(op, datatype, count as usize, None);
        *request = begin("MPI_Iallreduce", comm, kind, to, len, to);
        OK
    }

    fn MPI_Ireduce(
        data: *const c_void,
        to: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        op: MPI_Op,
        root: c_int,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        let data = if data == portolan_shim_in_place().cast_const() { to.cast_const() } else { data };
        let kind = reduction(op, datatype, count as usize, Some(root as usize));
        *request = begin("MPI_Ireduce", comm, kind, data, len, to);
        OK
    }

    fn MPI_Op_create(function: ffi::MPI_User_function, _commute: c_int, op: *mut MPI_Op) {
        let function = function.map_or(0, |function| function as usize);
        *op = handle(OPS.lock().push_function(function));
        OK
    }

    fn MPI_Op_free(_op: *mut MPI_Op) {
        OK
    }

    fn MPI_Win_create(
        _base: *mut c_void,
        _len: ffi::MPI_Aint,
        _unit: c_int,
        _info: MPI_Info,
        _comm: MPI_Comm,
        _win: *mut ffi::MPI_Win,
    ) {
        ERR_OTHER
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Wtime() -> f64 {
    threads::tick(300) as f64 * 1e-9
}

/// The functions of operations; a number stays that of its function.
struct Ops(Vec<usize>);

static OPS: parking_lot::Mutex<Ops> = parking_lot::Mutex::new(Ops(Vec::new()));

impl Ops {
    fn push_function(&mut self, function: usize) -> u32 {
        let at = self.0.iter().position(|&known| known == function).unwrap_or_else(|| {
            self.0.push(function);
            self.0.len() - 1
        });
        at as u32 + 1
    }
}

fn reduction(op: MPI_Op, datatype: MPI_Datatype, count: usize, root: Option<usize>) -> Kind {
    let address = OPS.lock().0[number(op) as usize - 1];
    // SAFETY: an address that MPI_Op_create was given as one of such a function.
    let function: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype) =
        unsafe { std::mem::transmute(address) };
    let raw = raw(datatype);
    let combine = Arc::new(move |from: *const u8, into: *mut u8, count: usize| {
        let mut datatype: MPI_Datatype = if size_of::<MPI_Datatype>() == 4 {
            handle(raw as u32)
        } else {
            // SAFETY: the bytes of the handle that was given.
            unsafe { std::mem::transmute_copy(&raw) }
        };
        let mut count = count as c_int;
        // SAFETY: both have so many elements of the type.
        unsafe { function(from.cast_mut().cast(), into.cast(), &mut count, &mut datatype) };
    });
    Kind::Reduce { root, combine, count }
}

/// Begins a collective of the caller on a communicator.
///
/// # Safety
/// There are `len` bytes at `data`; the result has room at `to` until the request is done.
unsafe fn begin(
    name: &'static str,
    comm: MPI_Comm,
    kind: Kind,
    data: *const c_void,
    len: usize,
    to: *mut c_void,
) -> MPI_Request {
    let give = if len == 0 {
        Vec::new()
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }.to_vec()
    };
    handle(call(name, |machine, rank| machine.enter(rank, context(comm), kind, give, to.cast())))
}

/// A collective that makes a communicator, and waits for it.
fn meet(name: &'static str, on: u32, kind: Kind) -> u32 {
    let mut made = [0u8; 4];
    let to = made.as_mut_ptr();
    let request = call(name, |machine, rank| machine.enter(rank, on, kind, Vec::new(), to));
    block(name, request);
    u32::from_ne_bytes(std::hint::black_box(made))
}
