//! A replica: continuous batching over paged, prefix-shared KV blocks.
//!
//! [`Replica`] schedules; a [`Backend`] computes a step (TinyGPT) or only says what its tokens
//! would be (modelled). The [`Engine`] trait is what the event loop drives: one replica or a fleet.

use serde::{Deserialize, Serialize};

mod backend;
mod modelled;
mod replica;
mod request;
pub mod sampling;
mod schedule;
mod sequence;
mod tinygpt;

pub use backend::{Backend, Running};
pub use modelled::Modelled;
pub use replica::{BlockUse, Replica, ReplicaStats};
pub use request::{Limits, Rejection, Request};
pub use tinygpt::{SharedModel, TinyGptBackend};

use crate::policy::Decision;
use crate::trace::Token;
use crate::units::Time;

/// A request's index in its trace.
pub type RequestId = u32;

/// Where a request went.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The replica's index.
    pub replica: u32,
    /// Why; `None` for a bare replica, where there was no choice.
    pub decision: Option<Decision>,
}

/// What a step has to compute, in the terms that its price is stated in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// One entry for each request whose prompt is computed in this step, or a part of it.
    pub prefills: Vec<Piece>,
    /// The decode of everything whose prompt was computed before; `None` where nothing was.
    pub decode: Option<Piece>,
}

/// One forward pass: how many tokens it computes and how many keys they attend to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Tokens computed.
    pub tokens: u64,
    /// (query, key) pairs: each token attends to itself and to all before it.
    pub pairs: u64,
}

impl Piece {
    /// Tokens `start..end` of one sequence.
    pub fn range(start: usize, end: usize) -> Piece {
        let (start, end) = (start as u64, end as u64);
        Piece { tokens: end - start, pairs: (end * (end + 1) - start * (start + 1)) / 2 }
    }
}

/// A request admitted at the start of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// Which.
    pub request: RequestId,
    /// Tokens found in the prefix cache.
    pub cached: u32,
    /// Tokens computed in this step: all the rest, or the first chunk of it.
    pub computed: u32,
    /// Of those, tokens that had been computed before a preemption.
    pub recomputed: u32,
    /// Whether this is the request's first admission.
    pub first: bool,
}

/// The next chunk of a prompt that an earlier step has begun to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continued {
    /// Whose.
    pub request: RequestId,
    /// Tokens computed in this step.
    pub computed: u32,
    /// Of those, tokens that had been computed before a preemption.
    pub recomputed: u32,
}

/// What the start of a step decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepStart {
    /// The replica that steps.
    pub replica: u32,
    /// Whose prefill goes on, where prompts are computed in chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued: Option<Continued>,
    /// Admitted, in order.
    pub admitted: Vec<Admitted>,
    /// Preempted, newest first.
    pub preempted: Vec<RequestId>,
    /// Cached blocks evicted to make room.
    pub evicted: u32,
    /// Blocks held by running requests from now on.
    pub held: u32,
    /// What there is to compute.
    pub work: Work,
}

/// A token that a step brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emitted {
    /// Whose.
    pub request: RequestId,
    /// Which.
    pub token: Token,
    /// Whether the request is finished by it.
    pub last: bool,
}

/// What the end of a step brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepEnd {
    /// The replica that stepped.
    pub replica: u32,
    /// Its tokens: one for each request decoded and each whose prefill is complete.
    pub emitted: Vec<Emitted>,
}

/// What the event loop drives: one replica, or a fleet behind a router.
///
/// A step has a beginning, when everything is decided and computed, and an end, when its tokens
/// are out. What a router sees in between is the state at that moment.
pub trait Engine {
    /// Takes a request, or says why it can never be served.
    fn add_request(&mut self, request: Request) -> Result<Placement, Rejection>;

    /// Whether anything waits or runs.
    fn has_work(&self) -> bool;

    /// How many processors step at once: one for a replica or a shared device, else one a replica.
    fn devices(&self) -> usize {
        1
    }

    /// Whether a device that is idle could begin a step.
    fn device_has_work(&self, device: usize) -> bool;

    /// Begins a step on an idle device that has work.
    fn begin_step(&mut self, device: usize) -> StepStart;

    /// Ends the step that runs on a device.
    fn end_step(&mut self, device: usize) -> StepEnd;

    /// Shows whoever routes the loads as they stand, if a refresh of its signals is due until `now`.
    fn refresh(&mut self, _now: Time) {}

    /// One step, from beginning to end, on the first device that has work; `None` where there is
    /// nothing to do.
    fn step(&mut self) -> Option<StepEnd> {
        let device = (0..self.devices()).find(|&d| self.device_has_work(d))?;
        self.begin_step(device);
        Some(self.end_step(device))
    }

    /// The replicas inside.
    fn replicas(&self) -> &[Replica];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_the_sum_of_positions() {
        for (start, end) in [(0, 1), (0, 16), (16, 433), (432, 433)] {
            let slow: u64 = (start..end).map(|i| i as u64 + 1).sum();
            assert_eq!(Piece::range(start, end), Piece { tokens: (end - start) as u64, pairs: slow });
        }
    }
}
