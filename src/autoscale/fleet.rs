//! A fleet whose replicas come and go, behind one router that chooses among those that serve.

use super::bill::Bills;
use super::life::{Change, End, Node, Phase, StartUp, Victim};
use super::scaler::Counts;
use crate::engine::{Engine, Limits, Rejection, Replica, Request, RequestId};
use crate::policy::{Decision, Policy, ReplicaLoad};
use crate::router::Signal;
use crate::trace::RequestSpec;
use crate::units::{Span, Time};

/// How replicas start and end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lifecycle {
    /// How long each phase of a start takes.
    pub start: StartUp,
    /// How many replicas stand ready in the pool.
    pub pool: u32,
    /// How long one of those takes to serve.
    pub wake: Span,
    /// How long one that is removed may work on what it has.
    pub grace: Span,
    /// Whom to remove.
    pub victim: Victim,
}

/// Makes an engine.
pub(super) type Make<'e> = Box<dyn Fn(u32) -> Replica + 'e>;

pub(super) struct Fleet<'e> {
    /// Those that are not gone, by id.
    pub nodes: Vec<Node>,
    next: u32,
    make: Make<'e>,
    life: Lifecycle,
    limits: Limits,
    policy: Box<dyn Policy>,
    signal: Signal,
    refreshed: Option<Time>,
    /// Those that serve, by id, as the policy was last told.
    candidates: Vec<u32>,
    loads: Vec<ReplicaLoad>,
    pub changes: Vec<Change>,
    pub bills: Bills,
    /// Time from order to end, of those that are gone.
    pub paid: Span,
    /// The part of that in which they served.
    pub served: Span,
    /// When each that serves began to.
    since: Vec<(u32, Time)>,
}

/// Where a request went.
#[derive(Clone, Debug)]
pub struct Routed {
    /// The replica's id.
    pub replica: u32,
    /// The policy's decision: its indices are into those that served, by id.
    pub decision: Decision,
}

