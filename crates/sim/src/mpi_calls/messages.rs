//! Messages and their requests.

use super::*;

functions! {
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
            machine.send((rank, to), comm, tag, data.cast(), len, false)
        }));
        OK
    }

    fn PMPI_Send(
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
            // Programs rely on a blocking send of a few bytes returning at once.
            machine.send((rank, to), comm, tag, data.cast(), len, len <= 64)
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
            let (source, tag, bytes) = machine.network.find_message(rank, comm, source, tag)?;
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
            let bytes = machine.matched_bytes(number(*message));
            if bytes > room {
                machine.fail(&format!("a message of {bytes} bytes comes into MPI_Imrecv of {room}"));
            }
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

    fn PMPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) {
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
}
