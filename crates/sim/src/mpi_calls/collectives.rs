//! Collectives and the operations of reductions.

use super::*;
use crate::network::Combine;

functions! {
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
        let (combine, count) = (combine(op, datatype), count as usize);
        let kind = Kind::Reduce { root: None, combine, count };
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
        let (root, combine, count) = (Some(root as usize), combine(op, datatype), count as usize);
        let kind = Kind::Reduce { root, combine, count };
        *request = begin("MPI_Ireduce", comm, kind, data, len, to);
        OK
    }

    fn MPI_Iscan(
        _data: *const c_void,
        to: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        op: MPI_Op,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        let (exclusive, combine, count) = (false, combine(op, datatype), count as usize);
        let kind = Kind::Scan { exclusive, combine, count };
        *request = begin("MPI_Iscan", comm, kind, to, len, to);
        OK
    }

    fn MPI_Iexscan(
        _data: *const c_void,
        to: *mut c_void,
        count: c_int,
        datatype: MPI_Datatype,
        op: MPI_Op,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        let (exclusive, combine, count) = (true, combine(op, datatype), count as usize);
        let kind = Kind::Scan { exclusive, combine, count };
        *request = begin("MPI_Iexscan", comm, kind, to, len, to);
        OK
    }

    fn MPI_Igather(
        data: *const c_void,
        count: c_int,
        datatype: MPI_Datatype,
        to: *mut c_void,
        _to_count: c_int,
        _to_type: MPI_Datatype,
        root: c_int,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype);
        let kind = Kind::Gather { root: root as usize };
        *request = begin("MPI_Igather", comm, kind, data, len, to);
        OK
    }

    fn MPI_Iscatter(
        data: *const c_void,
        count: c_int,
        datatype: MPI_Datatype,
        to: *mut c_void,
        _to_count: c_int,
        _to_type: MPI_Datatype,
        root: c_int,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let (members, root) = (members(comm), root as usize);
        let len = count as usize * size_of_type(datatype) * members.len();
        let none = vec![0u8; len];
        let data = if members[root] == machine::rank() { data } else { none.as_ptr().cast() };
        *request = begin("MPI_Iscatter", comm, Kind::Scatter { root }, data, len, to);
        OK
    }

    fn MPI_Ialltoall(
        data: *const c_void,
        count: c_int,
        datatype: MPI_Datatype,
        to: *mut c_void,
        _to_count: c_int,
        _to_type: MPI_Datatype,
        comm: MPI_Comm,
        request: *mut MPI_Request,
    ) {
        let len = count as usize * size_of_type(datatype) * members(comm).len();
        *request = begin("MPI_Ialltoall", comm, Kind::Exchange, data, len, to);
        OK
    }

    fn MPI_Type_contiguous(count: c_int, base: MPI_Datatype, made: *mut MPI_Datatype) {
        *made = handle(DERIVED | (count as u32 * size_of_type(base) as u32));
        OK
    }

    fn MPI_Type_commit(_datatype: *mut MPI_Datatype) {
        OK
    }

    fn MPI_Type_free(_datatype: *mut MPI_Datatype) {
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
}

/// The functions of reduction operations, identified by their indices, which never change.
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

fn combine(op: MPI_Op, datatype: MPI_Datatype) -> Combine {
    let address = OPS.lock().0[number(op) as usize - 1];
    // SAFETY: MPI_Op_create got this address as a function of this type.
    let function: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype) =
        unsafe { std::mem::transmute(address) };
    let raw = raw(datatype);
    Arc::new(move |from: *const u8, into: *mut u8, count: usize| {
        let mut datatype: MPI_Datatype = if size_of::<MPI_Datatype>() == 4 {
            handle(raw as u32)
        } else {
            // SAFETY: `raw` contains the bytes of a valid handle of this type.
            unsafe { std::mem::transmute_copy(&raw) }
        };
        let mut count = count as c_int;
        // SAFETY: both buffers have `count` elements of the datatype.
        unsafe { function(from.cast_mut().cast(), into.cast(), &mut count, &mut datatype) };
    })
}

fn members(comm: MPI_Comm) -> Arc<Vec<usize>> {
    machine::with(|machine| machine.members(context(comm)))
}

/// Begins a collective of the caller on a communicator. Returns the request.
///
/// # Safety
/// `data` has `len` readable bytes. `to` is valid for writes of the result until the request ends.
unsafe fn begin(
    name: &'static str,
    comm: MPI_Comm,
    kind: Kind,
    data: *const c_void,
    len: usize,
    to: *mut c_void,
) -> MPI_Request {
    handle(call(name, |machine, rank| {
        let give = match len {
            0 => Vec::new(),
            // SAFETY: the caller guarantees that `data` is valid for reads of `len` bytes.
            _ => unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }.to_vec(),
        };
        machine.enter(rank, context(comm), kind, give, to.cast())
    }))
}
