//! Bailian's format: JSON lines with `chat_id`, `parent_chat_id` (−1: none), `timestamp` in **seconds**,
//! `input_length`, `output_length` and `hash_ids`, an id for each 16 tokens of the prompt.
//!
//! Source: github.com/alibaba-edu/qwen-bailian-usagetraces-anon, README.md. An id is of what a block itself holds,
//! not of what is before it, which our prefix index adds. The last block may be padded, so that its id changes
//! between turns: it is partial, and partial blocks are never shared.

use std::collections::BTreeMap;

use super::TraceError;
use super::item::Item;
use super::line::Line;
use super::reader::Objects;
use super::rows::{Row, Rows};
use crate::trace::{BlockIds, Prompt, TenantName};

/// Reads it.
pub struct Bailian {
    block: u32,
    /// By chat: the session that it is of.
    sessions: BTreeMap<i64, u32>,
}

impl Bailian {
    pub fn new(block: u32) -> Bailian {
        Bailian { block, sessions: BTreeMap::new() }
    }

    /// The session of a chat: its parent's, or one of its own. A parent that is not in the file still joins those
    /// that name it.
    fn session(&mut self, line: &Line<'_>, rows: &mut Rows) -> Result<Option<u32>, TraceError> {
        let id = |field: &str| match line.fields.known(field) {
            None => Ok(None),
            Some(item) => match item.integer() {
                Some(id) => Ok(Some(id)),
                None => Err(line.refuse(field, "a whole number")),
            },
        };
        let (chat, parent) = (id("chat_id")?, id("parent_chat_id")?.filter(|&parent| parent >= 0));
        let Some(root) = parent.or(chat) else { return Ok(None) };
        let session = match self.sessions.get(&root) {
            Some(&session) => session,
            None => rows.session(TenantName::Number(root)),
        };
        self.sessions.insert(root, session);
        if let Some(chat) = chat {
            self.sessions.insert(chat, session);
        }
        Ok(Some(session))
    }
}

impl Objects for Bailian {
    fn example(&self) -> &'static str {
        "{\"chat_id\": 159, \"parent_chat_id\": 55, \"timestamp\": 61.114, \"input_length\": 21, \"output_length\": 132, \"hash_ids\": [1089, 1090]}"
    }

    fn read(&mut self, line: &Line<'_>, rows: &mut Rows) -> Result<(), TraceError> {
        let moment = line.moment("timestamp")?;
        let time = rows.time(line.number, "timestamp", moment)?;
        let tokens = line.whole("input_length")?;
        let max_tokens = line.whole("output_length")?.into();
        let ids = line.ids("hash_ids", "a list with an id for each block of the prompt")?;
        let blocks = tokens.div_ceil(self.block) as usize;
        if ids.len() != blocks && ids.len() != (tokens / self.block) as usize {
            let problem = format!(
                "found {} ids; {tokens} tokens are {blocks} blocks of {} (--trace-block)",
                ids.len(),
                self.block
            );
            return Err(line.error(Some("hash_ids"), problem));
        }
        let session = self.session(line, rows)?;
        let prompt = Prompt::Blocks(BlockIds { tokens, block: self.block, ids: ids.into() });
        rows.push(Row { line: line.number, time, prompt, max_tokens, tenant: None, output: None, session })
    }
}

/// Whether a value is a list of ids and nothing else.
pub(super) fn ids_of(item: &Item) -> Option<&[u32]> {
    if let Item::Ids(ids) = item { Some(ids) } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, ReadOptions, Reader};

    #[test]
    fn turns_are_of_one_session_and_seconds_are_seconds() {
        let line = |chat: i64, parent: i64, time: f64, length: u32, ids: &str| {
            format!(
                "{{\"chat_id\": {chat}, \"parent_chat_id\": {parent}, \"timestamp\": {time}, \"input_length\": {length}, \"output_length\": 5, \"type\": \"text\", \"turn\": 1, \"hash_ids\": [{ids}]}}\n"
            )
        };
        let text = line(1, -1, 10.0, 20, "7, 8")
            + &line(2, -1, 10.5, 16, "9")
            + &line(3, 1, 61.25, 40, "7, 18, 19")
            + &line(5, 4, 62.0, 16, "1")
            + &line(6, 4, 63.0, 16, "1");
        let mut reader = Reader::new(ReadOptions::default());
        reader.push(text.as_bytes()).expect("a good trace");
        let read = reader.finish().expect("a good trace");
        assert_eq!(read.detected.format, Format::Bailian);
        let arrivals: Vec<f64> = read.log.trace.requests.iter().map(|r| r.arrival.seconds()).collect();
        assert_eq!(arrivals, [0.0, 0.5, 51.25, 52.0, 53.0]);
        let s = &read.log.sessions;
        assert!(s[0] == s[2] && s[0] != s[1] && s[3] == s[4] && s[3] != s[0], "{s:?}");
        assert_eq!(read.log.trace.tokens_per_item(), 16);
    }
}
