//! What happened in a run, event by event: what the page draws, and what every figure is counted
//! from.

use serde::{Deserialize, Serialize};

use crate::engine::{BlockUse, Rejection, Replica, RequestId, StepEnd, StepStart};
use crate::policy::Decision;
use crate::units::Time;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in picoseconds since the start.
    pub at: u64,
    /// What.
    pub what: What,
}

impl Event {
    /// When.
    pub fn time(&self) -> Time {
        Time(self.at)
    }
}

/// A request, as far as a report needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// Its id.
    pub request: RequestId,
    /// Its tenant.
    pub tenant: Option<u32>,
    /// Prompt tokens.
    pub prompt: u32,
    /// Its budget.
    pub max_tokens: u64,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A request arrived and was sent to a replica.
    Routed {
        /// The request.
        arrival: Arrival,
        /// Where to.
        replica: u32,
        /// Why; `None` where there was no router.
        decision: Option<Decision>,
    },
    /// A request arrived that can never be served.
    Rejected {
        /// The request.
        arrival: Arrival,
        /// Why not.
        rejection: Rejection,
    },
    /// A replica began a step.
    StepStarted {
        /// What it decided and computes.
        start: StepStart,
        /// When it will end, in picoseconds since the start.
        ends: u64,
        /// Blocks that are used otherwise than before, where they are watched.
        blocks: Vec<BlockChange>,
    },
    /// A replica ended a step.
    StepEnded {
        /// The tokens it brought.
        end: StepEnd,
        /// Blocks that are used otherwise than before, where they are watched.
        blocks: Vec<BlockChange>,
    },
}

/// A block that is used otherwise than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockChange {
    /// Which block of the replica's pool.
    pub block: u32,
    /// What for now.
    pub state: BlockState,
    /// The tenant whose request computed it, where it has one.
    pub tenant: Option<u32>,
}

/// What a block is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockState {
    /// Nothing.
    #[default]
    Free,
    /// Kept for a prefix, held by nobody.
    Cached,
    /// Held by a running request.
    Held,
}

/// Who is told what happens as it happens, from event to event: all arrivals in order of time and all
/// that happens on one replica in order of time, but those of different replicas in any order. Of steps in
/// which nothing but decoding happens only the first that begins and the last that ends need be told.
pub trait Observer {
    /// A request arrived and was sent to a replica, which has come as far as that moment.
    fn routed(&mut self, _at: u64, _arrival: &Arrival, _replica: u32, _decision: Option<&Decision>) {}

    /// A request arrived that can never be served.
    fn rejected(&mut self, _at: u64, _arrival: &Arrival, _rejection: Rejection) {}

    /// A replica began a step.
    fn started(&mut self, _at: u64, _start: &StepStart) {}

    /// A replica ended a step, which completed the prefill of some requests, whose next token is out,
    /// and finished some, both in the order of the batch.
    fn ended(&mut self, _at: u64, _replica: u32, _joined: &[RequestId], _finished: &[RequestId]) {}
}

/// Nobody.
impl Observer for () {}

/// Notices which blocks changed between two looks.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockWatch {
    seen: Vec<(BlockState, Option<u32>)>,
}

impl BlockWatch {
    pub fn changes(&mut self, replica: &Replica) -> Vec<BlockChange> {
        self.seen.resize(replica.pool().len(), (BlockState::Free, None));
        let mut changes = Vec::new();
        for ((block, now), seen) in replica.block_uses().enumerate().zip(&mut self.seen) {
            let now = match now {
                BlockUse::Free => (BlockState::Free, None),
                BlockUse::Cached(tenant) => (BlockState::Cached, tenant),
                BlockUse::Held(tenant) => (BlockState::Held, tenant),
            };
            if *seen != now {
                *seen = now;
                changes.push(BlockChange { block: block as u32, state: now.0, tenant: now.1 });
            }
        }
        changes
    }
}
