//! Traces read from files: what a file is ([`detect`](fn@detect)), a [`Reader`] that takes its bytes as they come, and one file
//! a format.
//!
//! Nothing here opens a file. Bytes are [pushed](Reader::push) in chunks of any size; whoever pushes knows how far it
//! is and stops where it likes. What is wrong is a [`TraceError`] with its line, its field, what was found and what
//! would be right.
//!
//! # Memory
//!
//! A reader holds at most [`MEMORY_PER_BYTE`] times the bytes that it was given, and beside that
//! [`MEMORY_PER_LINE_BYTE`] times the line at hand, of which none is longer than [`MAX_LINE`]; and never more than
//! [`MAX_REQUESTS`] requests. The first bound is reached by a CSV of the shortest rows there are (`0,1,1`, for each of
//! which a request is kept); a line of one of the public formats takes two to eight times its bytes. `tests/fuzz_traces.rs`
//! measures both.

use core::fmt;

mod access_log;
mod bailian;
mod columns;
mod csv;
mod detect;
pub(crate) mod intern;
mod item;
mod json_lines;
mod kv_cache_tester;
mod lengths;
mod line;
mod lines;
mod moment;
mod mooncake;
mod ragpulse;
mod reader;
mod rows;

pub use columns::{Column, Columns, Role};
pub use detect::{Detected, Format, detect};
pub use lengths::Lengths;
pub use lines::MAX_LINE;
pub use moment::TimeUnit;
pub use reader::{Imported, Progress, ReadOptions, Reader};
pub use rows::MAX_REQUESTS;

use super::{Token, Trace};

/// Bytes that a reader holds at most for each byte of the file.
pub const MEMORY_PER_BYTE: u64 = 64;

/// Bytes that it holds beside that for each byte of the line at hand: the line, and its values taken apart.
pub const MEMORY_PER_LINE_BYTE: u64 = 40;

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

/// Reads a trace of our own format from a text. `vocabulary` is one more than the highest token id that the model
/// knows.
pub fn read_json_lines(text: &str, vocabulary: Token) -> Result<Trace, TraceError> {
    let options = ReadOptions { format: Some(Format::JsonLines), vocabulary, ..ReadOptions::default() };
    whole(text, options)
}

/// Reads a trace of Mooncake's format, whose ids stand for `block` tokens each, from a text.
pub fn read_mooncake(text: &str, block: u32) -> Result<Trace, TraceError> {
    let options = ReadOptions {
        format: Some(Format::Mooncake),
        trace_block: Some(block),
        keep_failed: true,
        ..ReadOptions::default()
    };
    whole(text, options)
}

fn whole(text: &str, options: ReadOptions) -> Result<Trace, TraceError> {
    let mut reader = Reader::new(options);
    reader.push(text.as_bytes())?;
    Ok(reader.finish()?.log.trace)
}
