//! The numbers of a trace: calls, interfaces, paths, causes of waits, and what is served.
//!
//! A number keeps its meaning as long as the format has its version; new ones go to the end of a list.

use super::format::Fault;

/// Numbered names: the number is the place in the list.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All of them, by number.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// For people.
            pub const fn name(self) -> &'static str {
                [$($text,)+][self as usize]
            }

            /// # Errors
            /// `Value` where no name has the number.
            pub(super) fn from_number(number: u8) -> Result<$name, Fault> {
                Self::ALL.get(number as usize).copied().ok_or(Fault::Value(stringify!($name)))
            }
        }
    };
}

numbered! {
    /// What a rank called.
    Call {
        /// A blocking put.
        Put = "put",
        /// A put that a handle or a fence completes.
        PutNb = "non-blocking put",
        /// A blocking get.
        Get = "get",
        /// A get that a handle completes.
        GetNb = "non-blocking get",
        /// A blocking accumulate.
        Acc = "accumulate",
        /// An accumulate that a handle or a fence completes.
        AccNb = "non-blocking accumulate",
        /// A fetch-and-add, swap or another read-modify-write of a word.
        Rmw = "read-modify-write",
        /// A mutex is taken.
        Lock = "lock",
        /// A mutex is given back.
        Unlock = "unlock",
        /// A fence towards one rank.
        Fence = "fence",
        /// A fence towards all ranks.
        FenceAll = "fence to all",
        /// A barrier.
        Barrier = "barrier",
        /// The wait for a handle, or for several.
        Wait = "wait",
        /// A notification is sent.
        Notify = "notify",
        /// The wait for a notification.
        NotifyWait = "wait for a notification",
        /// A collective reduction.
        Reduce = "reduce",
        /// A collective broadcast.
        Broadcast = "broadcast",
        /// Another collective exchange.
        Exchange = "exchange",
        /// Memory of a group is allocated.
        Allocate = "allocate",
        /// It is freed.
        Free = "free",
        /// An active message is sent.
        Send = "message",
        /// Items that were aggregated leave as one message.
        Aggregate = "aggregated message",
        /// A wait until no message is under way.
        Quiesce = "quiescence",
        /// A remote procedure is called: until its request has left; the answer comes later.
        Rpc = "remote call",
        /// A bulk transfer of the rpc interfaces: until its first chunks have left.
        Bulk = "bulk transfer",
        /// A composition is performed.
        Perform = "perform",
        /// Memory outside of segments is exposed to other ranks.
        Expose = "expose",
        /// Another call.
        Other = "other",
    }
}

numbered! {
    /// The interface that was called.
    Face {
        /// None: the engine itself.
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
    /// How bytes travel.
    PathTaken {
        /// None do.
        None = "none",
        /// Load and store in shared memory.
        Direct = "direct",
        /// MPI's windows.
        Rma = "rma",
        /// The two-sided path, served by the owner.
        Message = "message",
        /// A ring of the node.
        Ring = "ring",
        /// The kernel copies between processes.
        Cma = "cma",
        /// Not yet: it stays in a buffer of aggregation.
        Buffer = "buffer",
    }
}

numbered! {
    /// What a thread waited for.
    Cause {
        /// Something that has no other number.
        Other = "other",
        /// That operations are visible at their target.
        Fence = "fence",
        /// A mutex that another rank has.
        Lock = "lock",
        /// The other ranks of a barrier.
        Barrier = "barrier",
        /// A handle's operations.
        Handle = "handle",
        /// A target that has not acknowledged enough requests yet.
        Credit = "credit",
        /// A ring of the node that is full.
        Ring = "full ring",
        /// The answer of a blocking get or read-modify-write.
        Answer = "answer",
        /// The other ranks of a collective call.
        Collective = "collective",
        /// A notification.
        Notify = "notification",
        /// The target of a rendezvous, which takes the data.
        Rendezvous = "rendezvous",
        /// An active message's effect: a counter, quiescence.
        Message = "active message",
        /// The answer of a remote procedure, or other progress of the rpc interfaces.
        Rpc = "remote call",
        /// Start or end of the engine.
        Start = "start and end",
        /// What the program's own calls of MPI wait for.
        Mpi = "MPI of the program",
    }
}

numbered! {
    /// What a rank did for another one.
    Served {
        /// A put's bytes were stored.
        Put = "put",
        /// A get's bytes were sent.
        Get = "get",
        /// An accumulate.
        Acc = "accumulate",
        /// A read-modify-write.
        Rmw = "read-modify-write",
        /// A request for a mutex, or its return.
        Lock = "mutex",
        /// A fence's request.
        Fence = "fence",
        /// A header handler, or a handler of a message, ran.
        Handler = "handler",
        /// A completion handler ran.
        Completion = "completion handler",
        /// Data of a rendezvous was read or sent.
        Data = "data",
        /// Another request.
        Other = "other",
    }
}

numbered! {
    /// What a segment is.
    SegmentKind {
        /// Memory of a group.
        Memory = "memory",
        /// A set of mutexes; an offset in it is a mutex's number.
        Mutexes = "mutexes",
    }
}
