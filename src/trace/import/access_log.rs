//! An OpenAI-style access log: JSON lines with `created` (seconds since 1970, or a date), `messages` or `prompt`, and
//! `usage`. What a log wraps them in (`request`, `response`, `body`) is looked into.
//!
//! A prompt's text is cut into blocks on the spot, equal where it and all before it are equal, and is not kept: its
//! bytes are its tokens, unless so many of them are to count as one. A message is its role, a line's end, its text, a
//! line's end. Outputs are `usage.completion_tokens`, or else `max_tokens`. A call with an `error`, or a `status` of
//! 400 or more, failed.

use super::TraceError;
use super::intern::Interner;
use super::item::{Fields, Item};
use super::line::{Line, found};
use super::moment::{Moment, TimeUnit};
use super::reader::Objects;
use super::rows::{Row, Rows};
use crate::trace::TenantName;

/// Where a log may keep its fields, beside the top.
const WRAPPERS: [&str; 3] = ["request", "response", "body"];

/// Names of a call's time.
const TIMES: [&str; 5] = ["created", "created_at", "timestamp", "time", "start_time"];

/// Reads it.
pub struct AccessLog {
    block: u32,
    bytes_per_token: u32,
    unit: Option<TimeUnit>,
    ids: Interner,
    /// Bytes of prompts, and tokens that `usage` says they were, where it does.
    counted: (u64, u64),
}

impl AccessLog {
    pub fn new(block: u32, bytes_per_token: u32, unit: Option<TimeUnit>) -> AccessLog {
        AccessLog { block, bytes_per_token, unit, ids: Interner::default(), counted: (0, 0) }
    }
}

/// A field, wherever the log keeps it.
fn field<'f>(fields: &'f Fields, name: &str) -> Option<&'f Item> {
    fields.known(name).or_else(|| {
        WRAPPERS.iter().find_map(|wrapper| match fields.get(wrapper) {
            Some(Item::Object(inner)) => inner.known(name).or_else(|| match inner.get("body") {
                Some(Item::Object(body)) => body.known(name),
                _ => None,
            }),
            _ => None,
        })
    })
}

/// Adds a content's text: a text, or a list of parts with texts. What is not text is passed over.
fn content(item: &Item, text: &mut String) {
    match item {
        Item::Text(part) => text.push_str(part),
        Item::List(parts) => parts.iter().for_each(|part| match part {
            Item::Text(part) => text.push_str(part),
            Item::Object(fields) => {
                if let Some(Item::Text(part)) = fields.get("text") {
                    text.push_str(part);
                }
            }
            _ => {}
        }),
        _ => {}
    }
}

fn prompt_text(line: &Line<'_>) -> Result<String, TraceError> {
    let mut text = String::new();
    match (field(line.fields, "messages"), field(line.fields, "prompt")) {
        (Some(Item::List(messages)), _) => {
            for (at, message) in messages.iter().enumerate() {
                let Item::Object(message) = message else {
                    let problem =
                        format!("item {at} is {message}; a message is an object with role and content");
                    return Err(line.error(Some("messages"), problem));
                };
                if let Some(Item::Text(role)) = message.get("role") {
                    text.push_str(role);
                }
                text.push('\n');
                if let Some(item) = message.get("content") {
                    content(item, &mut text);
                }
                // What an assistant called is part of what it said.
                if let Some(Item::List(calls)) = message.known("tool_calls") {
                    for call in calls {
                        if let Item::Object(call) = call
                            && let Some(Item::Object(function)) = call.get("function")
                        {
                            ["name", "arguments"].iter().filter_map(|key| function.get(key)).for_each(
                                |item| {
                                    content(item, &mut text);
                                },
                            );
                        }
                    }
                }
                text.push('\n');
            }
        }
        (Some(Item::Ids(ids)), _) if ids.is_empty() => {}
        (Some(other), _) => {
            return Err(line.error(Some("messages"), found(Some(other), "a list of messages")));
        }
        (None, Some(item @ (Item::Text(_) | Item::List(_)))) => content(item, &mut text),
        (None, item) => {
            return Err(
                line.error(Some("messages"), found(item, "a list of messages, or a text as `prompt`"))
            );
        }
    }
    Ok(text)
}

