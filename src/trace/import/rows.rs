//! What the formats read, collected: requests with their times as they are written, put in order at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TraceError;
use super::item::{shown, written};
use super::moment::{Moment, TimeUnit};
use crate::trace::{BlockIds, Log, NO_SESSION, Prompt, RequestSpec, TenantName, Token, Trace};
use crate::units::{Span, Time};

/// Requests of a file at most.
pub const MAX_REQUESTS: usize = if cfg!(target_arch = "wasm32") { 1 << 22 } else { 1 << 26 };

/// One request as a format reads it.
pub struct Row {
    /// The line that it is on.
    pub line: usize,
    /// When, in the file's unit.
    pub time: f64,
    pub prompt: Prompt,
    pub max_tokens: u64,
    pub tenant: Option<u32>,
    pub output: Option<Arc<[Token]>>,
    pub session: Option<u32>,
}

/// Collects rows.
pub struct Rows {
    trace: Trace,
    times: Vec<f64>,
    lines: Vec<u32>,
    sessions: Vec<u32>,
    tenants: BTreeMap<TenantName, u32>,
    names: BTreeMap<TenantName, u32>,
    /// What times are written in; `None`: what is pushed is in seconds from the run's start, and keeps its zero.
    pub unit: Option<TimeUnit>,
    /// Whether rows that generated nothing are kept.
    pub keep_failed: bool,
    /// How many were not.
    failed: u64,
    /// The first date, from which others are counted.
    first_date: Option<i64>,
    numbers: bool,
    nothing: Arc<[u32]>,
    /// What was done to the file that one should know.
    pub notes: Vec<String>,
}

