//! The symbols of ARMCI, as `armci.h` and `armcix.h` declare them.

use mpi::ffi;
use std::os::raw::{c_char, c_int, c_long, c_void};

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

/// An `ARMCI_Group`.
#[repr(C)]
pub struct Group {
    pub comm: ffi::MPI_Comm,
    _unused: ffi::MPI_Comm,
    /// The rank in the world of each member.
    pub to_world: *mut c_int,
    /// The rank in the group of each rank of the world, or -1.
    pub from_world: *mut c_int,
    pub rank: c_int,
    pub size: c_int,
}

impl Group {
    /// Before a call fills it in.
    pub fn nobody() -> Group {
        // SAFETY: a handle of MPI, an address and a number may consist of zeros.
        unsafe { std::mem::zeroed() }
    }
}

pub type Ptr = *mut c_void;
pub type Ints = *const c_int;
pub type Text = *mut c_char;

type All = unsafe extern "C" fn(Ptr, c_int, Text);
type InGroup = unsafe extern "C" fn(Ptr, c_int, Text, *mut Group);

/// Declares the reductions of each type: of all ranks, of a group, of a node.
macro_rules! reductions {
    ($($all:ident $in_group:ident $node:ident)+) => {
        unsafe extern "C" {
            $(
                fn $all(x: Ptr, n: c_int, op: Text);
                fn $in_group(x: Ptr, n: c_int, op: Text, group: *mut Group);
                fn $node(x: Ptr, n: c_int, op: Text);
            )+
        }
        pub const REDUCTIONS: &[(All, InGroup, All)] = &[$(($all, $in_group, $node)),+];
    };
}

reductions! {
    armci_msg_igop armci_msg_group_igop armci_msg_clus_igop
    armci_msg_lgop armci_msg_group_lgop armci_msg_clus_lgop
    armci_msg_llgop armci_msg_group_llgop armci_msg_clus_llgop
    armci_msg_fgop armci_msg_group_fgop armci_msg_clus_fgop
    armci_msg_dgop armci_msg_group_dgop armci_msg_clus_dgop
}

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
    pub fn ARMCI_Group_get_default(group: *mut Group);
    pub fn ARMCI_Group_set_default(group: *mut Group);
    pub fn ARMCI_Group_create(n: c_int, ranks: *mut c_int, group: *mut Group);
    pub fn ARMCI_Group_create_child(
        n: c_int,
        ranks: *mut c_int,
        group: *mut Group,
        parent: *mut Group,
    );
    pub fn ARMCIX_Group_split(
        parent: *mut Group,
        colour: c_int,
        key: c_int,
        group: *mut Group,
    ) -> c_int;
    pub fn ARMCIX_Group_dup(parent: *mut Group, group: *mut Group) -> c_int;
    pub fn ARMCI_Group_free(group: *mut Group);
    pub fn ARMCI_Group_rank(group: *mut Group, rank: *mut c_int) -> c_int;
    pub fn ARMCI_Group_size(group: *mut Group, size: *mut c_int);
    pub fn ARMCI_Absolute_id(group: *mut Group, rank: c_int) -> c_int;
    pub fn armci_group_comm(group: *mut Group) -> ffi::MPI_Comm;

    pub fn ARMCI_Malloc(bases: *mut Ptr, bytes: i64) -> c_int;
    pub fn ARMCI_Malloc_memdev(bases: *mut Ptr, bytes: i64, device: *const c_char) -> c_int;
    pub fn ARMCI_Malloc_group(bases: *mut Ptr, bytes: i64, group: *mut Group) -> c_int;
    pub fn ARMCI_Malloc_group_memdev(
        bases: *mut Ptr,
        bytes: i64,
        group: *mut Group,
        device: *const c_char,
    ) -> c_int;
    pub fn portolan_malloc_many(count: c_int, bytes: *const usize, bases: *mut Ptr) -> c_int;
    pub fn ARMCI_Free(mine: Ptr) -> c_int;
    pub fn ARMCI_Free_memdev(mine: Ptr) -> c_int;
    pub fn ARMCI_Free_group(mine: Ptr, group: *mut Group) -> c_int;

    pub fn armci_msg_group_barrier(group: *mut Group);
    pub fn armci_msg_bintree(
        scope: c_int,
        root: *mut c_int,
        up: *mut c_int,
        left: *mut c_int,
        right: *mut c_int,
    );
    pub fn armci_msg_bcast(x: Ptr, n: c_int, root: c_int);
    pub fn armci_msg_brdcst(x: Ptr, n: c_int, root: c_int);
    pub fn armci_msg_bcast_scope(scope: c_int, x: Ptr, n: c_int, root: c_int);
    pub fn armci_msg_group_bcast_scope(
        scope: c_int,
        x: Ptr,
        n: c_int,
        root: c_int,
        group: *mut Group,
    );
    pub fn armci_msg_clus_brdcst(x: Ptr, n: c_int);
    pub fn armci_grp_clus_brdcst(x: Ptr, n: c_int, first: c_int, ranks: c_int, group: *mut Group);
    pub fn armci_msg_snd(tag: c_int, x: Ptr, n: c_int, to: c_int);
    pub fn armci_msg_rcv(tag: c_int, x: Ptr, room: c_int, n: *mut c_int, from: c_int);
    pub fn armci_msg_rcvany(tag: c_int, x: Ptr, room: c_int, n: *mut c_int) -> c_int;
    pub fn armci_msg_gop_scope(scope: c_int, x: Ptr, n: c_int, op: Text, ty: c_int);
    pub fn armci_msg_group_gop_scope(
        scope: c_int,
        x: Ptr,
        n: c_int,
        op: Text,
        ty: c_int,
        group: *mut Group,
    );
    pub fn armci_msg_reduce(x: Ptr, n: c_int, op: Text, ty: c_int);
    pub fn armci_msg_reduce_scope(scope: c_int, x: Ptr, n: c_int, op: Text, ty: c_int);
    pub fn armci_msg_sel(x: Ptr, n: c_int, op: Text, ty: c_int, mine: c_int);
    pub fn armci_msg_sel_scope(scope: c_int, x: Ptr, n: c_int, op: Text, ty: c_int, mine: c_int);
    pub fn armci_exchange_address(x: Ptr, n: c_int);
    pub fn armci_exchange_address_grp(x: Ptr, n: c_int, group: *mut Group);

    pub fn ARMCIX_Create_mutexes_hdl(count: c_int, group: *mut Group) -> Ptr;
    pub fn ARMCIX_Destroy_mutexes_hdl(hdl: Ptr) -> c_int;
    pub fn ARMCIX_Lock_hdl(hdl: Ptr, mutex: c_int, proc: c_int);
    pub fn ARMCIX_Trylock_hdl(hdl: Ptr, mutex: c_int, proc: c_int) -> c_int;
    pub fn ARMCIX_Unlock_hdl(hdl: Ptr, mutex: c_int, proc: c_int);
    pub fn ARMCIX_Progress();
}
