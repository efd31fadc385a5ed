//! Replicas behind a router, with the interface of one engine.

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Placement, Rejection, Replica, Request, StepEnd, StepStart};
use crate::policy::{Decision, Policy, ReplicaLoad};

/// Who owns a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Devices {
    /// One processor steps every replica in turn, as in the chapter's experiment on one CPU.
    #[default]
    Shared,
    /// Each replica has its own: an idle one is idle.
    Separate,
}

/// A fleet: replicas, a policy, and how many requests each replica was sent.
pub struct Fleet {
    replicas: Vec<Replica>,
    policy: Box<dyn Policy>,
    devices: Devices,
    assignments: Vec<u64>,
    /// What the policy is shown, kept so that a decision does not allocate it.
    loads: Vec<ReplicaLoad>,
    /// On a shared device: the replica that steps now, or stepped last.
    turn: usize,
}

impl Fleet {
    /// A fleet of these replicas, all with the same limits.
    pub fn new(replicas: Vec<Replica>, policy: Box<dyn Policy>, devices: Devices) -> Fleet {
        assert!(!replicas.is_empty(), "a fleet has at least one replica");
        let turn = replicas.len() - 1;
        let loads = vec![ReplicaLoad::default(); replicas.len()];
        Fleet { assignments: vec![0; replicas.len()], replicas, policy, devices, loads, turn }
    }

    /// Requests sent to each replica.
    pub fn assignments(&self) -> &[u64] {
        &self.assignments
    }

    /// What no replica could ever serve takes no turn and counts in no assignment.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Rejection> {
        self.replicas[0].limits().check(request.prompt.len(), request.max_tokens)
    }

    /// Chooses a replica on the loads of this moment.
    pub(crate) fn decide(&mut self, request: &Request) -> Decision {
        if self.policy.reads_loads() {
            for (load, replica) in self.loads.iter_mut().zip(&self.replicas) {
                *load = replica.load();
            }
        }
        if self.policy.reads_matches() {
            for (load, replica) in self.loads.iter_mut().zip(&self.replicas) {
                load.matched_blocks = replica.matched_blocks(&request.prompt) as u32;
            }
        }
        self.policy.select(request.prompt.items(), &self.loads)
    }

    /// Sends a request where it was decided.
    pub(crate) fn place(&mut self, request: Request, decision: &Decision) -> Result<(), Rejection> {
        self.replicas[decision.replica as usize].add_request(request)?;
        self.assignments[decision.replica as usize] += 1;
        Ok(())
    }

    /// Whether the policy looks at replicas at all.
    pub(crate) fn reads_loads(&self) -> bool {
        self.policy.reads_loads() || self.policy.reads_matches()
    }

    /// One of its replicas.
    pub(crate) fn replica_mut(&mut self, index: usize) -> &mut Replica {
        &mut self.replicas[index]
    }

    /// On a shared device: the next replica that has work, after the last one stepped.
    fn next(&self) -> Option<usize> {
        let n = self.replicas.len();
        (1..=n).map(|k| (self.turn + k) % n).find(|&i| self.replicas[i].has_work())
    }
}

impl Engine for Fleet {
    fn add_request(&mut self, request: Request) -> Result<Placement, Rejection> {
        self.check(&request)?;
        let decision = self.decide(&request);
        self.place(request, &decision)?;
        Ok(Placement { replica: decision.replica, decision: Some(decision) })
    }

    fn has_work(&self) -> bool {
        self.replicas.iter().any(Engine::has_work)
    }

    fn devices(&self) -> usize {
        match self.devices {
            Devices::Shared => 1,
            Devices::Separate => self.replicas.len(),
        }
    }

    fn device_has_work(&self, device: usize) -> bool {
        match self.devices {
            Devices::Shared => self.has_work(),
            Devices::Separate => self.replicas[device].has_work(),
        }
    }

    fn begin_step(&mut self, device: usize) -> StepStart {
        if self.devices == Devices::Shared {
            self.turn = self.next().expect("a step begins only where there is work");
            return self.replicas[self.turn].begin_step(0);
        }
        self.replicas[device].begin_step(0)
    }

    fn end_step(&mut self, device: usize) -> StepEnd {
        let replica = if self.devices == Devices::Shared { self.turn } else { device };
        self.replicas[replica].end_step(0)
    }

    fn replicas(&self) -> &[Replica] {
        &self.replicas
    }
}
