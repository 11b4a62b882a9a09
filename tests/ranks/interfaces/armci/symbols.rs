//! The symbols of ARMCI, as `armci.h` and `armcix.h` declare them.

use std::os::raw::{c_int, c_long, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Hdl(pub [c_int; 2]);

#[repr(C)]
pub struct Giov {
    pub src: *const *mut c_void,
    pub dst: *const *mut c_void,
    pub bytes: c_int,
    pub len: c_int,
}

/// Larger than any `ARMCI_Group`.
#[repr(C, align(16))]
pub struct Group(pub [u8; 64]);

pub type Ptr = *mut c_void;
pub type Ints = *const c_int;

unsafe extern "C" {
    pub fn ARMCI_Init() -> c_int;
    pub fn ARMCI_Finalize() -> c_int;
    pub fn ARMCI_Barrier();
    pub fn ARMCI_Fence(proc: c_int);
    pub fn ARMCI_AllFence();
    pub fn armci_msg_barrier();
    pub fn armci_notify(proc: c_int) -> c_int;
    pub fn armci_notify_wait(proc: c_int, pval: *mut c_int) -> c_int;

    pub fn ARMCI_Put(src: Ptr, dst: Ptr, n: c_int, proc: c_int) -> c_int;
    pub fn ARMCI_Get(src: Ptr, dst: Ptr, n: c_int, proc: c_int) -> c_int;
    pub fn ARMCI_Acc(ty: c_int, scale: Ptr, src: Ptr, dst: Ptr, n: c_int, proc: c_int) -> c_int;
    pub fn ARMCI_NbPut(src: Ptr, dst: Ptr, n: c_int, proc: c_int, hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_NbGet(src: Ptr, dst: Ptr, n: c_int, proc: c_int, hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_NbAcc(
        ty: c_int,
        scale: Ptr,
        src: Ptr,
        dst: Ptr,
        n: c_int,
        proc: c_int,
        hdl: *mut Hdl,
    ) -> c_int;

    pub fn ARMCI_PutS(
        src: Ptr,
        ss: Ints,
        dst: Ptr,
        ds: Ints,
        count: Ints,
        levels: c_int,
        proc: c_int,
    ) -> c_int;
    pub fn ARMCI_GetS(
        src: Ptr,
        ss: Ints,
        dst: Ptr,
        ds: Ints,
        count: Ints,
        levels: c_int,
        proc: c_int,
    ) -> c_int;
    pub fn ARMCI_AccS(
        ty: c_int,
        scale: Ptr,
        src: Ptr,
        ss: Ints,
        dst: Ptr,
        ds: Ints,
        count: Ints,
        levels: c_int,
        proc: c_int,
    ) -> c_int;
    pub fn ARMCI_NbPutS(
        src: Ptr,
        ss: Ints,
        dst: Ptr,
        ds: Ints,
        count: Ints,
        levels: c_int,
        proc: c_int,
        hdl: *mut Hdl,
    ) -> c_int;
    pub fn ARMCI_NbGetS(
        src: Ptr,
        ss: Ints,
        dst: Ptr,
        ds: Ints,
        count: Ints,
        levels: c_int,
        proc: c_int,
        hdl: *mut Hdl,
    ) -> c_int;
    pub fn ARMCI_NbAccS(
        ty: c_int,
        scale: Ptr,
        src: Ptr,
        ss: Ints,
        dst: Ptr,
        ds: Ints,
        count: Ints,
        levels: c_int,
        proc: c_int,
        hdl: *mut Hdl,
    ) -> c_int;

    pub fn ARMCI_PutV(iov: *mut Giov, len: c_int, proc: c_int) -> c_int;
    pub fn ARMCI_GetV(iov: *mut Giov, len: c_int, proc: c_int) -> c_int;
    pub fn ARMCI_AccV(ty: c_int, scale: Ptr, iov: *mut Giov, len: c_int, proc: c_int) -> c_int;
    pub fn ARMCI_NbPutV(iov: *mut Giov, len: c_int, proc: c_int, hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_NbGetV(iov: *mut Giov, len: c_int, proc: c_int, hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_NbAccV(
        ty: c_int,
        scale: Ptr,
        iov: *mut Giov,
        len: c_int,
        proc: c_int,
        hdl: *mut Hdl,
    ) -> c_int;

    pub fn ARMCI_Put_flag(
        src: Ptr,
        dst: Ptr,
        n: c_int,
        flag: Ptr,
        value: c_int,
        proc: c_int,
    ) -> c_int;
    pub fn ARMCI_PutS_flag(
        src: Ptr,
        ss: Ints,
        dst: Ptr,
        ds: Ints,
        count: Ints,
        levels: c_int,
        flag: Ptr,
        value: c_int,
        proc: c_int,
    ) -> c_int;
    pub fn ARMCI_PutValueInt(v: c_int, dst: Ptr, proc: c_int) -> c_int;
    pub fn ARMCI_PutValueLong(v: c_long, dst: Ptr, proc: c_int) -> c_int;
    pub fn ARMCI_PutValueFloat(v: f32, dst: Ptr, proc: c_int) -> c_int;
    pub fn ARMCI_PutValueDouble(v: f64, dst: Ptr, proc: c_int) -> c_int;
    pub fn ARMCI_NbPutValueInt(v: c_int, dst: Ptr, proc: c_int, hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_NbPutValueLong(v: c_long, dst: Ptr, proc: c_int, hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_NbPutValueFloat(v: f32, dst: Ptr, proc: c_int, hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_NbPutValueDouble(v: f64, dst: Ptr, proc: c_int, hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_GetValueInt(src: Ptr, proc: c_int) -> c_int;
    pub fn ARMCI_GetValueLong(src: Ptr, proc: c_int) -> c_long;
    pub fn ARMCI_GetValueFloat(src: Ptr, proc: c_int) -> f32;
    pub fn ARMCI_GetValueDouble(src: Ptr, proc: c_int) -> f64;

    pub fn ARMCI_INIT_HANDLE(hdl: *mut Hdl);
    pub fn ARMCI_SET_AGGREGATE_HANDLE(hdl: *mut Hdl);
    pub fn ARMCI_UNSET_AGGREGATE_HANDLE(hdl: *mut Hdl);
    pub fn ARMCI_Wait(hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_Test(hdl: *mut Hdl) -> c_int;
    pub fn ARMCI_WaitProc(proc: c_int) -> c_int;
    pub fn ARMCI_WaitAll() -> c_int;

    pub fn ARMCI_Rmw(op: c_int, ploc: Ptr, prem: Ptr, value: c_int, proc: c_int) -> c_int;
    pub fn ARMCI_Create_mutexes(count: c_int) -> c_int;
    pub fn ARMCI_Destroy_mutexes() -> c_int;
    pub fn ARMCI_Lock(mutex: c_int, proc: c_int);
    pub fn ARMCI_Unlock(mutex: c_int, proc: c_int);
    pub fn ARMCI_Group_get_world(group: *mut Group);
    pub fn ARMCIX_Create_mutexes_hdl(count: c_int, group: *mut Group) -> Ptr;
    pub fn ARMCIX_Destroy_mutexes_hdl(hdl: Ptr) -> c_int;
    pub fn ARMCIX_Lock_hdl(hdl: Ptr, mutex: c_int, proc: c_int);
    pub fn ARMCIX_Trylock_hdl(hdl: Ptr, mutex: c_int, proc: c_int) -> c_int;
    pub fn ARMCIX_Unlock_hdl(hdl: Ptr, mutex: c_int, proc: c_int);
    pub fn ARMCIX_Progress();
}
