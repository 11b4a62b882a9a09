//! Remote procedure calls: functions that run on another rank or in another process.
//!
//! A [`Class`] opens a network and holds the registered functions. A [`Context`] is a queue of
//! incoming calls and callbacks, which a thread of the program serves. [`Class::serve_fn`] and
//! [`Class::serve`] register a function by name. A client names the server by an [`Address`] and
//! calls the function with an input; its output is the answer. Inputs and outputs are serde types
//! ([`encoding`]). Large data travels as a [`bulk`] handle, which the server reads and writes by
//! one-sided transfers. Classes of the C interface of Mercury exchange the same bytes.
//!
//! ```
//! use portolan::Runtime;
//! use portolan::rpc::{Class, Listen};
//! use std::time::Duration;
//!
//! fn main() -> portolan::Result<()> {
//!     let rt = Runtime::init()?;
//!     let class = Class::init("mpi", Listen::Yes)?;
//!     let context = class.context()?;
//!     let add = class.serve_fn("add", |(a, b): (i64, i64)| Ok(a + b))?;
//!     // The number of ranks that call no more, on rank 0.
//!     let finished = rt.world().allocate::<u32>(usize::from(rt.rank() == 0))?;
//!     rt.world().barrier()?; // all ranks have registered the function
//!     let next = class.rank((rt.rank() + 1) % rt.size())?;
//!     let sum = context.call(&next, &add, &(2, 3), Duration::from_secs(10))?;
//!     assert_eq!(sum, 5);
//!     finished.fetch_add(0, 0, 1)?;
//!     // Other ranks may still call this one, and a barrier does not run their calls.
//!     while finished.load(0, 0)? < rt.size() as u32 {
//!         context.progress(Duration::from_millis(1))?;
//!         context.trigger(usize::MAX);
//!     }
//!     finished.free()?;
//!     context.destroy()?;
//!     drop(context);
//!     class.finalize()?;
//!     rt.finalize()
//! }
//! ```
//!
//! # Services
//! Servers and clients may also be separate programs without MPI and a launcher: on one host over
//! the network `na+sm`, and between hosts over `tcp`. Such programs need no
//! [`Runtime`](crate::Runtime).
//!
//! ```
//! use portolan::rpc::{Class, Failure, Listen};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Failure> {
//! let server = Class::init("na+sm", Listen::Yes)?;
//! let serving = server.context()?;
//! server.serve_fn("add", |(a, b): (i64, i64)| Ok(a + b))?;
//! let address = server.address_text(&server.own_address());
//! let thread = std::thread::spawn(move || {
//!     // Usually another process, which has read the address from a file.
//!     let client = Class::init("na+sm", Listen::No)?;
//!     let context = client.context()?;
//!     let add = client.client::<(i64, i64), i64>("add")?;
//!     let there = client.lookup(&address)?;
//!     let sum = context.call(&there, &add, &(2, 3), Duration::from_secs(10))?;
//!     context.destroy()?;
//!     drop((add, context));
//!     client.finalize()?;
//!     Ok::<i64, Failure>(sum)
//! });
//! while !thread.is_finished() {
//!     serving.progress(Duration::from_millis(10))?;
//!     serving.trigger(usize::MAX);
//! }
//! assert_eq!(thread.join().unwrap()?, 5);
//! serving.destroy()?;
//! drop(serving);
//! server.finalize()
//! # }
//! ```
//!
//! # Completion
//! - [`Handle::forward`] and [`Handle::start`] encode the input before they return, so it may be
//!   changed or dropped afterwards. The call ends when its answer has arrived, or when it fails or
//!   is cancelled. The callback then runs once, in [`Context::trigger`].
//! - [`Context::call`] and [`Handle::wait`] wait for the end of a call, and run incoming calls
//!   meanwhile.
//! - Calls, callbacks and transfers advance in [`Context::progress`]. Functions run only in
//!   [`Context::trigger`] and in the two waits, and callbacks also in [`Context::destroy`]. A
//!   process that serves functions calls `progress` and `trigger` in a loop.
//! - Calls are not ordered with respect to each other, nor with respect to puts into segments.
//! - A call that is dropped at the server without an answer fails at its origin.
//! - A one-way call ([`Rpc::without_answer`]) ends when its request has been sent and, if the input
//!   does not fit a message, the server has pulled it.
//! - Creating the first class over MPI and finalising the last one are collective over the job. No
//!   other call of this module is collective.
//!
//! # Errors
//! Functions of this module return a [`Failure`]: a [`Status`] that both ranks understand, and a
//! text. A `Failure` converts into [`Error`](crate::Error), so `?` works in functions that return
//! [`Result`](crate::Result), as above. A signature that must keep the status says
//! `Result<T, Failure>`. A handler that returns a failure answers the call with its status.

