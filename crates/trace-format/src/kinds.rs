//! Enumerations of the format. A number never changes its meaning. New entries go to the end.

use crate::format::Fault;

/// An enumeration whose entries have numbers in the file.
pub(crate) trait Numbered: Copy {
    fn number(self) -> u8;

    /// Fails with `Value` if no entry has the number.
    fn from_number(number: u8) -> Result<Self, Fault>;
}

/// Defines an enum with display names. The discriminant is the number in the file.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All variants in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// Returns the name for display.
            pub const fn name(self) -> &'static str {
                [$($text,)+][self as usize]
            }
        }

        impl Numbered for $name {
            fn number(self) -> u8 {
                self as u8
            }

            fn from_number(number: u8) -> Result<$name, Fault> {
                Self::ALL.get(number as usize).copied().ok_or(Fault::Value(stringify!($name)))
            }
        }
    };
}

numbered! {
    /// The call that a rank made.
    Call {
        /// A blocking put.
        Put = "put",
        /// A put completed by a handle or a fence.
        PutNb = "non-blocking put",
        /// A blocking get.
        Get = "get",
        /// A get completed by a handle.
        GetNb = "non-blocking get",
        /// A blocking accumulate.
        Acc = "accumulate",
        /// An accumulate completed by a handle or a fence.
        AccNb = "non-blocking accumulate",
        /// A read-modify-write of a word, such as fetch-and-add.
        Rmw = "read-modify-write",
        /// Locks a mutex.
        Lock = "lock",
        /// Unlocks a mutex.
        Unlock = "unlock",
        /// A fence for one rank.
        Fence = "fence",
        /// A fence for all ranks.
        FenceAll = "fence to all",
        /// A barrier.
        Barrier = "barrier",
        /// Waits for one or more handles.
        Wait = "wait",
        /// Sends a notification.
        Notify = "notify",
        /// Waits for a notification.
        NotifyWait = "wait for a notification",
        /// A collective reduction.
        Reduce = "reduce",
        /// A collective broadcast.
        Broadcast = "broadcast",
        /// Another collective exchange.
        Exchange = "exchange",
        /// Allocates a segment.
        Allocate = "allocate",
        /// Frees a segment.
        Free = "free",
        /// Sends an active message.
        Send = "message",
        /// Sends aggregated items as one message.
        Aggregate = "aggregated message",
        /// Waits until no active message is in flight.
        Quiesce = "quiescence",
        /// Sends the request of a remote procedure call. The reply arrives later.
        Rpc = "remote call",
        /// Starts a bulk transfer of the rpc interfaces.
        Bulk = "bulk transfer",
        /// Performs a composition.
        Perform = "perform",
        /// Registers memory outside of segments for access by other ranks.
        Expose = "expose",
        /// Any other call.
        Other = "other",
    }
}

numbered! {
    /// The interface that was called.
    Interface {
        /// The engine itself.
        Engine = "engine",
        /// ARMCI.
        Armci = "ARMCI",
        /// X10Lib.
        X10 = "X10Lib",
        /// LAPI.
        Lapi = "LAPI",
        /// compose/perform.
        Compose = "compose",
        /// Mercury.
        Mercury = "Mercury",
        /// The Rust interface.
        Rust = "Rust",
    }
}

numbered! {
    /// The path by which bytes travel.
    PathTaken {
        /// No bytes travel.
        None = "none",
        /// Loads and stores in shared memory.
        Direct = "direct",
        /// MPI windows.
        Rma = "rma",
        /// Two-sided messages, served by the owner.
        Message = "message",
        /// A ring in shared memory.
        Ring = "ring",
        /// Cross-memory attach.
        Cma = "cma",
        /// An aggregation buffer; the bytes travel later.
        Buffer = "buffer",
    }
}

numbered! {
    /// The reason for a wait.
    Cause {
        /// Any other reason.
        Other = "other",
        /// Operations that are not yet visible at their target.
        Fence = "fence",
        /// A mutex held by another rank.
        Lock = "lock",
        /// The other ranks of a barrier.
        Barrier = "barrier",
        /// The operations of a handle.
        Handle = "handle",
        /// Credits: the target has too many unacknowledged requests.
        Credit = "credit",
        /// A full ring.
        Ring = "full ring",
        /// The reply to a get or a read-modify-write.
        Answer = "answer",
        /// The other ranks of a collective call.
        Collective = "collective",
        /// A notification.
        Notify = "notification",
        /// The target of a rendezvous, which fetches the data.
        Rendezvous = "rendezvous",
        /// The effect of active messages: a counter or quiescence.
        Message = "active message",
        /// The reply of a remote procedure, or other progress of the rpc interfaces.
        Rpc = "remote call",
        /// Startup or shutdown of the engine.
        Start = "start and end",
        /// An MPI call made by the program.
        Mpi = "MPI of the program",
    }
}

numbered! {
    /// The work that a rank did for another rank.
    Served {
        /// Stored the bytes of a put.
        Put = "put",
        /// Sent the bytes of a get.
        Get = "get",
        /// An accumulate.
        Acc = "accumulate",
        /// A read-modify-write.
        Rmw = "read-modify-write",
        /// A lock or unlock request.
        Lock = "mutex",
        /// A flush request of a fence.
        Fence = "fence",
        /// Ran a header handler or a message handler.
        Handler = "handler",
        /// Ran a completion handler.
        Completion = "completion handler",
        /// Read or sent the data of a rendezvous.
        Data = "data",
        /// Any other request.
        Other = "other",
    }
}

numbered! {
    /// The kind of a segment.
    SegmentKind {
        /// Memory allocated by a group.
        Memory = "memory",
        /// A set of mutexes. Offsets are mutex numbers.
        Mutexes = "mutexes",
    }
}

numbered! {
    /// A blocking MPI call of the program, by its name.
    #[allow(missing_docs, reason = "the names are those of the MPI standard")]
    MpiCall {
        Barrier = "MPI_Barrier",
        Bcast = "MPI_Bcast",
        Reduce = "MPI_Reduce",
        Allreduce = "MPI_Allreduce",
        Gather = "MPI_Gather",
        Gatherv = "MPI_Gatherv",
        Scatter = "MPI_Scatter",
        Scatterv = "MPI_Scatterv",
        Allgather = "MPI_Allgather",
        Allgatherv = "MPI_Allgatherv",
        Alltoall = "MPI_Alltoall",
        Alltoallv = "MPI_Alltoallv",
        Alltoallw = "MPI_Alltoallw",
        ReduceScatter = "MPI_Reduce_scatter",
        ReduceScatterBlock = "MPI_Reduce_scatter_block",
        Scan = "MPI_Scan",
        Exscan = "MPI_Exscan",
        Send = "MPI_Send",
        Ssend = "MPI_Ssend",
        Rsend = "MPI_Rsend",
        Recv = "MPI_Recv",
        Sendrecv = "MPI_Sendrecv",
        SendrecvReplace = "MPI_Sendrecv_replace",
        Probe = "MPI_Probe",
        Wait = "MPI_Wait",
        Waitall = "MPI_Waitall",
        Waitany = "MPI_Waitany",
        Waitsome = "MPI_Waitsome",
        CommDup = "MPI_Comm_dup",
        CommSplit = "MPI_Comm_split",
        WinFence = "MPI_Win_fence",
    }
}