impl Rows {
    pub fn new(keep_failed: bool) -> Rows {
        Rows {
            trace: Trace::default(),
            times: Vec::new(),
            lines: Vec::new(),
            sessions: Vec::new(),
            tenants: BTreeMap::new(),
            names: BTreeMap::new(),
            unit: Some(TimeUnit::Seconds),
            keep_failed,
            failed: 0,
            first_date: None,
            numbers: false,
            nothing: Arc::new([]),
            notes: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// A prompt of which only the length is known.
    pub fn of_length(&self, tokens: u32) -> Prompt {
        Prompt::Blocks(BlockIds { tokens, block: 1, ids: Arc::clone(&self.nothing) })
    }

    /// The number of a tenant.
    pub fn tenant(&mut self, name: TenantName) -> u32 {
        let tenants = &mut self.trace.tenants;
        *self.tenants.entry(name).or_insert_with_key(|name| {
            tenants.push(name.clone());
            tenants.len() as u32 - 1
        })
    }

    /// The number of a session.
    pub fn session(&mut self, name: TenantName) -> u32 {
        let new = self.names.len() as u32;
        *self.names.entry(name).or_insert(new)
    }

    /// A moment in the file's unit: numbers as they are, dates from the first one. All are of one kind.
    pub fn time(&mut self, line: usize, field: &str, moment: Moment) -> Result<f64, TraceError> {
        let mixed = |wanted: &str| {
            let problem = format!("found {wanted}; it is written as in the lines before");
            Err(TraceError { line, field: Some(shown(field)), problem })
        };
        match moment {
            Moment::Number(_) if self.first_date.is_some() => mixed("a number where the others are dates"),
            Moment::Date(_) if self.numbers => mixed("a date where the others are numbers"),
            Moment::Number(time) => {
                self.numbers = true;
                Ok(time)
            }
            Moment::Date(date) => {
                self.unit = Some(TimeUnit::Seconds);
                let first = *self.first_date.get_or_insert(date);
                // Differences of nanoseconds are exact up to 104 days apart, and rounded to less than 1 µs beyond.
                Ok((i128::from(date) - i128::from(first)) as f64 / 1e9)
            }
        }
    }

    /// Takes a row. One that generated nothing failed, and is left out unless it is to be kept.
    pub fn push(&mut self, row: Row) -> Result<(), TraceError> {
        if row.max_tokens == 0 && !self.keep_failed {
            self.failed += 1;
            return Ok(());
        }
        if self.len() == MAX_REQUESTS {
            let problem = format!("the file has more than {MAX_REQUESTS} requests, the most that are read");
            return Err(TraceError { line: row.line, field: None, problem });
        }
        self.times.push(row.time);
        self.lines.push(u32::try_from(row.line).unwrap_or(u32::MAX));
        self.sessions.push(row.session.unwrap_or(NO_SESSION));
        self.trace.requests.push(RequestSpec {
            arrival: Time::ZERO,
            prompt: row.prompt,
            max_tokens: row.max_tokens,
            tenant: row.tenant,
            output: row.output,
        });
        Ok(())
    }

    /// The requests in order of arrival, from the first on (or from the zero that they keep), and what to know of
    /// them. `bad` is told of each that is left out; it may refuse the whole.
    pub fn finish(
        mut self,
        bad: &mut dyn FnMut(TraceError) -> Result<(), TraceError>,
    ) -> Result<(Log, Vec<String>), TraceError> {
        let first =
            if self.unit.is_some() { self.times.iter().copied().fold(f64::INFINITY, f64::min) } else { 0.0 };
        let unit = self.unit.unwrap_or(TimeUnit::Seconds);
        let mut order: Vec<(Time, u32)> = Vec::with_capacity(self.len());
        for (at, &time) in self.times.iter().enumerate() {
            match Time::from_seconds((time - first) / unit.per_second()) {
                Some(arrival) => order.push((arrival, at as u32)),
                None => bad(TraceError {
                    line: self.lines[at] as usize,
                    field: None,
                    problem: format!(
                        "its time, {time} {unit}, is too long after the first, {first} {unit}: a run lasts at most 213 days",
                        time = written(time),
                        first = written(first),
                        unit = unit.name()
                    ),
                })?,
            }
        }
        let late = order.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
        if late > 0 {
            self.notes.push(format!(
                "{late} of {} requests are earlier than the one on the line before: sorted by time",
                order.len()
            ));
            // A tie keeps the order of the file, which is the second of the pair.
            order.sort_unstable();
        }
        if self.failed > 0 {
            self.notes.push(format!(
                "{} rows with no output are left out as failed (--keep-failed keeps them; they are then rejected)",
                self.failed
            ));
        }
        drop((self.times, self.lines));
        let nothing = RequestSpec {
            arrival: Time::ZERO,
            prompt: Prompt::Blocks(BlockIds { tokens: 0, block: 1, ids: Arc::clone(&self.nothing) }),
            max_tokens: 0,
            tenant: None,
            output: None,
        };
        let take = |&(arrival, at): &(Time, u32)| {
            let request = core::mem::replace(&mut self.trace.requests[at as usize], nothing.clone());
            RequestSpec { arrival, ..request }
        };
        let requests = order.iter().map(take).collect();
        let sessions = order.iter().map(|&(_, at)| self.sessions[at as usize]).collect();
        let trace = Trace { requests, tenants: self.trace.tenants };
        let mut log = Log { trace, sessions };
        if let Some(problem) = log.one_kind_of_prompt() {
            return Err(TraceError { line: 1, field: None, problem });
        }
        Ok((log, self.notes))
    }
}

/// That arrivals are rounded, where a fifth of them or more share one.
pub fn rounded(trace: &Trace) -> Option<String> {
    let shared = trace.requests.windows(2).filter(|pair| pair[0].arrival == pair[1].arrival).count();
    let all = trace.requests.len();
    if shared * 5 < all {
        return None;
    }
    let bucket = Span(trace.bucket()?).seconds();
    Some(format!(
        "{shared} of {all} requests arrive at the time of the one before; times seem rounded to {bucket} s (--spread lets each arrive somewhere in its bucket)"
    ))
}