#[doc(inline)]
pub use portolan_rpc::hg::{Call, Class, Context, Handle, Listen, Rpc};
#[doc(inline)]
pub use portolan_rpc::na::{Address, OpId, Options};
#[doc(inline)]
pub use portolan_rpc::{Failure, Status};

pub mod bulk {
    //! Bulk data: memory that travels as a handle and moves by one-sided transfers.
    //!
    //! A [`Bulk`] stands for one or more segments of memory of one process. As a parameter of a
    //! call it is encoded as a handle. A handler that has decoded the handle can pull from the
    //! memory of the caller or push to it ([`Context::pull`](super::Context::pull),
    //! [`Context::push`](super::Context::push)), at any offset and with several transfers at a
    //! time.
    //!
    //! ```no_run
    //! use portolan::rpc::bulk::{Buffer, Bulk};
    //! use portolan::rpc::{Call, Failure};
    //!
    //! // A handler that answers with the sum of the caller's bytes.
    //! fn sum(call: Call<Bulk, u64>) -> Result<(), Failure> {
    //!     let data = call.input()?;
    //!     let (context, caller, bytes) = (call.context(), call.source(), data.len());
    //!     let buffer = Buffer::zeroed(bytes)?;
    //!     context.pull(&caller, data.at(0), buffer, bytes, move |moved, buffer| match moved {
    //!         Ok(()) => drop(call.answer(&buffer.iter().map(|&byte| u64::from(byte)).sum())),
    //!         Err(failure) => call.refuse(failure.status()),
    //!     });
    //!     Ok(())
    //! }
    //! ```
    //!
    //! # Completion
    //! A transfer has ended when its callback runs, and has moved all of its bytes if it succeeded.
    //! The callback receives the [`Buffer`] back, also if the transfer fails. The memory of the
    //! peer must stay registered until then: the peer keeps its [`Bulk`] until the call has been
    //! answered.
    //!
    //! # Threads
    //! [`Bulk`] is `Send`, `Sync` and `Clone`, and several threads and ranks may use its bytes
    //! concurrently. [`Bulk::write`] and [`Bulk::read`] copy with relaxed atomic accesses and
    //! create no references to the bytes. A read that runs concurrently with a write or a transfer
    //! returns old bytes, new bytes, or a mixture, all of which are valid values of `u8`. A
    //! [`Buffer`] dereferences to a slice, so it belongs either to one transfer or to its owner,
    //! never to both. Memory registered by [`Bulk::expose`], which is `unsafe`, is subject to the
    //! rules of its own type.

    #[doc(inline)]
    pub use portolan_rpc::bulk::{Buffer, Bulk, BulkOffset, BulkOp, Permission, Run};
}

#[doc(inline)]
pub use portolan_rpc::checksum;

