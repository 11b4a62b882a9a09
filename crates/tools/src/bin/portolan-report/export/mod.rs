//! Exports for other programs.
//!
//! | module | contents |
//! |---|---|
//! | `csv` | tables |
//! | `perfetto` | all events as JSON |
//! | `ordered` | the spans of a thread in the order of their starts |
//! | `otf2` | all events as an OTF2 archive |

pub mod csv;
mod ordered;
pub mod otf2;
pub mod perfetto;