impl Objects for AccessLog {
    fn example(&self) -> &'static str {
        "{\"created\": 1700000000, \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"usage\": {\"prompt_tokens\": 9, \"completion_tokens\": 12}}"
    }

    fn read(&mut self, line: &Line<'_>, rows: &mut Rows) -> Result<(), TraceError> {
        let name = TIMES.iter().copied().find(|name| field(line.fields, name).is_some()).unwrap_or(TIMES[0]);
        let moment = line.moment_of(name, field(line.fields, name))?;
        let time = rows.time(line.number, name, moment)?;
        if let Moment::Number(first) = moment {
            rows.unit = Some(*self.unit.get_or_insert(TimeUnit::of_size(first)));
        }
        let text = prompt_text(line)?;
        let usage = field(line.fields, "usage");
        let of_usage = |names: [&str; 2]| match usage {
            Some(Item::Object(usage)) => names.iter().find_map(|name| usage.known(name)?.whole()),
            _ => None,
        };
        let failed = field(line.fields, "error").is_some()
            || ["status", "status_code"].iter().any(|name| {
                field(line.fields, name).and_then(Item::whole).is_some_and(|status| status >= 400)
            });
        let max = || {
            ["max_completion_tokens", "max_tokens"].iter().find_map(|name| field(line.fields, name)?.whole())
        };
        let max_tokens = match (failed, of_usage(["completion_tokens", "output_tokens"]).or_else(max)) {
            (true, _) => 0,
            (false, Some(tokens)) => tokens.min(u32::MAX.into()),
            (false, None) => {
                return Err(line.error(
                    Some("usage"),
                    found(usage, "an object with completion_tokens (or there is max_tokens beside it)"),
                ));
            }
        };
        if let Some(tokens) = of_usage(["prompt_tokens", "input_tokens"]) {
            let (bytes, all) = self.counted;
            self.counted = (bytes + text.len() as u64, all.saturating_add(tokens));
        }
        let prompt = self
            .ids
            .prompt(&text, self.block, self.bytes_per_token)
            .ok_or_else(|| line.error(None, "the file has more than 2^32 different blocks".into()))?;
        let name_of = |names: [&str; 2]| {
            names.iter().find_map(|name| match field(line.fields, name)? {
                Item::Text(text) => Some(TenantName::Text(text.clone())),
                item => item.integer().map(TenantName::Number),
            })
        };
        let (tenant, session) = (name_of(["tenant", "user"]), name_of(["session_id", "conversation_id"]));
        let (tenant, session) = (tenant.map(|t| rows.tenant(t)), session.map(|s| rows.session(s)));
        rows.push(Row { line: line.number, time, prompt, max_tokens, tenant, output: None, session })
    }

    fn finish(&mut self, rows: &mut Rows) -> Result<(), TraceError> {
        let (bytes, tokens) = self.counted;
        let each = self.bytes_per_token;
        if tokens > 0 {
            let count = if each == 1 {
                "a prompt's bytes count as its tokens".into()
            } else {
                format!("{each} bytes of a prompt count as one token")
            };
            rows.notes.push(format!(
                "{count}; by `usage` a token was {:.1} bytes (--bytes-per-token)",
                bytes as f64 / tokens as f64
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Imported, ReadOptions, Reader};

    fn read(text: &str, options: ReadOptions) -> Imported {
        let mut reader = Reader::new(options);
        reader.push(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        reader.finish().unwrap_or_else(|e| panic!("{e}"))
    }

    fn call(created: u64, system: &str, user: &str, rest: &str) -> String {
        format!(
            "{{\"created\": {created}, \"model\": \"m\", \"messages\": [{{\"role\": \"system\", \"content\": \"{system}\"}}, {{\"role\": \"user\", \"content\": [{{\"type\": \"text\", \"text\": \"{user}\"}}]}}], \"usage\": {{\"prompt_tokens\": 25, \"completion_tokens\": 7}}{rest}}}\n"
        )
    }

    #[test]
    fn texts_become_blocks_that_share_what_they_begin_with() {
        let system = "s".repeat(50);
        let text = call(1_700_000_010, &system, "one question", ", \"user\": \"u1\"")
            + &call(1_700_000_000, &system, "another", ", \"user\": \"u2\", \"session_id\": \"x\"")
            + &call(1_700_000_020, &system, "failed", ", \"error\": {\"code\": 1}");
        let log = read(&text, ReadOptions::default());
        assert_eq!(log.detected.format, Format::AccessLog);
        let requests = &log.log.trace.requests;
        assert_eq!(requests.len(), 2);
        assert_eq!((requests[1].arrival.seconds(), requests[1].max_tokens), (10.0, 7));
        let (a, b) = (requests[0].prompt.items(), requests[1].prompt.items());
        let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        assert_eq!(shared, 3, "system, a line's end, 50 letters: 57 bytes are three whole blocks of 16");
        assert_eq!(log.log.trace.tenants.len(), 2);
        for part in ["failed", "sorted", "--bytes-per-token"] {
            assert!(log.notes.iter().any(|note| note.contains(part)), "{part}: {:?}", log.notes);
        }
        let coarse = read(&text, ReadOptions { bytes_per_token: 4, ..ReadOptions::default() });
        assert_eq!(coarse.log.trace.requests[0].prompt.len(), requests[0].prompt.len().div_ceil(4));
    }

    #[test]
    fn wrapped_logs_and_plain_prompts_are_read() {
        let text = "{\"timestamp\": \"2024-05-10T00:00:00.5Z\", \"request\": {\"body\": {\"prompt\": \"0123456789abcdefgh\", \"max_tokens\": 3}}}\n";
        let log = read(text, ReadOptions::default());
        let request = &log.log.trace.requests[0];
        assert_eq!((request.prompt.len(), request.prompt.items().len(), request.max_tokens), (18, 1, 3));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (line, field) in [
            ("{\"created\": 1, \"usage\": {\"completion_tokens\": 1}}", "messages"),
            ("{\"created\": 1, \"prompt\": \"a\"}", "usage"),
            ("{\"prompt\": \"a\", \"max_tokens\": 1}", "created"),
            ("{\"created\": true, \"prompt\": \"a\", \"max_tokens\": 1}", "created"),
            ("{\"created\": 1, \"messages\": [1], \"max_tokens\": 1}", "messages"),
        ] {
            let mut reader =
                Reader::new(ReadOptions { format: Some(Format::AccessLog), ..ReadOptions::default() });
            let error = reader.push(format!("{line}\n").as_bytes()).expect_err(line);
            assert_eq!(error.field.as_deref(), Some(field), "{line}: {error}");
        }
    }
}
