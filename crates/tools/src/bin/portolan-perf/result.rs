//! The program's result type.

/// A result whose error is only printed, so that its type does not matter.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
