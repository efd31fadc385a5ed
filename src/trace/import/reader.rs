//! The reader: bytes in, requests out, in whatever chunks they come.

use super::TraceError;
use super::access_log::AccessLog;
use super::bailian::Bailian;
use super::columns::Columns;
use super::csv::Table;
use super::detect::{Detected, Format, detect, detect_item};
use super::item::{Fields, Item, without_place};
use super::json_lines::JsonLines;
use super::kv_cache_tester::KvCacheTester;
use super::lengths::Lengths;
use super::line::{Line, object};
use super::lines::{Found, Lines, MAX_LINE};
use super::moment::TimeUnit;
use super::mooncake::Mooncake;
use super::ragpulse::RagPulse;
use super::rows::{Rows, rounded};
use crate::trace::{Log, Token};

/// How a file is to be read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// What it is; `None`: its first line tells.
    pub format: Option<Format>,
    /// Tokens that an id stands for, where the format leaves it open (or it is not what the format's are).
    pub trace_block: Option<u32>,
    /// Which column of a CSV is what, where the names do not tell.
    pub columns: Columns,
    /// What numbers of time are in, where neither the format nor their size tells.
    pub time_unit: Option<TimeUnit>,
    /// Whether a bad line is counted and passed over, instead of ending it all.
    pub skip_bad_lines: bool,
    /// Whether arrivals will be spread out: that they are rounded then goes without saying.
    pub spread: bool,
    /// Whether rows that generated nothing are kept.
    pub keep_failed: bool,
    /// Bytes of an access log's text that count as a token.
    pub bytes_per_token: u32,
    /// How long RAGPulse's segments are.
    pub lengths: Lengths,
    /// One more than the highest token id that the model knows.
    pub vocabulary: Token,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            trace_block: None,
            columns: Columns::default(),
            time_unit: None,
            skip_bad_lines: false,
            spread: false,
            keep_failed: false,
            bytes_per_token: 1,
            lengths: Lengths::default(),
            vocabulary: 1 << 31,
        }
    }
}

/// How far a reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes taken.
    pub bytes: u64,
    /// Lines that have ended.
    pub lines: usize,
    /// Requests so far.
    pub requests: usize,
    /// Bad lines passed over.
    pub skipped: u64,
}

/// A file that has been read.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its requests, with their sessions.
    pub log: Log,
    /// What it was.
    pub detected: Detected,
    /// What was done to it that one should know, in sentences.
    pub notes: Vec<String>,
    /// Bad lines that were passed over.
    pub skipped: u64,
    /// The first few of them.
    pub problems: Vec<TraceError>,
}

/// Problems of lines that are passed over which are kept to be shown.
const KEPT_PROBLEMS: usize = 5;

/// A format of objects.
pub(super) trait Objects {
    /// What a line looks like.
    fn example(&self) -> &'static str;
    /// Takes an object.
    fn read(&mut self, line: &Line<'_>, rows: &mut Rows) -> Result<(), TraceError>;
    /// What can be said only once all are there.
    fn finish(&mut self, _rows: &mut Rows) -> Result<(), TraceError> {
        Ok(())
    }
}

enum Parser {
    Objects(Box<dyn Objects>),
    Table(Box<Table>),
}

enum State {
    /// Nothing but blank lines yet.
    Empty,
    /// The format is known.
    Reading(Detected, Parser),
    /// A JSON value over several lines, and the line that it begins on.
    Document(usize, String),
    /// It has been refused.
    Refused,
}

/// Reads one file.
pub struct Reader {
    options: ReadOptions,
    lines: Lines,
    state: State,
    rows: Rows,
    bytes: u64,
    bad: Bad,
}

/// Bad lines.
struct Bad {
    skip: bool,
    count: u64,
    first: Vec<TraceError>,
}

impl Bad {
    fn take(&mut self, error: TraceError) -> Result<(), TraceError> {
        if !self.skip {
            return Err(error);
        }
        self.count += 1;
        if self.first.len() < KEPT_PROBLEMS {
            self.first.push(error);
        }
        Ok(())
    }
}

impl Reader {
    /// A reader that has seen nothing yet.
    pub fn new(options: ReadOptions) -> Reader {
        Reader {
            lines: Lines::default(),
            state: State::Empty,
            rows: Rows::new(options.keep_failed),
            bytes: 0,
            bad: Bad { skip: options.skip_bad_lines, count: 0, first: Vec::new() },
            options,
        }
    }

