//! What a file is, told from its first line, and why.

use super::TraceError;
use super::columns::Header;
use super::item::{Fields, Item, shown, without_place};

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own JSON lines.
    JsonLines,
    /// Mooncake's.
    Mooncake,
    /// Bailian's.
    Bailian,
    /// BurstGPT's CSV.
    BurstGpt,
    /// Azure's CSV.
    Azure,
    /// Conversations of kv-cache-tester.
    KvCacheTester,
    /// RAGPulse's.
    RagPulse,
    /// A log of an OpenAI-style interface.
    AccessLog,
    /// Any other CSV.
    Csv,
}

impl Format {
    /// Every format: its name, its title, and what it is.
    pub const ALL: [(&'static str, Format, &'static str, &'static str); 9] = [
        ("json-lines", Format::JsonLines, "our JSON lines", "arrival, tokens or prompt, max_tokens"),
        ("mooncake", Format::Mooncake, "Mooncake", "timestamp in ms, lengths, hash_ids of 512 tokens"),
        ("bailian", Format::Bailian, "Bailian", "chat_id, timestamp in s, lengths, hash_ids of 16 tokens"),
        ("burstgpt", Format::BurstGpt, "BurstGPT", "CSV: Timestamp in s, Request tokens, Response tokens"),
        ("azure", Format::Azure, "Azure LLM inference", "CSV: TIMESTAMP, ContextTokens, GeneratedTokens"),
        (
            "kv-cache-tester",
            Format::KvCacheTester,
            "kv-cache-tester",
            "conversations: requests with t, in, out, hash_ids",
        ),
        ("ragpulse", Format::RagPulse, "RAGPulse", "timestamp as text, lengths, hash_ids by kind"),
        ("access-log", Format::AccessLog, "OpenAI-style access log", "created, messages or prompt, usage"),
        ("csv", Format::Csv, "CSV", "any other: columns are guessed, or named with --columns"),
    ];

    /// The format of a name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Format::ALL[self as usize].0
    }

    /// Its title.
    pub fn title(self) -> &'static str {
        Format::ALL[self as usize].2
    }

    /// Whether it is rows of cells, not JSON.
    pub fn is_table(self) -> bool {
        matches!(self, Format::Csv | Format::Azure | Format::BurstGpt)
    }
}

/// What a file is and what tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The format.
    pub format: Format,
    /// What in the first line says so.
    pub why: String,
}

/// What a first line says that the file is; `None` where it is the beginning of a JSON value that goes on.
pub fn detect(number: usize, line: &str) -> Result<Option<Detected>, TraceError> {
    let refuse = |problem: String| Err(TraceError { line: number, field: None, problem });
    if let Some(what) = binary(line.as_bytes()) {
        return refuse(format!("not a text; it is {what}"));
    }
    if line.starts_with(['{', '[']) {
        return match Item::parse(line) {
            Ok(item) => detect_item(&item).map(Some).or_else(refuse),
            Err(e) if e.is_eof() => Ok(None),
            Err(e) => refuse(format!(
                "begins as JSON does, but is none: {}; found `{}`",
                without_place(&e),
                shown(line)
            )),
        };
    }
    if line.starts_with('<') {
        return refuse(format!("found `{}`, which looks like a page or XML; {}", shown(line), formats()));
    }
    let header = Header::read(line);
    let has = |names: &[&str]| names.iter().all(|name| header.position(name).is_some());
    let (format, which) = if has(&["contexttokens", "generatedtokens", "timestamp"]) {
        (Format::Azure, "ContextTokens and GeneratedTokens")
    } else if has(&["requesttokens", "responsetokens", "timestamp"]) {
        (Format::BurstGpt, "Request tokens and Response tokens")
    } else if header.names.len() > 1 {
        (Format::Csv, "")
    } else {
        return refuse(format!("found `{}`; {}", shown(line), formats()));
    };
    let why = if which.is_empty() {
        format!("{} columns, with {} between them", header.names.len(), header.delimiter_name())
    } else {
        format!("its columns are named {which}")
    };
    Ok(Some(Detected { format, why }))
}

/// The same of a value: an object, or a list of them.
pub fn detect_item(item: &Item) -> Result<Detected, String> {
    let (fields, list) = match item {
        Item::Object(fields) => (fields, ""),
        Item::List(items) => match items.first() {
            Some(Item::Object(fields)) => (fields, "a list of objects; "),
            _ => return Err(format!("found {item}; {}", formats())),
        },
        _ => return Err(format!("found {item}; {}", formats())),
    };
    let (format, why) = of_fields(fields).ok_or_else(|| {
        let keys: Vec<String> = fields.keys().take(12).map(shown).collect();
        format!("an object with the fields {}, which no format has; {}", keys.join(", "), formats())
    })?;
    Ok(Detected { format, why: format!("{list}{why}") })
}

