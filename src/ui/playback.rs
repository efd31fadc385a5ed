//! The replay: what a policy's run looks like at one moment, folded from its events up to then.
//!
//! [`Fold`] keeps its place, so that going forward costs only the events passed; going back starts
//! over. What did not change between two moments is shared by pointer, so that it need not be drawn
//! again.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::engine::{RequestId, StepEnd, StepStart};
use crate::policy::Decision;
use crate::sim::{Arrival, BlockChange, BlockState, Event, Recorder, What};

/// What was told in the order in which it came, in chunks that are shared and never changed: a copy
/// of the page's state copies pointers only.
#[derive(Clone, Debug)]
pub struct Chunks<T> {
    chunks: Vec<Rc<[T]>>,
    len: usize,
}

/// A run's events.
pub type Log = Chunks<Event>;

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Chunks<T> {
    /// Appends what was told.
    pub fn push(&mut self, told: Vec<T>) {
        if !told.is_empty() {
            self.len += told.len();
            self.chunks.push(told.into());
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing has been told yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The latest.
    pub fn last(&self) -> Option<&T> {
        self.chunks.last()?.last()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl Log {
    /// When the last of them happened.
    pub fn end(&self) -> u64 {
        self.last().map_or(0, |event| event.at)
    }
}

/// Where a request stands on its replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not admitted yet, or preempted.
    Waiting,
    /// Admitted.
    Running,
    /// Finished.
    Done,
}

/// A request on a replica, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chip {
    /// Which.
    pub request: RequestId,
    /// Whose.
    pub tenant: Option<u32>,
    /// Prompt tokens.
    pub prompt: u32,
    /// Its budget.
    pub budget: u32,
    /// Tokens generated so far.
    pub generated: u32,
    /// Prompt tokens found in the prefix cache, once first admitted.
    pub cached: Option<u32>,
    /// Where it stands.
    pub stage: Stage,
}

/// A replica, as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaView {
    /// Its number.
    pub index: u32,
    /// Queued, the next to be admitted first.
    pub waiting: Vec<Chip>,
    /// In the batch, oldest first.
    pub running: Vec<Chip>,
    /// Finished, oldest first.
    pub done: Vec<Chip>,
    /// What each block is used for.
    pub blocks: Rc<[(BlockState, Option<u32>)]>,
    /// Blocks held by running requests.
    pub held: u32,
    /// Blocks kept for a prefix, held by nobody.
    pub cached: u32,
    /// When the step that runs ends; `None`: it runs none.
    pub stepping: Option<u64>,
}

impl ReplicaView {
    fn new(index: u32, blocks: usize) -> ReplicaView {
        ReplicaView {
            index,
            waiting: Vec::new(),
            running: Vec::new(),
            done: Vec::new(),
            blocks: vec![(BlockState::Free, None); blocks].into(),
            held: 0,
            cached: 0,
            stepping: None,
        }
    }

    /// Prompt plus remaining budget over what waits and runs.
    pub fn outstanding(&self) -> u64 {
        let left = |c: &Chip| u64::from(c.prompt) + u64::from(c.budget - c.generated.min(c.budget));
        self.waiting.iter().chain(&self.running).map(left).sum()
    }

    fn paint(&mut self, changes: &[BlockChange]) {
        if changes.is_empty() {
            return;
        }
        let mut blocks = self.blocks.to_vec();
        for change in changes {
            blocks[change.block as usize] = (change.state, change.tenant);
        }
        let count = |state| blocks.iter().filter(|(s, _)| *s == state).count() as u32;
        self.held = count(BlockState::Held);
        self.cached = count(BlockState::Cached);
        self.blocks = blocks.into();
    }

    fn started(&mut self, start: &StepStart, ends: u64) {
        self.stepping = Some(ends);
        for id in &start.preempted {
            if let Some(mut chip) = take(&mut self.running, *id) {
                chip.stage = Stage::Waiting;
                self.waiting.insert(0, chip);
            }
        }
        for one in &start.admitted {
            if let Some(mut chip) = take(&mut self.waiting, one.request) {
                chip.stage = Stage::Running;
                chip.cached.get_or_insert(one.cached);
                self.running.push(chip);
            }
        }
    }

    fn ended(&mut self, end: &StepEnd) {
        self.stepping = None;
        for token in &end.emitted {
            let Some(at) = self.running.iter().position(|c| c.request == token.request) else { continue };
            self.running[at].generated += 1;
            if token.last {
                let chip = self.running.remove(at);
                self.done.push(Chip { stage: Stage::Done, ..chip });
            }
        }
    }
}

fn take(chips: &mut Vec<Chip>, request: RequestId) -> Option<Chip> {
    let at = chips.iter().position(|c| c.request == request)?;
    Some(chips.remove(at))
}

/// A request that was routed, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Routed {
    /// The request.
    pub arrival: Arrival,
    /// When it arrived, in picoseconds.
    pub at: u64,
    /// Where it went.
    pub replica: u32,
    /// Why.
    pub decision: Option<Decision>,
}

