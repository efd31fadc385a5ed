//! Turns a run's events into one record a request, and the counts that a summary needs. The page
//! feeds it the same events up to the moment it shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Event, What};
use crate::engine::{Rejection, RequestId};
use crate::units::{Span, Time};

/// The life of one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its id: its index in the trace.
    pub request: RequestId,
    /// Its tenant.
    pub tenant: Option<u32>,
    /// Prompt tokens.
    pub prompt: u32,
    /// Its budget.
    pub max_tokens: u64,
    /// When it was sent, in picoseconds.
    pub arrival: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It could never be served.
    Rejected(Rejection),
    /// It went to a replica; times in picoseconds.
    Served {
        /// Which.
        replica: u32,
        /// When it was first admitted.
        admitted: Option<u64>,
        /// Prompt tokens found in the prefix cache at its first admission.
        cached: u32,
        /// When its first token was out.
        first_token: Option<u64>,
        /// When its latest token was out.
        latest_token: Option<u64>,
        /// When its last token was out.
        finished: Option<u64>,
        /// Tokens generated.
        generated: u32,
        /// Times it was preempted.
        preemptions: u32,
        /// Tokens computed again after a preemption.
        recomputed: u32,
    },
}

impl Record {
    /// From the scheduled arrival to the first token.
    pub fn ttft(&self) -> Option<Span> {
        match self.outcome {
            Outcome::Served { first_token: Some(first), .. } => Some(Time(first).since(Time(self.arrival))),
            _ => None,
        }
    }

    /// From the first token to the last, and the tokens that came after the first, once finished; a
    /// request of one token has none.
    pub fn after_first(&self) -> Option<(Span, u32)> {
        match self.outcome {
            Outcome::Served { first_token: Some(first), finished: Some(end), generated, .. }
                if generated > 1 =>
            {
                Some((Time(end).since(Time(first)), generated - 1))
            }
            _ => None,
        }
    }

    /// Seconds a token after the first, once finished; a request of one token has none.
    pub fn itl(&self) -> Option<f64> {
        self.after_first().map(|(span, tokens)| span.seconds() / f64::from(tokens))
    }

    /// When it was finished.
    pub fn finished(&self) -> Option<Time> {
        match self.outcome {
            Outcome::Served { finished, .. } => finished.map(Time),
            Outcome::Rejected(_) => None,
        }
    }
}

/// Counts a run as it goes.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub(super) records: BTreeMap<RequestId, Record>,
    pub(super) assignments: Vec<u64>,
    pub(super) assigned_tokens: Vec<u64>,
    /// Single gaps between two tokens of one request.
    pub(super) gaps: Vec<Span>,
    pub(super) preemptions: u64,
    pub(super) evictions: u64,
    pub(super) peak_held: u32,
    pub(super) last_finish: Time,
    pool: u32,
}

impl Recorder {
    /// For a fleet of `replicas`, each with `pool` blocks.
    pub fn new(replicas: usize, pool: usize) -> Recorder {
        Recorder {
            records: BTreeMap::new(),
            assignments: vec![0; replicas],
            assigned_tokens: vec![0; replicas],
            gaps: Vec::new(),
            preemptions: 0,
            evictions: 0,
            peak_held: 0,
            last_finish: Time::ZERO,
            pool: pool as u32,
        }
    }

    /// The records so far, by request.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// The record of one request, once it has arrived.
    pub fn record(&self, request: RequestId) -> Option<&Record> {
        self.records.get(&request)
    }

    /// Requests sent to each replica so far.
    pub fn assignments(&self) -> &[u64] {
        &self.assignments
    }

    /// The most blocks that running requests of one replica held at once ÷ its pool.
    pub fn peak_kv_utilisation(&self) -> f64 {
        f64::from(self.peak_held) / f64::from(self.pool)
    }

    /// Takes the next event of the run.
    pub fn observe(&mut self, event: &Event) {
        match &event.what {
            What::Routed { arrival, replica, .. } => {
                self.assignments[*replica as usize] += 1;
                self.assigned_tokens[*replica as usize] += u64::from(arrival.prompt) + arrival.max_tokens;
                let outcome = Outcome::Served {
                    replica: *replica,
                    admitted: None,
                    cached: 0,
                    first_token: None,
                    latest_token: None,
                    finished: None,
                    generated: 0,
                    preemptions: 0,
                    recomputed: 0,
                };
                self.arrive(event.at, arrival, outcome);
            }
            What::Rejected { arrival, rejection } => {
                self.arrive(event.at, arrival, Outcome::Rejected(*rejection));
            }
            What::StepStarted { start, .. } => {
                self.evictions += u64::from(start.evicted);
                // Nobody is preempted while a block is left, so that pool was full a moment before.
                let held = if start.preempted.is_empty() { start.held } else { self.pool };
                self.peak_held = self.peak_held.max(held);
                for &request in &start.preempted {
                    self.preemptions += 1;
                    if let Outcome::Served { preemptions, .. } = self.outcome(request) {
                        *preemptions += 1;
                    }
                }
                for one in &start.admitted {
                    if let Outcome::Served { admitted, cached, recomputed, .. } = self.outcome(one.request) {
                        if one.first {
                            *admitted = Some(event.at);
                            *cached = one.cached;
                        }
                        *recomputed += one.recomputed;
                    }
                }
                if let Some(one) = &start.continued
                    && let Outcome::Served { recomputed, .. } = self.outcome(one.request)
                {
                    *recomputed += one.recomputed;
                }
            }
            What::StepEnded { end, .. } => {
                for token in &end.emitted {
                    let mut gap = None;
                    if let Outcome::Served { first_token, latest_token, finished, generated, .. } =
                        self.outcome(token.request)
                    {
                        first_token.get_or_insert(event.at);
                        gap = latest_token.map(|latest| event.time().since(Time(latest)));
                        *latest_token = Some(event.at);
                        *generated += 1;
                        if token.last {
                            *finished = Some(event.at);
                        }
                    }
                    self.gaps.extend(gap);
                    if token.last {
                        self.last_finish = event.time();
                    }
                }
            }
        }
    }

    fn arrive(&mut self, at: u64, arrival: &super::Arrival, outcome: Outcome) {
        let record = Record {
            request: arrival.request,
            tenant: arrival.tenant,
            prompt: arrival.prompt,
            max_tokens: arrival.max_tokens,
            arrival: at,
            outcome,
        };
        self.records.insert(arrival.request, record);
    }

    fn outcome(&mut self, request: RequestId) -> &mut Outcome {
        &mut self.records.get_mut(&request).expect("a request arrives before anything happens to it").outcome
    }
}