pub mod encoding {
    //! The encoding of parameters: serde types to bytes and back.
    //!
    //! Calls encode their inputs and outputs themselves. A program needs the functions of this
    //! module only if it stores parameters or sends them in another way. C programs that describe
    //! the same parameters by procs of Mercury (`hg_proc_*`, `MERCURY_GEN_PROC`) produce the same
    //! bytes.
    //!
    //! ```
    //! use portolan::rpc::checksum::Method;
    //! use portolan::rpc::encoding::{from_slice, to_vec};
    //! use serde::{Deserialize, Serialize};
    //!
    //! // MERCURY_GEN_PROC(open_in_t, ((hg_string_t)(path)) ((int32_t)(flags)))
    //! #[derive(Debug, PartialEq, Serialize, Deserialize)]
    //! struct OpenIn {
    //!     path: String,
    //!     flags: i32,
    //! }
    //!
    //! # fn main() -> Result<(), portolan::rpc::encoding::Fault> {
    //! let sent = OpenIn { path: "/tmp/x".into(), flags: 2 };
    //! let mut bytes = to_vec(&sent, Method::Crc64)?;
    //! assert_eq!(from_slice::<OpenIn>(&bytes, Method::Crc64)?, sent);
    //! bytes[0] ^= 1;
    //! assert!(from_slice::<OpenIn>(&bytes, Method::Crc64).is_err());
    //! # Ok(())
    //! # }
    //! ```
    //!
    //! # The bytes
    //!
    //! Parameters follow each other without gaps, alignment or names. Integers and floats are
    //! little-endian. *Sizes* and *counts* are unsigned and take 8 bytes.
    //!
    //! | C | Rust (serde) | bytes |
    //! |---|---|---|
    //! | `int8_t` .. `int64_t`, `uint8_t` .. `uint64_t` | `i8` .. `i64`, `u8` .. `u64` | 1, 2, 4, 8 |
    //! | | `i128`, `u128` | 16 |
    //! | `float`, `double` | `f32`, `f64` | 4, 8: IEEE 754 |
    //! | `hg_bool_t`, `bool` | `bool` | 1: 0 or 1 (`hg_bool_t` accepts any byte; non-zero is true) |
    //! | `char` | `u8` | 1 |
    //! | `size_t`, `hg_size_t`, `hg_ptr_t` | `u64` | 8 |
    //! | `hg_id_t` | `u32` | 4 |
    //! | raw bytes (`hg_proc_raw`) | arrays, tuples of `u8` | the bytes; both sides know their number |
    //! | `hg_string_t`, not null | `String`, `&str`, [`HgString`] | size, the bytes, NUL, 2 bytes 0 |
    //! | `hg_string_t`, null | [`HgString`] of `None` | size 0, nothing else |
    //! | `hg_bulk_t`, not null | serde's bytes | size, then the serialised handle |
    //! | `hg_bulk_t`, null | empty bytes | size 0 |
    //! | a struct | struct, tuple, array | its fields in order; a nested struct likewise |
    //! | | `Vec`, sets | count, the elements |
    //! | | maps | count, then key and value in turn |
    //! | | `Option` | 1 byte: 0, or 1 and the value |
    //! | | enums | `u32`: the variant's index from 0, then its fields |
    //! | | `char` | `u32` |
    //! | | `()`, unit structs | nothing |
    //!
    //! The size of a string counts its terminating NUL. A string contains no other NUL. In the last
    //! two bytes Mercury describes its string object; decoding ignores them.
    //!
    //! **The trailer.** If a checksum method is set, a message ends with the number of bytes before
    //! the trailer (8 bytes) and their checksum (2, 4 or 8 bytes, see
    //! [`checksum`](super::checksum)). Decoding computes the checksum of the bytes that it has
    //! consumed. This detects damage, and also a parameter that was encoded but not decoded, or
    //! decoded but not encoded.
    //!
    //! For example `{ int32_t fd = -2; hg_string_t path = "ab"; }` with `crc32c`:
    //!
    //! ```text
    //! fe ff ff ff | 03 00 00 00 00 00 00 00 | 61 62 00 00 00 | 11 00 00 00 00 00 00 00 | 4 bytes
    //! fd          | size                    | path           | 17 bytes before         | crc32c
    //! ```
    //!
    //! # Untrusted bytes
    //!
    //! Bytes from another rank are not trusted. Decoding checks every size and count against the
    //! number of bytes left before it allocates memory, and limits nesting to [`MAX_DEPTH`].
    //! Missing bytes and bytes left over are a [`Fault`].

    #[doc(inline)]
    pub use portolan_rpc::proc::{Fault, HgString, MAX_DEPTH, from_slice, to_vec};
}
