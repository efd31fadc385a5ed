//! Mooncake's format: JSON lines with `timestamp` (milliseconds), `input_length`, `output_length` and
//! `hash_ids`, one id for each block of the prompt, equal where it and all before it are equal.
//!
//! Source: github.com/kvcache-ai/Mooncake, FAST25-release/traces. Arrivals are counted from the first.
//! Requests out of order are put in order. There are no tokens, so only the modelled backend runs it.

use serde::Deserialize;
use serde_json::Value;

use super::TraceError;
use crate::trace::{BlockIds, Prompt, RequestSpec, Trace};
use crate::units::Time;

#[derive(Deserialize)]
struct Row {
    timestamp: Option<Value>,
    input_length: Option<Value>,
    output_length: Option<Value>,
    hash_ids: Option<Vec<Value>>,
}

/// Reads a trace whose ids stand for `block` tokens each.
pub fn read(text: &str, block: u32) -> Result<Trace, TraceError> {
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start_matches('\u{feff}').trim();
        if !line.is_empty() {
            rows.push((at + 1, Line { number: at + 1 }.request(line, block)?));
        }
    }
    let first = rows.iter().map(|(_, (timestamp, _))| *timestamp).fold(f64::INFINITY, f64::min);
    let mut trace = Trace::default();
    for (line, (timestamp, request)) in rows {
        let arrival = Time::from_seconds((timestamp - first) / 1000.0).ok_or_else(|| TraceError {
            line,
            field: Some("timestamp".into()),
            problem: format!("{timestamp} ms is too long after the first arrival, {first} ms"),
        })?;
        trace.requests.push(RequestSpec { arrival, ..request });
    }
    Ok(trace.sorted())
}

struct Line {
    number: usize,
}

impl Line {
    fn error(&self, field: Option<&str>, problem: String) -> TraceError {
        TraceError { line: self.number, field: field.map(str::to_owned), problem }
    }

    /// The time in milliseconds and the request, its arrival still to be set.
    fn request(&self, line: &str, block: u32) -> Result<(f64, RequestSpec), TraceError> {
        let row: Row = serde_json::from_str(line).map_err(|e| {
            let what = e.to_string();
            let what = what.split(" at line ").next().unwrap_or_default().to_owned();
            self.error(None, format!("not a request: {what} (column {})", e.column()))
        })?;
        let timestamp = row.timestamp.as_ref().and_then(Value::as_f64).filter(|t| *t >= 0.0);
        let timestamp = timestamp.ok_or_else(|| {
            self.error(Some("timestamp"), found(row.timestamp.as_ref(), "a number of milliseconds"))
        })?;
        let tokens = self.whole("input_length", row.input_length.as_ref())?;
        let max_tokens = u64::from(self.whole("output_length", row.output_length.as_ref())?);
        let ids = row.hash_ids.ok_or_else(|| {
            self.error(Some("hash_ids"), found(None, "a list with an id for each block of the prompt"))
        })?;
        if ids.len() != tokens.div_ceil(block) as usize {
            let problem = format!(
                "found {} ids; {tokens} tokens are {} blocks of {block} (--trace-block)",
                ids.len(),
                tokens.div_ceil(block)
            );
            return Err(self.error(Some("hash_ids"), problem));
        }
        let ids = ids.iter().map(|id| self.whole("hash_ids", Some(id))).collect::<Result<_, TraceError>>()?;
        let prompt = Prompt::Blocks(BlockIds { tokens, block, ids });
        Ok((timestamp, RequestSpec { arrival: Time::ZERO, prompt, max_tokens, tenant: None, output: None }))
    }

    fn whole(&self, field: &str, value: Option<&Value>) -> Result<u32, TraceError> {
        let number = value.and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
        number.ok_or_else(|| self.error(Some(field), found(value, "a whole number below 2^32")))
    }
}

fn found(value: Option<&Value>, wanted: &str) -> String {
    match value {
        Some(value) => format!("found {value}; it is {wanted}"),
        None => format!("missing; it is {wanted}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (&good.replace("\"timestamp\": 1", "\"timestamp\": 1e30"), Some("timestamp"), "too long"),
            (&good.replace("\"input_length\": 4", "\"input_length\": 5"), Some("hash_ids"), "2 blocks of 4"),
            (&good.replace("\"input_length\": 4", "\"input_length\": 0.5"), Some("input_length"), "0.5"),
            (&good.replace("\"output_length\": 1", "\"output_length\": -1"), Some("output_length"), "-1"),
            (&good.replace("[1]", "[4294967296]"), Some("hash_ids"), "4294967296"),
            (&good.replace(", \"hash_ids\": [1]", ""), Some("hash_ids"), "missing"),
        ];
        for (line, field, part) in cases {
            let error = read(&format!("{good}\n{line}\n"), 4).expect_err(line);
            assert_eq!((error.line, error.field.as_deref()), (2, field), "{line}: {error}");
            assert!(error.problem.contains(part), "{line}: {error}");
        }
    }
}
