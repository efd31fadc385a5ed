//! What happens on one replica, and where that leaves it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::stream::Fold;
use super::varint::Reader;
use crate::engine::RequestId;
use crate::sim::{BlockChange, BlockState};

mod format;

/// Something that happened on a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaEntry {
    /// A request was sent to it.
    Queued {
        /// Which.
        request: RequestId,
    },
    /// A step that began admitted a request.
    Admitted {
        /// Which.
        request: RequestId,
        /// Tokens found in the prefix cache.
        cached: u32,
        /// Tokens computed in this step.
        computed: u32,
        /// Of those, tokens that had been computed before a preemption.
        recomputed: u32,
        /// Whether it is the request's first admission.
        first: bool,
    },
    /// A step that began computes the next chunk of a prompt.
    Continued {
        /// Whose.
        request: RequestId,
        /// Tokens computed in this step.
        computed: u32,
        /// Of those, tokens that had been computed before a preemption.
        recomputed: u32,
    },
    /// A step that began took a request's blocks; it is at the head of the queue again.
    Preempted {
        /// Whose.
        request: RequestId,
    },
    /// A step that began evicted cached blocks.
    Evicted {
        /// How many.
        blocks: u32,
    },
    /// A step ended that completed a request's prefill: a token is out.
    Prefilled {
        /// Whose.
        request: RequestId,
        /// Whether it is the request's first token.
        first: bool,
    },
    /// A step ended with a request's last token.
    Finished {
        /// Whose.
        request: RequestId,
    },
    /// A step began.
    StepBegan {
        /// How long it takes, in picoseconds.
        takes: u64,
    },
    /// A step ended: whatever decodes has one token more.
    StepEnded,
    /// A block is used otherwise than before.
    Block(BlockChange),
}

/// A request that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningRequest {
    /// Which.
    pub request: RequestId,
    /// When it was admitted; the latest time, if it has been preempted.
    pub admitted: u64,
    /// Tokens that were found in the prefix cache then.
    pub cached: u32,
    /// Tokens computed since then up to the end of its prefill, the step under way included.
    pub computed: u32,
    /// When its prefill was complete; `None`: it is not. Since then it decodes, a token a step.
    pub prefilled: Option<u64>,
    /// When its first token was out.
    pub first_token: Option<u64>,
    /// Tokens that are out; known where the log is detailed.
    pub generated: Option<u32>,
    /// Times it was preempted.
    pub preemptions: u32,
}

/// A request that waits again: what is left of its having run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptedRequest {
    /// Which.
    pub request: RequestId,
    /// When its first token was out.
    pub first_token: Option<u64>,
    /// Tokens that are out; known where the log is detailed.
    pub generated: Option<u32>,
    /// Times it was preempted.
    pub preemptions: u32,
}

/// What a replica has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests sent to it.
    pub assigned: u64,
    /// Requests admitted, each once.
    pub admitted: u64,
    /// Requests whose first token is out.
    pub first_tokens: u64,
    /// Requests finished.
    pub finished: u64,
    /// Times a running request lost its blocks.
    pub preemptions: u64,
    /// Cached blocks evicted.
    pub evictions: u64,
    /// Tokens found in the prefix cache at first admissions.
    pub cached_tokens: u64,
    /// The same at later ones, after a preemption.
    pub cached_again_tokens: u64,
    /// Prompt tokens computed, and tokens computed again after a preemption: all that is not decoded. As
    /// of the beginning of the step that computes them.
    pub computed_tokens: u64,
    /// Those of them that had been computed before a preemption.
    pub recomputed_tokens: u64,
}

/// What one block is used for, and the tenant whose request computed it.
pub type BlockNow = (BlockState, Option<u32>);

/// Where a replica stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaState {
    /// Requests that wait, the next to be admitted first.
    pub queue: VecDeque<RequestId>,
    /// Those of them that ran before, the latest preempted last.
    pub preempted: Vec<PreemptedRequest>,
    /// Requests that run, oldest first.
    pub running: Vec<RunningRequest>,
    /// What it has done so far.
    pub counts: Counts,
    /// When the step under way ends; known where the log is detailed.
    pub step_ends: Option<u64>,
    /// What each block is used for; empty where the log is not detailed.
    pub blocks: Vec<BlockNow>,
    /// The last request that was sent to it.
    last_queued: Option<RequestId>,
    detailed: bool,
}

impl ReplicaState {
    /// An empty replica; `blocks`: the size of its pool, where the log is detailed.
    pub(super) fn new(blocks: Option<usize>) -> ReplicaState {
        ReplicaState {
            queue: VecDeque::new(),
            preempted: Vec::new(),
            running: Vec::new(),
            counts: Counts::default(),
            step_ends: None,
            blocks: vec![(BlockState::Free, None); blocks.unwrap_or(0)],
            last_queued: None,
            detailed: blocks.is_some(),
        }
    }

