//! How long RAGPulse's segments are: its side files, JSON lines of an id and a number of tokens each.
//!
//! Source: github.com/flashserve/RAGPulse, data/1_sys_prompt.jsonl to 5_web_search.jsonl: objects of two values, the
//! id and its tokens (as example/single_online_instance/preprocess_data.py reads them).

use std::collections::BTreeMap;

use super::TraceError;
use super::item::{Item, shown};
use super::line::object;
use super::lines::Lines;

/// Tokens by id.
#[derive(Clone, Debug, Default)]
pub struct Lengths(BTreeMap<u32, u32>);

impl Lengths {
    /// Adds what a side file says.
    pub fn read(&mut self, text: &[u8]) -> Result<(), TraceError> {
        let mut lines = Lines::default();
        let mut take = |found: super::lines::Found<'_>| {
            let (number, text) = found?;
            if text.is_empty() {
                return Ok(());
            }
            let fields = object(number, text, "{\"hash_id\": 8325, \"length\": 512}")?;
            let values: Vec<Option<u32>> =
                fields.0.iter().map(|(_, item)| item.whole().and_then(|n| u32::try_from(n).ok())).collect();
            match (&values[..], &fields.0[..]) {
                ([Some(id), Some(tokens)], _) => self.0.insert(*id, *tokens),
                // The other way to write it: the id is the key.
                ([Some(tokens)], [(key, _)]) if key.parse::<u32>().is_ok() => {
                    self.0.insert(key.parse().expect("it was just read"), *tokens)
                }
                _ => {
                    let problem = format!(
                        "found {}; it is an object with an id and its number of tokens",
                        shown(&Item::Object(fields).to_string())
                    );
                    return Err(TraceError { line: number, field: None, problem });
                }
            };
            Ok(())
        };
        lines.push(text, &mut take)?;
        lines.finish(&mut take)
    }

    /// Tokens of an id.
    pub fn get(&self, id: u32) -> Option<u32> {
        self.0.get(&id).copied()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