impl<'e> Fleet<'e> {
    /// So many replicas that serve from the beginning, and a full pool.
    pub fn new(
        replicas: u32,
        limits: Limits,
        make: Make<'e>,
        life: Lifecycle,
        policy: Box<dyn Policy>,
        signal: Signal,
    ) -> Fleet<'e> {
        let mut fleet = Fleet {
            nodes: Vec::new(),
            next: 0,
            make,
            life,
            limits,
            policy,
            signal,
            refreshed: None,
            candidates: Vec::new(),
            loads: Vec::new(),
            changes: Vec::new(),
            bills: Bills::default(),
            paid: Span::ZERO,
            served: Span::ZERO,
            since: Vec::new(),
        };
        for index in 0..replicas + life.pool {
            let node = fleet.node(Time::ZERO);
            let phase = if index < replicas { Phase::Serving } else { Phase::Warm };
            let node = Node { phase, until: None, pooled: phase == Phase::Warm, ..node };
            fleet.add(node, Time::ZERO);
        }
        fleet
    }

    fn node(&mut self, now: Time) -> Node {
        let id = self.next;
        self.next += 1;
        Node::new(id, now, (self.make)(id))
    }

    fn add(&mut self, node: Node, now: Time) {
        self.changed(node.id, node.phase, None, now);
        self.nodes.push(node);
    }

    fn changed(&mut self, replica: u32, to: Phase, end: Option<End>, now: Time) {
        self.changes.push(Change { at: now.0, replica, to, end });
        match to {
            Phase::Serving => self.since.push((replica, now)),
            Phase::Draining | Phase::Gone => {
                if let Some(at) = self.since.iter().position(|(id, _)| *id == replica) {
                    let (_, since) = self.since.remove(at);
                    self.served += now.since(since);
                }
            }
            _ => {}
        }
    }

    /// The place of a node.
    pub fn at(&self, id: u32) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    /// What there is.
    pub fn counts(&self, held: usize) -> Counts {
        let count = |is: fn(&Node) -> bool| self.nodes.iter().filter(|node| is(node)).count() as u32;
        Counts {
            serving: count(|n| n.phase == Phase::Serving && !n.surge),
            starting: count(|n| n.phase.starts() && !n.pooled && !n.surge),
            draining: count(|n| n.phase == Phase::Draining),
            held: held as u32,
        }
    }

    /// Whether anything waits or runs.
    pub fn has_work(&self) -> bool {
        self.nodes.iter().any(|node| node.busy.is_some() || node.replica.has_work())
    }

    /// Those that serve, by place.
    pub fn serving(&self) -> Vec<usize> {
        let serves = |(_, node): &(usize, &Node)| node.phase == Phase::Serving;
        self.nodes.iter().enumerate().filter(serves).map(|(at, _)| at).collect()
    }

    /// When the next phase, or time to drain, is over.
    pub fn next_change(&self) -> Option<Time> {
        self.nodes.iter().filter_map(|node| node.until).min()
    }

    /// Orders a replica. From the pool, if there is one that is ready or nearly.
    pub fn start(&mut self, now: Time, surge: bool) -> u32 {
        let pooled = self.nodes.iter().position(|n| n.pooled && n.phase == Phase::Warm);
        if let Some(at) = pooled {
            let wake = self.life.wake;
            let node = &mut self.nodes[at];
            (node.pooled, node.surge, node.phase, node.until) =
                (false, surge, Phase::Waking, now.after(wake));
            let id = node.id;
            self.changed(id, Phase::Waking, None, now);
            self.advance(at, now);
            self.refill(now);
            return id;
        }
        // The one that is nearest, of those that the pool waits for: the first ordered.
        if let Some(at) = self.nodes.iter().position(|n| n.pooled && n.phase.starts()) {
            (self.nodes[at].pooled, self.nodes[at].surge) = (false, surge);
            let id = self.nodes[at].id;
            self.refill(now);
            return id;
        }
        self.order(now, false, surge)
    }

    fn order(&mut self, now: Time, pooled: bool, surge: bool) -> u32 {
        let mut node = Node { pooled, surge, ..self.node(now) };
        node.start(now, &self.life.start);
        let id = node.id;
        self.add(node, now);
        id
    }

    fn refill(&mut self, now: Time) {
        let pooled = self.nodes.iter().filter(|n| n.pooled).count() as u32;
        for _ in pooled..self.life.pool {
            self.order(now, true, false);
        }
    }

    /// Has so many replicas, of those that serve and those that start, from now on. Of those that start the
    /// youngest are cancelled first, then victims drain.
    pub fn scale(&mut self, desired: u32, now: Time) {
        let live = self.counts(0).live();
        for _ in live..desired {
            self.start(now, false);
        }
        for _ in desired..live {
            let starting = self.nodes.iter().rposition(|n| n.phase.starts() && !n.pooled && !n.surge);
            if let Some(at) = starting {
                self.remove(at, End::Cancelled, now);
                continue;
            }
            let serving = self.nodes.iter().filter(|n| n.phase == Phase::Serving && !n.surge);
            if let Some(id) = self.life.victim.choose(serving) {
                self.drain(id, End::Drained, self.life.grace, now);
            }
        }
    }

    /// Sends a replica nothing more; it has so long for what it has.
    pub fn drain(&mut self, id: u32, end: End, grace: Span, now: Time) {
        let Some(at) = self.at(id) else { return };
        let node = &mut self.nodes[at];
        (node.phase, node.until, node.end) = (Phase::Draining, now.after(grace), Some(end));
        self.changed(id, Phase::Draining, Some(end), now);
        if self.nodes[at].is_drained() {
            self.remove(at, end, now);
        }
    }

    /// Takes a replica out: what it had, with the tokens that were computed of each, those that ran first.
    pub fn remove(&mut self, at: usize, end: End, now: Time) -> Vec<(RequestId, u32)> {
        let node = self.nodes.remove(at);
        let left = node.replica.requests().collect();
        self.changed(node.id, Phase::Gone, Some(end), now);
        self.paid += now.since(node.born);
        if node.phase.works() {
            self.bills.gone(node.id, now, end, node.cached_tokens(), node.replica);
        }
        left
    }

    /// Moves a replica on in its start; whether it did.
    pub fn advance(&mut self, at: usize, now: Time) -> bool {
        if !self.nodes[at].advance(now, &self.life.start) {
            return false;
        }
        let (id, phase) = (self.nodes[at].id, self.nodes[at].phase);
        self.changed(id, phase, None, now);
        true
    }

    /// How long one that is removed may work on what it has.
    pub fn grace(&self) -> Span {
        self.life.grace
    }

    /// What no replica could ever serve.
    pub fn check(&self, spec: &RequestSpec) -> Result<(), Rejection> {
        self.limits.check(spec.prompt.len(), spec.max_tokens)
    }

    /// Shows the router what stands now, if a refresh is due until `now` that has not been made.
    pub fn refresh(&mut self, now: Time) {
        let latest = self.signal.latest(now);
        if self.policy.reads_loads() && self.refreshed < latest {
            self.refreshed = latest;
            self.look();
        }
    }

    fn look(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.shown = node.replica.load());
    }

    /// Chooses a replica among those that serve; `None` where none does.
    pub fn decide(&mut self, request: &Request) -> Option<Routed> {
        let serving = self.serving();
        if serving.is_empty() {
            return None;
        }
        let same = serving.len() == self.candidates.len()
            && serving.iter().zip(&self.candidates).all(|(&at, &id)| self.nodes[at].id == id);
        if !same {
            self.candidates = serving.iter().map(|&at| self.nodes[at].id).collect();
            self.policy.candidates(&self.candidates);
        }
        if self.signal.period == Span::ZERO && self.policy.reads_loads() {
            self.look();
        }
        self.loads.clear();
        for &at in &serving {
            let node = &self.nodes[at];
            let matched =
                self.policy.reads_matches().then(|| node.replica.matched_blocks(&request.prompt) as u32);
            self.loads.push(ReplicaLoad { matched_blocks: matched.unwrap_or(0), ..node.shown });
        }
        let mut decision = self.policy.select(request.prompt.items(), &self.loads);
        decision.view.refreshed = self.refreshed.map(|time| time.0);
        decision.view.own = self.refreshed.is_some() && self.signal.own;
        let replica = self.candidates[decision.replica as usize];
        Some(Routed { replica, decision })
    }

    /// Sends a request where it was decided.
    pub fn place(&mut self, request: Request, to: u32, now: Time) {
        let at = self.at(to).expect("it was chosen among those that are there");
        self.bills.routed(now, &request.prompt, &self.nodes[at].replica);
        let node = &mut self.nodes[at];
        if self.signal.own && self.signal.period > Span::ZERO {
            node.shown.add(request.prompt.len() as u64 + request.max_tokens);
        }
        node.replica.add_request(request).expect("it was checked against the limits of all replicas");
    }

    /// Time from order to end, and time served, of all replicas, the run ending now.
    pub fn spent(&self, now: Time) -> (Span, Span) {
        let paid = self.nodes.iter().fold(self.paid, |sum, node| sum + now.since(node.born));
        let served = self.since.iter().fold(self.served, |sum, (_, since)| sum + now.since(*since));
        (paid, served)
    }
}
