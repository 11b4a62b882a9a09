//! What a run leaves behind: the files of `PORTOLAN_TRACE`.
//!
//! | module | owns |
//! |---|---|
//! | `format` | the file: header and blocks, from bytes and to bytes |
//! | `event` | the events in a block |
//! | `kinds` | the numbers of calls, interfaces, ways, causes |
//! | `metadata` | what a file says of its rank: JSON |
//! | `read` | a reader that goes past damage |
//! | `alignment` | a rank's clock in that of rank 0 |

pub mod alignment;
pub mod event;
pub mod format;
pub mod kinds;
pub mod metadata;
pub mod read;
#[cfg(test)]
mod tests;
