//! The kinds of collective calls, and their names in errors.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name,)+ }

        impl Kind {
            pub(super) fn name(number: u8) -> &'static str {
                [$($text,)+].get(usize::from(number)).unwrap_or(&"an unknown call")
            }
        }
    };
}

kinds! {
    /// No public call, only the exchange itself.
    Plain = "exchange",
    Barrier = "barrier",
    AllReduce = "all_reduce",
    Reduce = "reduce",
    Broadcast = "broadcast",
    AllGather = "all_gather",
    Scan = "scan",
    ExclusiveScan = "scan_exclusive",
    Gather = "gather",
    Scatter = "scatter",
    AllToAll = "all_to_all",
    AllToAllVaried = "all_to_all_varied",
    Start = "start of the library",
    StartMessages = "start of active messages",
    Finalize = "finalize",
    Allocate = "allocation",
    Free = "free of a segment",
    CreateGroup = "creation of a group",
    FreeGroup = "free of a group",
    CreateMutexes = "creation of mutexes",
    FreeMutexes = "free of mutexes",
    Register = "registration of handlers",
    Unregister = "removal of handlers",
    Quiesce = "quiescence",
    CreateArray = "creation of an array",
    FreeArray = "free of an array",
    /// Gives the owners exclusive access to the parts of an array.
    Access = "access to an array",
    /// Gives all ranks access to the parts again.
    Release = "release of an access",
    SyncArray = "sync of an array",
    FillArray = "fill of an array",
    ReduceArray = "reduction of an array",
    Ghosts = "exchange of ghost cells",
    CreateTiles = "creation of tiles",
    ResetTiles = "reset of tiles",
    CreateComposer = "creation of a composer",
    SyncComposer = "sync of a composer",
    FreeComposer = "free of a composer",
    Addresses = "exchange of addresses",
    /// A call that the program describes.
    Described = "call",
}
