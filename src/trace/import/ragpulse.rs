//! RAGPulse's format: JSON lines with `timestamp` (a *text* of seconds, not in order), `input_length`,
//! `output_length`, `session_id`, and `hash_ids`, an object of lists: `sys_prompt`, `passages_ids`, `history`,
//! `web_search`, `user_input`, which is the order in the prompt.
//!
//! Source: github.com/flashserve/RAGPulse, README.md. An id is a segment of any length, and how long is in files
//! beside the trace ([`Lengths`]). Without them every segment but the last counts as the mean of all; the request's own
//! `input_length` then says where it ends. Either way the prompt is cut into blocks, equal where it and all before it
//! are made of the same parts of the same segments.

use super::TraceError;
use super::intern::{Chain, Interner};
use super::item::{Item, shown};
use super::lengths::Lengths;
use super::line::Line;
use super::reader::Objects;
use super::rows::{Row, Rows};
use crate::trace::{BlockIds, Prompt, TenantName};

/// Tokens of a prompt at most: four times the longest context that models have. What a line says is all there is of
/// it, so a false number would take memory for blocks that no file of its size can have.
const MOST_TOKENS: u32 = 1 << 22;
/// Blocks of all prompts at most, some 500 MB.
const MOST_BLOCKS: u64 = 1 << 24;

/// What a request is until all are there.
struct Waiting {
    line: usize,
    time: f64,
    tokens: u32,
    max_tokens: u64,
    session: Option<u32>,
    segments: Box<[u32]>,
}

/// Reads it.
pub struct RagPulse {
    block: u32,
    lengths: Lengths,
    waiting: Vec<Waiting>,
    /// Segments of which the side files say nothing.
    unknown: u64,
}

impl RagPulse {
    pub fn new(block: u32, lengths: Lengths) -> RagPulse {
        RagPulse { block, lengths, waiting: Vec::new(), unknown: 0 }
    }

    /// A prompt's whole blocks.
    fn blocks(&mut self, one: &Waiting, usual: u32, ids: &mut Interner) -> Option<Box<[u32]>> {
        let block = u64::from(self.block);
        let whole = u64::from(one.tokens) / block;
        let (mut chain, mut left, mut out) = (Chain::default(), block, Vec::new());
        for &segment in &one.segments {
            let known = self.lengths.get(segment);
            self.unknown += u64::from(known.is_none());
            let length = u64::from(known.unwrap_or(usual));
            let mut at = 0;
            while at < length && (out.len() as u64) < whole {
                let part = left.min(length - at);
                chain = chain.then(segment.into()).then(at << 32 | part);
                (at, left) = (at + part, left - part);
                if left == 0 {
                    left = block;
                    out.push(ids.id(chain)?);
                }
            }
        }
        Some(out.into())
    }
}