    /// Whether a token would be the request's first.
    pub(super) fn owes_first_token(&self, request: RequestId) -> bool {
        self.running.iter().rev().find(|one| one.request == request).is_some_and(|r| r.first_token.is_none())
    }

    /// A request's place in the batch, counted from the newest; past the end if it is not there.
    fn place_in_batch(&self, request: RequestId) -> usize {
        self.running.iter().rev().take_while(|one| one.request != request).count()
    }

    /// The index in the batch of a place from the newest.
    fn index(&self, place: usize) -> Option<usize> {
        self.running.len().checked_sub(place.checked_add(1)?)
    }

    fn who(&self, place: usize) -> Option<RequestId> {
        Some(self.running[self.index(place)?].request)
    }

    /// What would be the number of the next request if none went elsewhere.
    fn next_queued(&self) -> u64 {
        self.last_queued.map_or(0, |last| u64::from(last) + 1)
    }

    fn admit(&mut self, at: u64, one: Admission) -> Option<()> {
        let Admission { request, cached, computed, first } = one;
        let place = self.queue.iter().position(|&queued| queued == request)?;
        self.queue.remove(place);
        let before = self.preempted.iter().rposition(|one| one.request == request);
        let before = before.map(|index| self.preempted.remove(index));
        self.running.push(RunningRequest {
            request,
            admitted: at,
            cached,
            computed,
            prefilled: None,
            first_token: before.and_then(|one| one.first_token),
            generated: before.map_or(self.detailed.then_some(0), |one| one.generated),
            preemptions: before.map_or(0, |one| one.preemptions),
        });
        self.counts.admitted += u64::from(first);
        let found = if first { &mut self.counts.cached_tokens } else { &mut self.counts.cached_again_tokens };
        *found += u64::from(cached);
        Some(())
    }
}

struct Admission {
    request: RequestId,
    cached: u32,
    computed: u32,
    first: bool,
}

impl Fold for ReplicaState {
    type Entry = ReplicaEntry;

    fn write(&self, entry: &ReplicaEntry, out: &mut Vec<u8>) {
        self.write_entry(entry, out);
    }

    fn read(&self, head: u8, from: &mut Reader<'_>) -> Option<ReplicaEntry> {
        self.read_entry(head, from)
    }

    fn apply(&mut self, at: u64, entry: &ReplicaEntry) -> Option<()> {
        match *entry {
            ReplicaEntry::Queued { request } => {
                self.queue.push_back(request);
                self.last_queued = Some(request);
                self.counts.assigned += 1;
            }
            ReplicaEntry::Admitted { request, cached, computed, recomputed, first } => {
                self.admit(at, Admission { request, cached, computed, first })?;
                self.counts.computed_tokens += u64::from(computed);
                self.counts.recomputed_tokens += u64::from(recomputed);
            }
            ReplicaEntry::Continued { request, computed, recomputed } => {
                let index = self.index(self.place_in_batch(request))?;
                self.running[index].computed = self.running[index].computed.checked_add(computed)?;
                self.counts.computed_tokens += u64::from(computed);
                self.counts.recomputed_tokens += u64::from(recomputed);
            }
            ReplicaEntry::Preempted { request } => {
                let one = self.running.remove(self.index(self.place_in_batch(request))?);
                let RunningRequest { first_token, generated, .. } = one;
                let preemptions = one.preemptions.checked_add(1)?;
                self.preempted.push(PreemptedRequest { request, first_token, generated, preemptions });
                self.queue.push_front(request);
                self.counts.preemptions += 1;
            }
            ReplicaEntry::Evicted { blocks } => self.counts.evictions += u64::from(blocks),
            ReplicaEntry::Prefilled { request, first } => {
                let index = self.index(self.place_in_batch(request))?;
                let one = &mut self.running[index];
                one.prefilled = Some(at);
                one.generated = one.generated.map(|tokens| tokens.saturating_add(1));
                if first {
                    one.first_token = Some(at);
                    self.counts.first_tokens += 1;
                }
            }
            ReplicaEntry::Finished { request } => {
                let index = self.running.iter().position(|one| one.request == request)?;
                self.running.remove(index);
                self.counts.finished += 1;
            }
            ReplicaEntry::StepBegan { takes } => self.step_ends = Some(at.checked_add(takes)?),
            ReplicaEntry::StepEnded => {
                self.step_ends = None;
                for one in self.running.iter_mut().filter(|one| one.prefilled.is_some()) {
                    one.generated = one.generated.map(|tokens| tokens.saturating_add(1));
                }
            }
            ReplicaEntry::Block(BlockChange { block, state, tenant }) => {
                *self.blocks.get_mut(block as usize)? = (state, tenant);
            }
        }
        Some(())
    }

    fn size(&self) -> usize {
        size_of::<ReplicaState>()
            + size_of_val(&self.running[..])
            + size_of_val(&self.preempted[..])
            + size_of_val(&self.blocks[..])
            + self.queue.len() * size_of::<RequestId>()
    }
}
