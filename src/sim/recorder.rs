//! Turns a run's events into one record a request, and the counts that a summary needs. The page
//! feeds it the same events up to the moment it shows.

use serde::{Deserialize, Serialize};

use super::gaps::{Gaps, Run};
use super::{Arrival, Event, What};
use crate::engine::{Rejection, RequestId, StepStart};
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

/// In the place of a replica: the request has been sent to none yet.
pub const NOWHERE: u32 = u32::MAX;

impl Outcome {
    /// Of one that has just been sent to a replica.
    fn sent(replica: u32) -> Outcome {
        Outcome::Served {
            replica,
            admitted: None,
            cached: 0,
            first_token: None,
            latest_token: None,
            finished: None,
            generated: 0,
            preemptions: 0,
            recomputed: 0,
        }
    }
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
    /// By id: requests arrive in the order of their ids.
    pub(super) records: Vec<Record>,
    pub(super) assignments: Vec<u64>,
    pub(super) assigned_tokens: Vec<u64>,
    /// Single gaps between two tokens of one request.
    pub(super) gaps: Gaps,
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
            records: Vec::new(),
            assignments: vec![0; replicas],
            assigned_tokens: vec![0; replicas],
            gaps: Gaps::default(),
            preemptions: 0,
            evictions: 0,
            peak_held: 0,
            last_finish: Time::ZERO,
            pool: pool as u32,
        }
    }

    /// From now on there are so many replicas, if that is more than before.
    pub fn grow(&mut self, replicas: usize) {
        let replicas = replicas.max(self.assignments.len());
        self.assignments.resize(replicas, 0);
        self.assigned_tokens.resize(replicas, 0);
    }

    /// The records so far, by request.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// The record of one request, once it has arrived.
    pub fn record(&self, request: RequestId) -> Option<&Record> {
        self.records.get(request as usize)
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
            What::Routed { arrival, replica, .. } => self.routed(event.at, arrival, *replica),
            What::Rejected { arrival, rejection } => self.rejected(event.at, arrival, *rejection),
            What::StepStarted { start, .. } => self.started(event.at, start),
            What::StepEnded { end, .. } => {
                for token in &end.emitted {
                    let gap = self.emitted(event.at, token.request, 1);
                    gap.into_iter().for_each(|gap| self.gaps.push(gap));
                    if token.last {
                        self.finished(event.at, token.request);
                    }
                }
            }
        }
    }

    /// A request arrived and was sent to a replica.
    pub(crate) fn routed(&mut self, at: u64, arrival: &Arrival, replica: u32) {
        self.assignments[replica as usize] += 1;
        self.assigned_tokens[replica as usize] += u64::from(arrival.prompt) + arrival.max_tokens;
        self.arrive(at, arrival, Outcome::sent(replica));
    }

    /// A request arrived while no replica was ready: it waits where it is routed, of no replica yet.
    pub(crate) fn held(&mut self, at: u64, arrival: &Arrival) {
        self.arrive(at, arrival, Outcome::sent(NOWHERE));
    }

    /// A request is sent (again, or at last) to a replica, where it begins anew.
    pub(crate) fn resent(&mut self, request: RequestId, replica: u32) {
        let Record { prompt, max_tokens, .. } = self.records[request as usize];
        self.grow(replica as usize + 1);
        self.assignments[replica as usize] += 1;
        self.assigned_tokens[replica as usize] += u64::from(prompt) + max_tokens;
        if let Outcome::Served { replica: own, first_token, latest_token, generated, .. } =
            self.outcome(request)
        {
            (*own, *first_token, *latest_token, *generated) = (replica, None, None, 0);
        }
    }

    /// Tokens of a request that were computed and went with the replica that computed them.
    pub(crate) fn lost(&mut self, request: RequestId, tokens: u32) {
        if let Outcome::Served { recomputed, .. } = self.outcome(request) {
            *recomputed += tokens;
        }
    }

    /// A request arrived that can never be served.
    pub(crate) fn rejected(&mut self, at: u64, arrival: &Arrival, rejection: Rejection) {
        self.arrive(at, arrival, Outcome::Rejected(rejection));
    }

    /// A replica began a step.
    pub(crate) fn started(&mut self, at: u64, start: &StepStart) {
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
                // One that was sent elsewhere is new there, but reuse counts once.
                if one.first && admitted.is_none() {
                    *admitted = Some(at);
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

    /// The latest of so many tokens of a request came out; the time since the one before the latest is
    /// returned where there was one before these.
    pub(crate) fn emitted(&mut self, at: u64, request: RequestId, tokens: u32) -> Option<Span> {
        let Outcome::Served { first_token, latest_token, generated, .. } = self.outcome(request) else {
            return None;
        };
        first_token.get_or_insert(at);
        *generated += tokens;
        latest_token.replace(at).map(|latest| Time(at).since(Time(latest)))
    }

    /// A request's last token came out.
    pub(super) fn finished(&mut self, at: u64, request: RequestId) {
        if let Outcome::Served { finished, .. } = self.outcome(request) {
            *finished = Some(at);
        }
        self.last_finish = self.last_finish.max(Time(at));
    }

    /// All of a request's tokens are out, and their gaps were counted: the latest came now.
    pub(crate) fn completed(&mut self, at: u64, request: RequestId) {
        let all = self.records[request as usize].max_tokens as u32;
        if let Outcome::Served { latest_token, generated, .. } = self.outcome(request) {
            (*latest_token, *generated) = (Some(at), all);
        }
        self.finished(at, request);
    }

    /// A request has had its latest token now; its gaps were counted.
    pub(crate) fn rested(&mut self, at: u64, request: RequestId) {
        if let Outcome::Served { latest_token, .. } = self.outcome(request) {
            *latest_token = Some(at);
        }
    }

    /// A gap between two tokens.
    pub(crate) fn gap(&mut self, gap: Span) {
        self.gaps.push(gap);
    }

    /// The gaps of a whole stretch of steps.
    pub(crate) fn gaps(&mut self, run: Run) {
        self.gaps.push_run(run);
    }

    fn arrive(&mut self, at: u64, arrival: &Arrival, outcome: Outcome) {
        debug_assert_eq!(arrival.request as usize, self.records.len(), "requests arrive in order");
        self.records.push(Record {
            request: arrival.request,
            tenant: arrival.tenant,
            prompt: arrival.prompt,
            max_tokens: arrival.max_tokens,
            arrival: at,
            outcome,
        });
    }

    fn outcome(&mut self, request: RequestId) -> &mut Outcome {
        &mut self.records[request as usize].outcome
    }
}