impl Objects for RagPulse {
    fn example(&self) -> &'static str {
        "{\"timestamp\": \"27\", \"input_length\": 3861, \"output_length\": 127, \"hash_ids\": {\"sys_prompt\": [8325], \"user_input\": [23648]}, \"session_id\": \"a\"}"
    }

    fn read(&mut self, line: &Line<'_>, rows: &mut Rows) -> Result<(), TraceError> {
        let moment = line.moment("timestamp")?;
        let time = rows.time(line.number, "timestamp", moment)?;
        let tokens = line.whole("input_length")?;
        if tokens > MOST_TOKENS {
            return Err(line.refuse("input_length", &format!("at most {MOST_TOKENS} tokens")));
        }
        let max_tokens = line.whole("output_length")?.into();
        let Some(Item::Object(kinds)) = line.fields.get("hash_ids") else {
            return Err(line.refuse("hash_ids", "an object of lists of ids"));
        };
        let mut segments = Vec::new();
        for (kind, item) in &kinds.0 {
            match item {
                Item::Ids(ids) => segments.extend_from_slice(ids),
                Item::Null => {}
                other => {
                    let problem = format!("`{}` is {other}; it is a list of ids", shown(kind));
                    return Err(line.error(Some("hash_ids"), problem));
                }
            }
        }
        let session = match line.fields.known("session_id") {
            None => None,
            Some(Item::Text(name)) => Some(rows.session(TenantName::Text(name.clone()))),
            Some(item) => match item.integer() {
                Some(n) => Some(rows.session(TenantName::Number(n))),
                None => return Err(line.refuse("session_id", "a text")),
            },
        };
        let segments = segments.into();
        self.waiting.push(Waiting { line: line.number, time, tokens, max_tokens, session, segments });
        Ok(())
    }

    fn finish(&mut self, rows: &mut Rows) -> Result<(), TraceError> {
        let waiting = core::mem::take(&mut self.waiting);
        let tokens: u64 = waiting.iter().map(|one| u64::from(one.tokens)).sum();
        let segments: u64 = waiting.iter().map(|one| one.segments.len() as u64).sum();
        let usual = (tokens / segments.max(1)).clamp(1, u32::MAX.into()) as u32;
        let mut ids = Interner::default();
        let mut blocks_so_far = 0;
        for one in waiting {
            blocks_so_far += u64::from(one.tokens / self.block);
            if blocks_so_far > MOST_BLOCKS {
                let problem = format!(
                    "the prompts up to here have {blocks_so_far} blocks of {} tokens; at most {MOST_BLOCKS} are read: take larger ones (--trace-block)",
                    self.block
                );
                return Err(TraceError { line: one.line, field: Some("input_length".into()), problem });
            }
            let blocks = self.blocks(&one, usual, &mut ids).ok_or_else(|| TraceError {
                line: one.line,
                field: Some("hash_ids".into()),
                problem: "the file has more than 2^32 different blocks".into(),
            })?;
            let prompt =
                Prompt::Blocks(BlockIds { tokens: one.tokens, block: self.block, ids: (*blocks).into() });
            let Waiting { line, time, max_tokens, session, .. } = one;
            rows.push(Row { line, time, prompt, max_tokens, tenant: None, output: None, session })?;
        }
        if self.unknown > 0 {
            let why = if self.lengths.is_empty() { "no side file is given" } else { "no side file has them" };
            rows.notes.push(format!(
                "the lengths of {} of {segments} segments are not known ({why}; --lengths names one): each counts as {usual} tokens, the mean",
                self.unknown
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, ReadOptions, Reader};
    use super::*;

    /// A number that no prompt has is refused before memory is taken for its blocks, in one line and in many.
    #[test]
    fn more_blocks_than_a_file_can_mean_are_refused() {
        let line = |tokens: u64| {
            format!(
                "{{\"timestamp\": \"1\", \"input_length\": {tokens}, \"output_length\": 1, \"hash_ids\": {{\"user_input\": [1]}}, \"session_id\": \"a\"}}\n"
            )
        };
        let read = |text: &str| {
            let format = Some(Format::RagPulse);
            let mut reader =
                Reader::new(ReadOptions { format, trace_block: Some(1), ..ReadOptions::default() });
            reader.push(text.as_bytes())?;
            reader.finish()
        };
        let error = read(&line(4_294_967_295)).expect_err("too long").to_string();
        assert!(error.contains("line 1") && error.contains("at most 4194304 tokens"), "{error}");
        let error = read(&line(1 << 22).repeat(5)).expect_err("too many").to_string();
        assert!(error.contains("line 5") && error.contains("--trace-block"), "{error}");
    }

    const TEXT: &str = r#"{"timestamp": "27", "input_length": 100, "output_length": 5, "hash_ids": {"sys_prompt": [1], "passages_ids": [2, 3], "history": [], "web_search": [], "user_input": [9]}, "session_id": "a"}
{"timestamp": "3", "input_length": 100, "output_length": 5, "hash_ids": {"sys_prompt": [1], "passages_ids": [2, 4], "user_input": [8]}, "session_id": "b"}
"#;

    #[test]
    fn segments_are_cut_into_blocks_where_their_lengths_are_known() {
        let mut lengths = Lengths::default();
        lengths
            .read(b"{\"hash_id\": 1, \"length\": 20}\n{\"hash_id\": 2, \"length\": 20}\n{\"3\": 30}\n")
            .expect("good");
        lengths.read(b"{\"a\": 4, \"b\": 30}\n{\"a\": 8, \"b\": 30}\n{\"a\": 9, \"b\": 30}\n").expect("good");
        let mut reader = Reader::new(ReadOptions { lengths, ..ReadOptions::default() });
        reader.push(TEXT.as_bytes()).expect("a good trace");
        let read = reader.finish().expect("a good trace");
        assert_eq!(read.detected.format, Format::RagPulse);
        assert!(read.notes.len() == 1 && read.notes[0].contains("sorted"), "{:?}", read.notes);
        let [first, second] = &read.log.trace.requests[..] else { panic!("two requests") };
        assert_eq!((first.arrival.seconds(), second.arrival.seconds()), (0.0, 24.0));
        let (a, b) = (first.prompt.items(), second.prompt.items());
        assert_eq!((a.len(), b.len()), (6, 6), "whole blocks of 16 of 100 tokens");
        let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        assert_eq!(shared, 2, "40 tokens are the same: two whole blocks");
    }

    #[test]
    fn without_side_files_it_is_said() {
        let mut reader = Reader::new(ReadOptions::default());
        reader.push(TEXT.as_bytes()).expect("a good trace");
        let read = reader.finish().expect("a good trace");
        assert!(
            read.notes.iter().any(|n| n.contains("8 of 8 segments") && n.contains("25 tokens")),
            "{:?}",
            read.notes
        );
        let mut lengths = Lengths::default();
        assert_eq!(lengths.read(b"{\"a\": 1}\n").expect_err("no id").line, 1);
    }
}
