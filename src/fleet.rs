//! Replicas behind one router or several, with the interface of one engine.

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Placement, Rejection, Replica, Request, StepEnd, StepStart};
use crate::policy::{Decision, Policy, PolicySettings};
use crate::router::{Routers, Signal};
use crate::units::Time;

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

/// A fleet: replicas, who decides for them, and how many requests each replica was sent.
pub struct Fleet {
    replicas: Vec<Replica>,
    routers: Routers,
    devices: Devices,
    assignments: Vec<u64>,
    /// On a shared device: the replica that steps now, or stepped last.
    turn: Option<usize>,
    /// The latest moment that it was told of.
    now: Time,
}

impl Fleet {
    /// A fleet of these replicas, all with the same limits, behind one router.
    pub fn new(replicas: Vec<Replica>, policy: Box<dyn Policy>, devices: Devices) -> Fleet {
        Fleet::behind(vec![policy], replicas, devices)
    }

    /// The same behind a router for each of these policies, all of one kind.
    pub fn behind(policies: Vec<Box<dyn Policy>>, replicas: Vec<Replica>, devices: Devices) -> Fleet {
        assert!(!replicas.is_empty(), "a fleet has at least one replica");
        let n = replicas.len();
        Fleet {
            routers: Routers::new(policies, n),
            assignments: vec![0; n],
            replicas,
            devices,
            turn: None,
            now: Time::ZERO,
        }
    }

    /// The same with loads that its routers see late.
    pub fn with_signal(self, signal: Signal) -> Fleet {
        Fleet { routers: self.routers.with_signal(signal), ..self }
    }

    /// Gives its routers other policies, one each, all of one kind: these begin without a memory, the
    /// routers go on with what they know of the replicas. One that decides on late loads and has never
    /// seen any looks now.
    pub fn change_policy(&mut self, policies: Vec<Box<dyn Policy>>, now: Time) {
        self.routers.replace(policies, now, &self.replicas);
    }

    /// Gives its routers' policies other settings; these go on with what they remember.
    pub fn retune(&mut self, settings: &PolicySettings) {
        self.routers.retune(settings);
    }

    /// Has its routers see loads otherwise late from now on.
    pub fn change_signal(&mut self, signal: Signal, now: Time) {
        self.routers.set_signal(signal, now, &self.replicas);
    }

    /// Sends requests to its first `active` replicas from now on. Where there are fewer, `replica` makes
    /// the others, which join cold and empty. Those beyond are drained: they are sent nothing more and
    /// finish what they have, what waits there included; if they are scaled to again, they serve again,
    /// with what is left in their caches.
    pub fn scale(&mut self, active: usize, replica: impl FnMut(u32) -> Replica) {
        self.replicas.extend((self.replicas.len() as u32..active as u32).map(replica));
        self.assignments.resize(self.replicas.len(), 0);
        self.routers.scale(active, self.replicas.len());
    }

    /// Requests sent to each replica.
    pub fn assignments(&self) -> &[u64] {
        &self.assignments
    }

    /// What no replica could ever serve takes no turn and counts in no assignment.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Rejection> {
        self.replicas[0].limits().check(request.prompt.len(), request.max_tokens)
    }

    /// Chooses a replica on the loads that are known at this moment.
    pub(crate) fn decide(&mut self, request: &Request) -> Decision {
        self.routers.decide(request, &self.replicas, self.now)
    }

    /// Sends a request where it was decided.
    pub(crate) fn place(&mut self, request: Request, decision: &Decision) -> Result<(), Rejection> {
        self.routers.sent(&request, decision);
        self.replicas[decision.replica as usize].add_request(request)?;
        self.assignments[decision.replica as usize] += 1;
        Ok(())
    }

    /// Up to when every replica must have gone before a decision at `now`; `None`: no further than
    /// before the last one.
    pub(crate) fn looks_at(&self, now: Time) -> Option<Time> {
        self.routers.looks_at(now)
    }

    /// It is `now`.
    pub(crate) fn arrives(&mut self, now: Time) {
        self.now = now;
    }

    /// Whether a decision needs every replica as it is at that moment.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.routers.are_up_to_date()
    }

    /// A replica's step has ended: routers are told what it finished.
    pub(crate) fn settle(&mut self, index: usize) {
        let replica = &self.replicas[index];
        self.routers.settle(index, replica.joined(), replica.finished());
    }

    /// One of its replicas.
    pub(crate) fn replica_mut(&mut self, index: usize) -> &mut Replica {
        &mut self.replicas[index]
    }

    /// On a shared device: the next replica that has work, after the last one stepped.
    fn next(&self) -> Option<usize> {
        let (n, first) = (self.replicas.len(), self.turn.map_or(0, |turn| turn + 1));
        (0..n).map(|k| (first + k) % n).find(|&i| self.replicas[i].has_work())
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
            let next = self.next().expect("a step begins only where there is work");
            self.turn = Some(next);
            return self.replicas[next].begin_step(0);
        }
        self.replicas[device].begin_step(0)
    }

    fn end_step(&mut self, device: usize) -> StepEnd {
        let replica = match self.devices {
            Devices::Shared => self.turn.expect("only a step that began can end"),
            Devices::Separate => device,
        };
        let end = self.replicas[replica].end_step(0);
        self.settle(replica);
        end
    }

    fn refresh(&mut self, now: Time) {
        self.now = now;
        self.routers.refresh(now, &self.replicas);
    }

    fn replicas(&self) -> &[Replica] {
        &self.replicas
    }
}