/// A run as it stood at one moment.
#[derive(Clone, Debug)]
pub struct Fold {
    pools: (usize, usize),
    /// The next event: chunk, and index in it.
    next: (usize, usize),
    at: u64,
    /// The replicas; the same pointer for as long as one did not change.
    pub replicas: Vec<Rc<ReplicaView>>,
    /// Every request that was routed, in order of arrival.
    pub routed: Vec<Rc<Routed>>,
    /// The latest few that were routed, the newest first.
    pub recent: VecDeque<RequestId>,
    /// Requests that were refused.
    pub rejected: u32,
    /// The figures so far.
    pub recorder: Recorder,
}

/// How many requests the router shows as just routed.
const RECENT: usize = 6;

impl Fold {
    /// A fleet at rest, before its run.
    pub fn new(replicas: usize, blocks: usize) -> Fold {
        Fold {
            pools: (replicas, blocks),
            next: (0, 0),
            at: 0,
            replicas: (0..replicas).map(|i| Rc::new(ReplicaView::new(i as u32, blocks))).collect(),
            routed: Vec::new(),
            recent: VecDeque::new(),
            rejected: 0,
            recorder: Recorder::new(replicas, blocks),
        }
    }

    /// Goes to a moment: everything up to it has happened, and nothing after it.
    pub fn seek(&mut self, log: &Log, at: u64) {
        if at < self.at {
            *self = Fold::new(self.pools.0, self.pools.1);
        }
        self.at = at;
        while let Some(chunk) = log.chunks.get(self.next.0) {
            match chunk.get(self.next.1) {
                Some(event) if event.at <= at => {
                    self.next.1 += 1;
                    self.take(event);
                }
                Some(_) => return,
                None => self.next = (self.next.0 + 1, 0),
            }
        }
    }

    /// A request's routing, once it has been routed.
    pub fn find(&self, request: RequestId) -> Option<&Rc<Routed>> {
        let at = self.routed.binary_search_by_key(&request, |r| r.arrival.request).ok()?;
        self.routed.get(at)
    }

    fn replica(&mut self, index: u32) -> &mut ReplicaView {
        Rc::make_mut(&mut self.replicas[index as usize])
    }

