//! The replay: what a policy's run looks like at one moment, folded from its events up to then.
//!
//! [`Fold`] keeps its place, so that going forward costs only the events passed; going back starts
//! over, or with a [`Rewind`] from a copy that was left on the way. What did not change between two
//! moments is shared by pointer, so that it need not be drawn again.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::engine::{Rejection, RequestId, StepEnd, StepStart};
use crate::policy::Decision;
use crate::sim::{Arrival, BlockChange, BlockState, Event, Recorder, What};

mod log;
mod rewind;

pub use log::{Chunks, Log};
pub use rewind::Rewind;

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
        // Copied only where what was drawn holds on to it.
        let blocks = Rc::make_mut(&mut self.blocks);
        for change in changes {
            let block = &mut blocks[change.block as usize];
            let (before, after) = (block.0, change.state);
            *block = (change.state, change.tenant);
            for (state, count) in [(BlockState::Held, &mut self.held), (BlockState::Cached, &mut self.cached)]
            {
                *count = *count + u32::from(after == state) - u32::from(before == state);
            }
        }
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

/// A request that can never be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The request.
    pub arrival: Arrival,
    /// When it arrived, in picoseconds.
    pub at: u64,
    /// Why it cannot be.
    pub why: Rejection,
}

/// A run as it stood at one moment.
#[derive(Clone, Debug)]
pub struct Fold {
    pools: (usize, usize),
    /// How many events it has taken.
    next: usize,
    /// When the latest of them happened.
    at: u64,
    /// The replicas; the same pointer for as long as one did not change.
    pub replicas: Vec<Rc<ReplicaView>>,
    /// Every request that was routed, in order of arrival.
    pub routed: Vec<Rc<Routed>>,
    /// The latest few that were routed, the newest first.
    pub recent: VecDeque<RequestId>,
    /// Requests that were refused, in order of arrival.
    pub refused: Vec<Refused>,
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
            next: 0,
            at: 0,
            replicas: (0..replicas).map(|i| Rc::new(ReplicaView::new(i as u32, blocks))).collect(),
            routed: Vec::new(),
            recent: VecDeque::new(),
            refused: Vec::new(),
            recorder: Recorder::new(replicas, blocks),
        }
    }

    /// Goes to a moment: everything up to it has happened, and nothing after it.
    pub fn seek(&mut self, log: &Log, at: u64) {
        if at < self.at {
            *self = Fold::new(self.pools.0, self.pools.1);
        }
        self.forward(log, at, usize::MAX);
    }

    /// Takes the events up to a moment, but at most so many.
    fn forward(&mut self, log: &Log, at: u64, most: usize) {
        for event in log.from(self.next).take(most).take_while(|event| event.at <= at) {
            self.take(event);
        }
    }

    /// A request's routing, once it has been routed.
    pub fn find(&self, request: RequestId) -> Option<&Rc<Routed>> {
        let at = self.routed.binary_search_by_key(&request, |r| r.arrival.request).ok()?;
        self.routed.get(at)
    }

    /// A request's refusal, once it has been refused.
    pub fn refusal(&self, request: RequestId) -> Option<&Refused> {
        let at = self.refused.binary_search_by_key(&request, |r| r.arrival.request).ok()?;
        self.refused.get(at)
    }

    fn replica(&mut self, index: u32) -> &mut ReplicaView {
        Rc::make_mut(&mut self.replicas[index as usize])
    }

    fn take(&mut self, event: &Event) {
        (self.next, self.at) = (self.next + 1, event.at);
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
            What::Rejected { arrival, rejection } => {
                self.refused.push(Refused { arrival: *arrival, at: event.at, why: *rejection });
            }
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
pub(crate) mod tests;