fn of_fields(fields: &Fields) -> Option<(Format, &'static str)> {
    let has = |key: &str| fields.get(key).is_some();
    let ids = fields.get("hash_ids");
    Some(if has("arrival") {
        (Format::JsonLines, "objects with `arrival`")
    } else if matches!(ids, Some(Item::Object(_))) {
        (Format::RagPulse, "`hash_ids` is an object of lists")
    } else if has("requests") {
        (Format::KvCacheTester, "a conversation: an object with `requests`")
    } else if ids.is_some() && (has("chat_id") || has("parent_chat_id")) {
        (Format::Bailian, "objects with `chat_id` and `hash_ids`")
    } else if ids.is_some() {
        (Format::Mooncake, "objects with `hash_ids` and no `chat_id`")
    } else if has("messages") || has("prompt") || has("usage") || has("request") {
        (Format::AccessLog, "objects with `messages`, `prompt`, `usage` or `request`")
    } else if has("max_tokens") || has("tokens") {
        (Format::JsonLines, "objects with `tokens` or `max_tokens`")
    } else {
        return None;
    })
}

fn formats() -> String {
    let titles: Vec<&str> = Format::ALL.iter().map(|row| row.2).collect();
    format!("a trace is one of: {}", titles.join(", "))
}

/// What a file that is not text is, by its first bytes (as the formats' own specifications give them).
pub fn binary(bytes: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 12] = [
        (b"\x89PNG", "an image (PNG)"),
        (b"\xff\xd8\xff", "an image (JPEG)"),
        (b"GIF8", "an image (GIF)"),
        (b"PK\x03\x04", "a ZIP archive (or a spreadsheet, which is one); unpack it, or save it as CSV"),
        (b"\x1f\x8b", "compressed (gzip); unpack it first"),
        (b"\x28\xb5\x2f\xfd", "compressed (zstd); unpack it first"),
        (b"BZh", "compressed (bzip2); unpack it first"),
        (b"PAR1", "a Parquet file; write it as CSV or JSON lines first"),
        (b"%PDF", "a PDF"),
        (b"SQLite format 3", "a SQLite database"),
        (b"\xff\xfe", "UTF-16; save it as UTF-8"),
        (b"\xfe\xff", "UTF-16; save it as UTF-8"),
    ];
    kinds.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_first_line() {
        for (line, format) in [
            ("{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1}", Format::JsonLines),
            (
                "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [0]}",
                Format::Mooncake,
            ),
            (
                "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 0.5, \"hash_ids\": [0]}",
                Format::Bailian,
            ),
            ("{\"timestamp\": \"27\", \"hash_ids\": {\"sys_prompt\": [1]}}", Format::RagPulse),
            ("{\"id\": \"a\", \"block_size\": 64, \"requests\": []}", Format::KvCacheTester),
            ("{\"created\": 1700000000, \"messages\": [], \"usage\": {}}", Format::AccessLog),
            ("[{\"created\": 1700000000, \"prompt\": \"a\"}]", Format::AccessLog),
            ("TIMESTAMP,ContextTokens,GeneratedTokens", Format::Azure),
            ("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens", Format::Azure),
            (
                "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type",
                Format::BurstGpt,
            ),
            ("when;tokens in;tokens out", Format::Csv),
        ] {
            let found = detect(1, line).unwrap_or_else(|e| panic!("{e}")).expect("it is whole");
            assert_eq!(found.format, format, "{line}");
            assert!(!found.why.is_empty());
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
        assert_eq!(detect(1, "{"), Ok(None), "a value over several lines");
    }

    #[test]
    fn what_is_none_is_said() {
        for (line, part) in [
            ("{\"a\": 1, \"b\": 2}", "the fields a, b"),
            ("{\"a\": 1,, }", "is none"),
            ("[1, 2]", "found [1, 2]"),
            ("<html>", "looks like a page"),
            ("hello", "`hello`"),
        ] {
            let error = detect(3, line).expect_err(line);
            assert!(error.line == 3 && error.problem.contains(part), "{line}: {error}");
        }
        assert_eq!(binary(b"\x89PNG\r\n"), Some("an image (PNG)"));
        assert_eq!(binary(b"plain"), None);
    }
}
