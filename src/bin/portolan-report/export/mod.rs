//! The same for other programs.
//!
//! | module | owns |
//! |---|---|
//! | `csv` | tables |
//! | `perfetto` | all events as JSON |
//! | `ordered` | the spans of a thread by their begins |
//! | `otf2` | all events as an OTF2 archive |

pub mod csv;
mod ordered;
pub mod otf2;
pub mod perfetto;
