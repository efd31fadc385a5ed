//! Mooncake's format: JSON lines with `timestamp` (milliseconds), `input_length`, `output_length` and
//! `hash_ids`, one id for each block of the prompt, equal where it and all before it are equal.
//!
//! Source: github.com/kvcache-ai/Mooncake, FAST25-release/traces. Arrivals are counted from the first.
//! Requests out of order are put in order. There are no tokens, so only the modelled backend runs it.

use super::TraceError;
use super::line::Line;
use super::moment::TimeUnit;
use super::reader::Objects;
use super::rows::{Row, Rows};
use crate::trace::{BlockIds, Prompt};

/// Reads it; an id stands for so many tokens.
pub struct Mooncake {
    pub block: u32,
}

impl Objects for Mooncake {
    fn example(&self) -> &'static str {
        "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 50, \"hash_ids\": [0, 1]}"
    }

    fn read(&mut self, line: &Line<'_>, rows: &mut Rows) -> Result<(), TraceError> {
        rows.unit = Some(TimeUnit::Milliseconds);
        let time = line.positive("timestamp", "a number of milliseconds")?;
        let tokens = line.whole("input_length")?;
        let max_tokens = line.whole("output_length")?.into();
        let ids = line.ids("hash_ids", "a list with an id for each block of the prompt")?;
        let (block, blocks) = (self.block, tokens.div_ceil(self.block));
        if ids.len() != blocks as usize {
            let problem = format!(
                "found {} ids; {tokens} tokens are {blocks} blocks of {block} (--trace-block)",
                ids.len()
            );
            return Err(line.error(Some("hash_ids"), problem));
        }
        let prompt = Prompt::Blocks(BlockIds { tokens, block, ids: ids.into() });
        rows.push(Row {
            line: line.number,
            time,
            prompt,
            max_tokens,
            tenant: None,
            output: None,
            session: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_mooncake as read;

    #[test]
    fn arrivals_count_from_the_first_and_ids_are_kept() {
        let text = "{\"timestamp\": 5000, \"input_length\": 9, \"output_length\": 2, \"hash_ids\": [0, 7, 8], \"x\": 1}\n\n\
                    {\"timestamp\": 4000.5, \"input_length\": 4, \"output_length\": 0, \"hash_ids\": [0]}\n";
        let trace = read(text, 4).expect("a good trace");
        let seen: Vec<_> =
            trace.requests.iter().map(|r| (r.arrival.0, r.prompt.len(), r.max_tokens)).collect();
        assert_eq!(seen, [(0, 4, 0), (999_500_000_000, 9, 2)]);
        assert_eq!((trace.requests[1].prompt.items(), trace.tokens_per_item()), (&[0, 7, 8][..], 4));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_field() {
        let good = "{\"timestamp\": 1, \"input_length\": 4, \"output_length\": 1, \"hash_ids\": [1]}";
        let cases = [
            ("[]", None, "not a request"),
            ("{", None, "column"),
            ("{\"input_length\": 4, \"output_length\": 1, \"hash_ids\": [1]}", Some("timestamp"), "missing"),
            (&good.replace("\"timestamp\": 1", "\"timestamp\": -1"), Some("timestamp"), "-1"),
            (&good.replace("\"timestamp\": 1", "\"timestamp\": 1e30"), None, "too long"),
            (&good.replace("\"input_length\": 4", "\"input_length\": 5"), Some("hash_ids"), "2 blocks of 4"),
            (&good.replace("\"input_length\": 4", "\"input_length\": 0.5"), Some("input_length"), "0.5"),
            (&good.replace("\"output_length\": 1", "\"output_length\": -1"), Some("output_length"), "-1"),
            (&good.replace("[1]", "[4294967296]"), Some("hash_ids"), "4294967296"),
            (&good.replace(", \"hash_ids\": [1]", ""), Some("hash_ids"), "missing"),
            (&good.replace("\"hash_ids\"", "\"timestamp\""), None, "`timestamp` is there twice"),
        ];
        for (line, field, part) in cases {
            let error = read(&format!("{good}\n{line}\n"), 4).expect_err(line);
            assert_eq!((error.line, error.field.as_deref()), (2, field), "{line}: {error}");
            assert!(error.problem.contains(part), "{line}: {error}");
        }
    }
}