    fn take(&mut self, event: &Event) {
        self.recorder.observe(event);
        match &event.what {
            What::Routed { arrival, replica, decision } => {
                self.replica(*replica).waiting.push(Chip {
                    request: arrival.request,
                    tenant: arrival.tenant,
                    prompt: arrival.prompt,
                    budget: u32::try_from(arrival.max_tokens).unwrap_or(u32::MAX),
                    generated: 0,
                    cached: None,
                    stage: Stage::Waiting,
                });
                self.recent.push_front(arrival.request);
                self.recent.truncate(RECENT);
                self.routed.push(Rc::new(Routed {
                    arrival: *arrival,
                    at: event.at,
                    replica: *replica,
                    decision: decision.clone(),
                }));
            }
            What::Rejected { .. } => self.rejected += 1,
            What::StepStarted { start, ends, blocks } => {
                let replica = self.replica(start.replica);
                replica.started(start, *ends);
                replica.paint(blocks);
            }
            What::StepEnded { end, blocks } => {
                let replica = self.replica(end.replica);
                replica.ended(end);
                replica.paint(blocks);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::params::{BackendKind, Config};
    use crate::policy::PolicyKind;

    fn log(config: &Config, policy: PolicyKind, chunk: usize) -> (Log, Experiment) {
        let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..config.clone() });
        let mut events = Vec::new();
        experiment
            .simulation(policy, experiment.modelled_clock())
            .watch_blocks()
            .run(|event| events.push(event))
            .expect("it fits the clock");
        let mut log = Log::default();
        for part in events.chunks(chunk) {
            log.push(part.to_vec());
        }
        (log, experiment)
    }

    #[test]
    fn at_the_end_everything_is_done_and_the_figures_are_the_runs() {
        let config = Config::default();
        let (log, experiment) = log(&config, PolicyKind::PrefixAffinity, 7);
        let mut fold = Fold::new(4, 384);
        fold.seek(&log, log.end());
        let recorder = experiment
            .run(PolicyKind::PrefixAffinity, experiment.modelled_clock())
            .expect("it fits the clock");
        assert_eq!(experiment.summary(&fold.recorder), experiment.summary(&recorder));
        let done: usize = fold.replicas.iter().map(|r| r.done.len()).sum();
        assert_eq!((done, fold.routed.len(), fold.rejected), (24, 24, 0));
        assert!(fold.replicas.iter().all(|r| r.waiting.is_empty() && r.running.is_empty() && r.held == 0));
        assert_eq!(fold.find(7).map(|r| r.arrival.request), Some(7));
    }

    /// Loads that a policy saw are those that the picture shows, all through a run with preemptions.
    #[test]
    fn the_picture_is_what_the_router_saw() {
        let config = Config {
            blocks: crate::params::Blocks::Number(70),
            requests: 60,
            rate: 20.0,
            output_min: 100,
            output_max: 200,
            ..Config::default()
        };
        let (log, _) = log(&config, PolicyKind::LeastTokens, 64);
        let mut fold = Fold::new(4, 70);
        let events: Vec<Event> = log.iter().cloned().collect();
        let (mut preempted, mut compared) = (0, 0);
        for event in &events {
            if let What::Routed { decision: Some(decision), .. } = &event.what {
                let shown: Vec<u64> = fold.replicas.iter().map(|r| r.outstanding()).collect();
                assert_eq!(shown, decision.loads, "at {}", event.at);
                compared += 1;
            }
            if let What::StepStarted { start, .. } = &event.what {
                preempted += start.preempted.len();
            }
            fold.take(event);
            if let What::StepStarted { start, .. } = &event.what {
                assert_eq!(fold.replicas[start.replica as usize].held, start.held);
            }
        }
        assert!(preempted > 0 && compared == 60, "{preempted} preemptions");
    }

    #[test]
    fn going_back_is_starting_over_and_what_did_not_change_is_shared() {
        let (log, _) = log(&Config::default(), PolicyKind::RoundRobin, 50);
        let half = log.end() / 2;
        let (mut once, mut back) = (Fold::new(4, 384), Fold::new(4, 384));
        once.seek(&log, half);
        back.seek(&log, log.end());
        back.seek(&log, half);
        assert_eq!(once.replicas, back.replicas);
        let before = once.replicas.clone();
        once.seek(&log, half);
        assert!(before.iter().zip(&once.replicas).all(|(a, b)| Rc::ptr_eq(a, b)));
    }
}
