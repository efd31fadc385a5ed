//! Conversations of kv-cache-tester: one JSON object each, with `block_size` (64), `hash_id_scope` and `requests`, a
//! list with `t` (seconds from the conversation's start), `in`, `out` and `hash_ids`. A request of the type
//! `subagent` has `requests` of its own.
//!
//! Source: github.com/callanjfox/kv-cache-tester, docs/trace_replay_tester.md and traces/. Ids compare only inside one
//! conversation unless the scope is `global`; sub-agents share their conversation's ids and its clock. Conversations
//! in one file (a line each) all begin at 0: what is between them is not told.

use std::collections::BTreeMap;

use super::TraceError;
use super::bailian::ids_of;
use super::item::{Fields, Item};
use super::line::Line;
use super::reader::Objects;
use super::rows::{Row, Rows};
use crate::trace::{BlockIds, Prompt, TenantName};

/// Reads it.
pub struct KvCacheTester {
    /// What ids stand for, in place of what the file says.
    block: Option<u32>,
    /// Conversations so far.
    conversations: u32,
    /// The next id to give.
    next: u32,
    /// Ids of the scope `global`.
    global: BTreeMap<u32, u32>,
}

impl KvCacheTester {
    pub fn new(block: Option<u32>) -> KvCacheTester {
        KvCacheTester { block, conversations: 0, next: 0, global: BTreeMap::new() }
    }
}

/// What the requests of one conversation have in common.
struct Conversation<'a> {
    line: usize,
    block: u32,
    session: u32,
    ids: &'a mut BTreeMap<u32, u32>,
    next: &'a mut u32,
}

impl Conversation<'_> {
    /// Reads a request and those of its sub-agents.
    fn request(&mut self, fields: &Fields, rows: &mut Rows) -> Result<(), TraceError> {
        let line = Line { number: self.line, fields };
        if let Some(nested) = fields.known("requests") {
            return self.requests(&line, nested, rows);
        }
        let time = line.positive("t", "a number of seconds from the conversation's start")?;
        let tokens = line.whole("in")?;
        let max_tokens = line.whole("out")?.into();
        let ids = match fields.known("hash_ids") {
            None => &[][..],
            Some(item) => ids_of(item)
                .ok_or_else(|| line.refuse("hash_ids", "a list with an id for each block of the prompt"))?,
        };
        if ids.len() > tokens.div_ceil(self.block) as usize {
            let problem = format!(
                "found {} ids; {tokens} tokens are {} blocks of {}",
                ids.len(),
                tokens.div_ceil(self.block),
                self.block
            );
            return Err(line.error(Some("hash_ids"), problem));
        }
        let own = ids.iter().map(|&id| {
            *self.ids.entry(id).or_insert_with(|| {
                *self.next = self.next.wrapping_add(1);
                self.next.wrapping_sub(1)
            })
        });
        let prompt = Prompt::Blocks(BlockIds { tokens, block: self.block, ids: own.collect() });
        let session = Some(self.session);
        rows.push(Row { line: self.line, time, prompt, max_tokens, tenant: None, output: None, session })
    }

    fn requests(&mut self, line: &Line<'_>, item: &Item, rows: &mut Rows) -> Result<(), TraceError> {
        match item {
            Item::List(items) => items.iter().try_for_each(|item| match item {
                Item::Object(fields) => self.request(fields, rows),
                other => {
                    Err(line.error(Some("requests"), format!("found {}; it is an object", other.kind())))
                }
            }),
            Item::Ids(ids) if ids.is_empty() => Ok(()),
            _ => Err(line.refuse("requests", "a list of objects")),
        }
    }
}

impl Objects for KvCacheTester {
    fn example(&self) -> &'static str {
        "{\"id\": \"a\", \"block_size\": 64, \"hash_id_scope\": \"local\", \"requests\": [{\"t\": 0.0, \"in\": 130, \"out\": 8, \"hash_ids\": [1, 2]}]}"
    }

    fn read(&mut self, line: &Line<'_>, rows: &mut Rows) -> Result<(), TraceError> {
        let block = match (self.block, line.fields.known("block_size")) {
            (Some(block), _) => block,
            (None, Some(_)) => line.whole("block_size")?,
            (None, None) => 64,
        };
        if !(1..=65_536).contains(&block) {
            return Err(line.refuse("block_size", "a number of tokens from 1 to 65536"));
        }
        let Some(requests) = line.fields.get("requests") else {
            return Err(line.refuse("requests", "a list of objects"));
        };
        let global = match line.fields.known("hash_id_scope") {
            None => false,
            Some(item) => match item.text() {
                Some("local") => false,
                Some("global") => true,
                _ => return Err(line.refuse("hash_id_scope", "\"local\" or \"global\"")),
            },
        };
        let session = rows.session(TenantName::Number(self.conversations.into()));
        self.conversations += 1;
        if self.conversations == 2 {
            rows.notes.push("several conversations, each from its own zero: they all begin at once".into());
        }
        let mut own = BTreeMap::new();
        let ids = if global { &mut self.global } else { &mut own };
        let mut conversation = Conversation { line: line.number, block, session, ids, next: &mut self.next };
        conversation.requests(line, requests, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Imported, ReadOptions, Reader};

    fn read(text: &str) -> Imported {
        let mut reader = Reader::new(ReadOptions::default());
        reader.push(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        reader.finish().unwrap_or_else(|e| panic!("{e}"))
    }

    const ONE: &str = r#"{"id": "a", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "tool_tokens": 9,
      "requests": [
        {"t": 0.0, "type": "s", "in": 130, "out": 8, "hash_ids": [1, 2], "stop": ""},
        {"t": 9.5, "type": "subagent", "agent_id": "x", "requests": [{"t": 10.0, "type": "n", "in": 64, "out": 2, "hash_ids": [1]}]},
        {"t": 5.0, "type": "s", "in": 192, "out": 0, "hash_ids": [1, 2, 3]}
      ]}"#;

    #[test]
    fn a_conversation_over_several_lines_is_read_with_its_sub_agents() {
        let one = read(ONE);
        assert_eq!(one.detected.format, Format::KvCacheTester);
        let requests = &one.log.trace.requests;
        let seen: Vec<_> =
            requests.iter().map(|r| (r.arrival.seconds(), r.prompt.len(), r.max_tokens)).collect();
        assert_eq!(seen, [(0.0, 130, 8), (10.0, 64, 2)]);
        assert!(one.notes.iter().any(|n| n.contains("1 rows with no output")), "{:?}", one.notes);
        assert_eq!(requests[0].prompt.items()[0], requests[1].prompt.items()[0], "one scope");
    }

    #[test]
    fn ids_of_two_conversations_differ_unless_they_are_global() {
        let line = ONE.replace('\n', " ");
        let two = read(&format!("{line}\n{line}\n"));
        let firsts: Vec<u32> = two.log.trace.requests.iter().map(|r| r.prompt.items()[0]).collect();
        assert!(firsts[0] != firsts[1] && firsts.len() == 4, "{firsts:?}");
        assert_eq!(two.log.sessions.iter().max(), Some(&1));
        let global = line.replace("local", "global");
        let two = read(&format!("{global}\n{global}\n"));
        assert!(two.log.trace.requests.iter().all(|r| r.prompt.items()[0] == 0));
    }
}