    /// Takes the next bytes of the file. After an error there is nothing more to read.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.bytes += bytes.len() as u64;
        let Reader { options, lines, state, rows, bad, .. } = self;
        let pushed = lines.push(bytes, &mut |found| take(options, state, rows, bad, found));
        if pushed.is_err() {
            (self.state, self.rows) = (State::Refused, Rows::new(true));
        }
        pushed
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let (lines, requests) = (self.lines.ended(), self.rows.len());
        Progress { bytes: self.bytes, lines, requests, skipped: self.bad.count }
    }

    /// What the first line said that the file is, once it has been seen.
    pub fn detected(&self) -> Option<&Detected> {
        if let State::Reading(detected, _) = &self.state { Some(detected) } else { None }
    }

    /// The requests, in order. There may be none.
    pub fn finish(self) -> Result<Imported, TraceError> {
        let Reader { options, lines, mut state, mut rows, mut bad, .. } = self;
        lines.finish(&mut |found| take(&options, &mut state, &mut rows, &mut bad, found))?;
        if let State::Document(line, text) = state {
            state = document(&options, line, &text, &mut rows, &mut bad)?;
        }
        let detected = match state {
            State::Reading(detected, mut parser) => {
                if let Parser::Objects(objects) = &mut parser {
                    objects.finish(&mut rows)?;
                }
                detected
            }
            _ => Detected {
                format: options.format.unwrap_or(Format::JsonLines),
                why: "there is nothing in it".into(),
            },
        };
        let (log, mut notes) = rows.finish(&mut |error| bad.take(error))?;
        if !options.spread {
            notes.extend(rounded(&log.trace));
        }
        if bad.count > 0 {
            notes.push(format!("{} bad lines are passed over, the first: {}", bad.count, bad.first[0]));
        }
        Ok(Imported { log, detected, notes, skipped: bad.count, problems: bad.first })
    }
}

/// Takes a line.
fn take(
    options: &ReadOptions,
    state: &mut State,
    rows: &mut Rows,
    bad: &mut Bad,
    found: Found<'_>,
) -> Result<(), TraceError> {
    let (number, text) = match found {
        Ok(line) => line,
        // Of a file that is no text from its first line on, nothing will be.
        Err(error) if matches!(state, State::Empty) => return Err(error),
        Err(error) => return bad.take(error),
    };
    match state {
        State::Refused => Ok(()),
        State::Document(begins, value) => {
            if value.len() + text.len() > MAX_LINE {
                let problem =
                    format!("a JSON value longer than {MAX_LINE} bytes, the most that is read at once");
                return Err(TraceError { line: *begins, field: None, problem });
            }
            value.push_str(text);
            value.push('\n');
            Ok(())
        }
        _ if text.is_empty() => Ok(()),
        State::Empty => {
            let detected = match options.format {
                Some(format) => Some(Detected { format, why: "it was said to be".into() }),
                None => detect(number, text)?,
            };
            let conversation =
                options.format == Some(Format::KvCacheTester) && Item::parse(text).is_err_and(|e| e.is_eof());
            match detected {
                Some(detected) if !conversation => {
                    let mut parser = parser(options, detected.format);
                    let taken = begin(&mut parser, options, number, text, rows, bad);
                    *state = State::Reading(detected, parser);
                    taken
                }
                _ => {
                    *state = State::Document(number, format!("{text}\n"));
                    Ok(())
                }
            }
        }
        State::Reading(_, parser) => {
            let done = match parser {
                Parser::Objects(objects) => object(number, text, objects.example())
                    .and_then(|fields| objects.read(&Line { number, fields: &fields }, rows)),
                Parser::Table(table) => table.row(number, text, rows),
            };
            done.or_else(|error| bad.take(error))
        }
    }
}

