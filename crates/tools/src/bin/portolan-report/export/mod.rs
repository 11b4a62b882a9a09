//! Exports for other programs.

pub mod csv;
mod ordered;
pub mod otf2;
pub mod perfetto;
