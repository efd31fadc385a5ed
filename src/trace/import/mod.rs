//! Traces read from files, one file a format.

use core::fmt;

mod json_lines;
mod mooncake;

pub use json_lines::read as read_json_lines;
pub use mooncake::read as read_mooncake;

/// What is wrong with a trace, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, counted from 1.
    pub line: usize,
    /// The field, where it is one field's fault.
    pub field: Option<String>,
    /// What was found and what would be right.
    pub problem: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(field) = &self.field {
            write!(f, ", field `{field}`")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for TraceError {}