fn parser(options: &ReadOptions, format: Format) -> Parser {
    let block = |usual: u32| options.trace_block.unwrap_or(usual);
    Parser::Objects(match format {
        Format::JsonLines => Box::new(JsonLines { vocabulary: options.vocabulary }),
        // Its own blocks: github.com/kvcache-ai/Mooncake, FAST25-release.
        Format::Mooncake => Box::new(Mooncake { block: block(512) }),
        // Its own blocks: github.com/alibaba-edu/qwen-bailian-usagetraces-anon.
        Format::Bailian => Box::new(Bailian::new(block(16))),
        Format::KvCacheTester => Box::new(KvCacheTester::new(options.trace_block)),
        Format::RagPulse => Box::new(RagPulse::new(block(16), options.lengths.clone())),
        Format::AccessLog => Box::new(AccessLog::new(block(16), options.bytes_per_token, options.time_unit)),
        Format::Azure | Format::BurstGpt | Format::Csv => return Parser::Table(Box::new(Table::new(format))),
    })
}

/// Takes the first line that is not blank: a header, or an object like those that follow, or a list of all.
fn begin(
    parser: &mut Parser,
    options: &ReadOptions,
    number: usize,
    text: &str,
    rows: &mut Rows,
    bad: &mut Bad,
) -> Result<(), TraceError> {
    match parser {
        Parser::Table(table) => table.header(number, text, options, rows),
        Parser::Objects(objects) => {
            if text.starts_with('[') {
                let item = Item::parse(text).map_err(|e| no_json(number, &e))?;
                return read_item(objects.as_mut(), number, &item, rows, bad);
            }
            let fields = object(number, text, objects.example());
            fields
                .and_then(|fields| objects.read(&Line { number, fields: &fields }, rows))
                .or_else(|error| bad.take(error))
        }
    }
}

/// Reads a JSON value that is the whole file.
fn document(
    options: &ReadOptions,
    line: usize,
    text: &str,
    rows: &mut Rows,
    bad: &mut Bad,
) -> Result<State, TraceError> {
    let item = Item::parse(text).map_err(|e| no_json(line, &e))?;
    let detected = match options.format {
        Some(format) => Detected { format, why: "it was said to be".into() },
        None => detect_item(&item).map_err(|problem| TraceError { line, field: None, problem })?,
    };
    let mut parser = parser(options, detected.format);
    if let Parser::Objects(objects) = &mut parser {
        read_item(objects.as_mut(), line, &item, rows, bad)?;
    }
    Ok(State::Reading(detected, parser))
}

fn no_json(line: usize, error: &serde_json::Error) -> TraceError {
    // Its place within the value is all there is to say of where.
    let place = line + error.line().saturating_sub(1);
    TraceError { line: place, field: None, problem: format!("not JSON: {}", without_place(error)) }
}

fn read_item(
    objects: &mut dyn Objects,
    number: usize,
    item: &Item,
    rows: &mut Rows,
    bad: &mut Bad,
) -> Result<(), TraceError> {
    let mut one =
        |fields: &Fields| objects.read(&Line { number, fields }, rows).or_else(|error| bad.take(error));
    match item {
        Item::Object(fields) => one(fields),
        Item::List(items) => items.iter().try_for_each(|item| match item {
            Item::Object(fields) => one(fields),
            other => Err(TraceError {
                line: number,
                field: None,
                problem: format!("found {} in the list; a request is an object", other.kind()),
            }),
        }),
        other => Err(TraceError {
            line: number,
            field: None,
            problem: format!("found {}; it is an object, or a list of them", other.kind()),
        }),
    }
}
