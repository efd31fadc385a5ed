//! Our own format: one JSON object a line.
//!
//! `arrival` (seconds from the run's start), `tokens` (a list of token ids) or `prompt` (text,
//! whose UTF-8 bytes are its tokens), `max_tokens`, and optionally `tenant` (a string or an
//! integer) and `output` (token ids: what a modelled replica answers). Blank lines are passed over.
//! Requests out of order are put in order of arrival; times keep their zero.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::TraceError;
use crate::trace::{RequestSpec, TenantName, Token, Trace};
use crate::units::{MAX_SECONDS, Time};

const FIELDS: [&str; 6] = ["arrival", "tokens", "prompt", "max_tokens", "tenant", "output"];

/// Reads a trace. `vocabulary` is one more than the highest token id that the model knows.
pub fn read(text: &str, vocabulary: Token) -> Result<Trace, TraceError> {
    let mut trace = Trace::default();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() {
            continue;
        }
        let mut reader = Line { number: at + 1, vocabulary, tenants: &mut trace.tenants };
        let request = reader.request(line)?;
        trace.requests.push(request);
    }
    Ok(trace.sorted())
}

struct Line<'a> {
    number: usize,
    vocabulary: Token,
    tenants: &'a mut Vec<TenantName>,
}

impl Line<'_> {
    fn error(&self, field: Option<&str>, problem: String) -> TraceError {
        TraceError { line: self.number, field: field.map(str::to_owned), problem }
    }

    fn request(&mut self, line: &str) -> Result<RequestSpec, TraceError> {
        let value: Value = serde_json::from_str(line)
            .map_err(|e| self.error(None, format!("not a JSON object: {}", without_place(&e))))?;
        let Value::Object(fields) = value else {
            return Err(self.error(
                None,
                format!("found {}; a request is a JSON object such as {{\"arrival\": 0.5, \"prompt\": \"Hi\", \"max_tokens\": 16}}", kind(&value)),
            ));
        };
        for name in fields.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            // Fields of one's own are welcome; a slip of the pen in ours is not.
            if let Some(near) = FIELDS.iter().find(|f| strsim::damerau_levenshtein(f, name) <= 2) {
                return Err(self.error(Some(name), format!("no such field; did you mean `{near}`?")));
            }
        }
        Ok(RequestSpec {
            arrival: self.arrival(&fields)?,
            prompt: self.prompt(&fields)?.into(),
            max_tokens: self.max_tokens(&fields)?,
            tenant: self.tenant(&fields)?,
            output: match fields.get("output") {
                None | Some(Value::Null) => None,
                Some(value) => Some(self.tokens("output", value)?),
            },
        })
    }

    fn arrival(&self, fields: &Map<String, Value>) -> Result<Time, TraceError> {
        let wanted = "a number of seconds from the start, such as 0.25";
        let value = self.required(fields, "arrival", wanted)?;
        let Some(seconds) = value.as_f64() else {
            return Err(self.error(Some("arrival"), format!("found {}; it is {wanted}", kind(value))));
        };
        Time::from_seconds(seconds).ok_or_else(|| {
            self.error(Some("arrival"), format!("{seconds} is not from 0 to {MAX_SECONDS} seconds"))
        })
    }

    fn prompt(&self, fields: &Map<String, Value>) -> Result<Arc<[Token]>, TraceError> {
        match (fields.get("tokens"), fields.get("prompt")) {
            (Some(tokens), None) => self.tokens("tokens", tokens),
            (None, Some(Value::String(text))) => Ok(text.bytes().map(Token::from).collect()),
            (None, Some(other)) => {
                Err(self.error(Some("prompt"), format!("found {}; it is a text", kind(other))))
            }
            (Some(_), Some(_)) => Err(self.error(
                Some("prompt"),
                "both `tokens` and `prompt` are given; a request has one of them".into(),
            )),
            (None, None) => Err(self.error(
                Some("tokens"),
                "missing; a request has `tokens` (a list of ids) or `prompt` (a text)".into(),
            )),
        }
    }

    fn max_tokens(&self, fields: &Map<String, Value>) -> Result<u64, TraceError> {
        let wanted = "a whole number of tokens, such as 16";
        let value = self.required(fields, "max_tokens", wanted)?;
        match (value.as_u64(), value.as_i64(), value.as_f64()) {
            (Some(n), ..) => Ok(n),
            // Below 1 it is a request that the engine rejects, with its reason.
            (None, Some(_), _) => Ok(0),
            (None, None, Some(x)) if x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0 => {
                Ok(x.max(0.0) as u64)
            }
            _ => Err(self.error(Some("max_tokens"), format!("found {value}; it is {wanted}"))),
        }
    }

    fn tenant(&mut self, fields: &Map<String, Value>) -> Result<Option<u32>, TraceError> {
        let name = match fields.get("tenant") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => TenantName::Text(text.clone()),
            Some(value) => match value.as_i64() {
                Some(n) => TenantName::Number(n),
                None => {
                    return Err(self.error(
                        Some("tenant"),
                        format!("found {}; it is a string or an integer", kind(value)),
                    ));
                }
            },
        };
        let known = self.tenants.iter().position(|t| *t == name);
        Ok(Some(known.unwrap_or_else(|| {
            self.tenants.push(name);
            self.tenants.len() - 1
        }) as u32))
    }

    fn tokens(&self, field: &str, value: &Value) -> Result<Arc<[Token]>, TraceError> {
        let Value::Array(items) = value else {
            return Err(self.error(Some(field), format!("found {}; it is a list of token ids", kind(value))));
        };
        let token = |(at, item): (usize, &Value)| {
            item.as_u64().filter(|&t| t < u64::from(self.vocabulary)).map(|t| t as Token).ok_or_else(|| {
                let problem = format!(
                    "item {at} is {item}; a token id is a whole number from 0 to {}",
                    self.vocabulary - 1
                );
                self.error(Some(field), problem)
            })
        };
        items.iter().enumerate().map(token).collect()
    }

    fn required<'v>(
        &self,
        fields: &'v Map<String, Value>,
        name: &str,
        wanted: &str,
    ) -> Result<&'v Value, TraceError> {
        fields.get(name).ok_or_else(|| self.error(Some(name), format!("missing; it is {wanted}")))
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A JSON error without its own "at line 1": the trace's line is named by the caller.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((what, _)) => format!("{what} (column {})", error.column()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds_of_prompts_and_keeps_the_zero() {
        let text = "\n{\"arrival\": 2, \"tokens\": [1, 2, 3], \"max_tokens\": 4, \"tenant\": \"b\"}\n\
                    {\"arrival\": 0.5, \"prompt\": \"hé\", \"max_tokens\": 1, \"tenant\": 7, \"note\": {}}\r\n";
        let trace = read(text, 260).expect("a good trace");
        assert_eq!(trace.tenants, [TenantName::Text("b".into()), TenantName::Number(7)]);
        let [first, second] = &trace.requests[..] else { panic!("two requests") };
        assert_eq!(
            (first.arrival.seconds(), first.tenant, first.prompt.items()),
            (0.5, Some(1), &[104, 195, 169][..])
        );
        assert_eq!(
            (second.arrival.seconds(), second.max_tokens, second.prompt.items()),
            (2.0, 4, &[1, 2, 3][..])
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_field() {
        let cases = [
            ("{", None, "not a JSON object"),
            ("[1]", None, "found a list"),
            ("{\"prompt\": \"a\", \"max_tokens\": 1}", Some("arrival"), "missing"),
            ("{\"arrival\": \"0\", \"prompt\": \"a\", \"max_tokens\": 1}", Some("arrival"), "found a text"),
            ("{\"arrival\": -1, \"prompt\": \"a\", \"max_tokens\": 1}", Some("arrival"), "-1"),
            ("{\"arrival\": 1e308, \"prompt\": \"a\", \"max_tokens\": 1}", Some("arrival"), "seconds"),
            ("{\"arrival\": 0, \"max_tokens\": 1}", Some("tokens"), "missing"),
            ("{\"arrival\": 0, \"prompt\": 3, \"max_tokens\": 1}", Some("prompt"), "found a number"),
            ("{\"arrival\": 0, \"prompt\": \"\", \"tokens\": [], \"max_tokens\": 1}", Some("prompt"), "both"),
            ("{\"arrival\": 0, \"tokens\": [0, 260], \"max_tokens\": 1}", Some("tokens"), "item 1 is 260"),
            ("{\"arrival\": 0, \"tokens\": [0.5], \"max_tokens\": 1}", Some("tokens"), "item 0 is 0.5"),
            ("{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1.5}", Some("max_tokens"), "1.5"),
            ("{\"arrival\": 0, \"prompt\": \"a\", \"max_token\": 1}", Some("max_token"), "`max_tokens`"),
            (
                "{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1, \"tenant\": []}",
                Some("tenant"),
                "found a list",
            ),
        ];
        for (line, field, part) in cases {
            let text = format!("{{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1}}\n\n{line}\n");
            let error = read(&text, 260).expect_err(line);
            assert_eq!((error.line, error.field.as_deref()), (3, field), "{line}");
            assert!(error.problem.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn a_request_that_asks_for_nothing_is_the_engines_to_reject() {
        let read_budget = |budget: &str| {
            let line = format!("{{\"arrival\": 0, \"prompt\": \"\", \"max_tokens\": {budget}}}");
            read(&line, 260).expect(budget).requests[0].max_tokens
        };
        assert_eq!((read_budget("0"), read_budget("-5"), read_budget("16.0")), (0, 0, 16));
    }
}
