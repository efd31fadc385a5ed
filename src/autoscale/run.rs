//! A run with replicas that come and go: the same engine, the same prices and the same order at one instant as
//! in [`sim`](crate::sim), with a life and a scaler around them.
//!
//! Order at one instant: ends of steps by replica; faults, planned replacements and phases of lives, by replica, and
//! with them whatever was held for a replica to serve, or must be sent elsewhere; refreshes of the router's
//! view and scrapes; the scaler's decision; arrivals in trace order; starts of steps by replica.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;

use super::bill::Bill;
use super::faults::Fault;
use super::fleet::{Fleet, Routed};
use super::life::{Change, End, Phase};
use super::scaler::{Bounds, Limit, ScaleDecision, ScaleReason, Scaler};
use super::signals::{FleetSample, ReplicaSample, Window};
use crate::cost::roofline::Counter;
use crate::cost::{AnyPrice, Price};
use crate::engine::sampling::Sampling;
use crate::engine::{Engine, RequestId, StepStart};
use crate::sim::{Arrival, Recorder, Run as Gaps, TooLong, arrival, request};
use crate::trace::Trace;
use crate::units::{PICOS_PER_SECOND, Span, Time};

/// How long after its last arrival a run is given up, whatever is still unfinished: six hours.
const PATIENCE: Span = Span(6 * 3600 * PICOS_PER_SECOND);

/// What a run needs besides its fleet and its scaler.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What arrives.
    pub trace: Arc<Trace>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// What a step costs.
    pub price: AnyPrice,
    /// What a step achieves, where that is known.
    pub counter: Option<Counter>,
    /// How few and how many replicas there may be.
    pub bounds: Bounds,
    /// The time between two scrapes.
    pub scrape: Span,
    /// How old a scrape is when a scaler sees it, at least.
    pub delay: Span,
    /// The run goes on until then, even if nothing is left to serve.
    pub until: Time,
    /// What goes wrong, in order of time.
    pub faults: Vec<Fault>,
    /// How long a machine that will be taken away may go on.
    pub notice: Span,
    /// When every replica is to be replaced, one after the other.
    pub replace: Option<Time>,
    /// Whether each is replaced before it drains, and not after.
    pub start_before_drain: bool,
}

/// Who is told what happens as it happens.
pub trait Watcher {
    /// A request was sent to a replica: `again`, because the one that had it is gone, or at last, from the gateway.
    fn routed(&mut self, _at: Time, _request: RequestId, _routed: &Routed, _again: bool) {}
    /// A request waits at the gateway: no replica serves.
    fn held(&mut self, _at: Time, _request: RequestId) {}
    /// A replica began a step.
    fn started(&mut self, _at: Time, _start: &StepStart) {}
    /// A replica ended a step, which finished these.
    fn ended(&mut self, _at: Time, _replica: u32, _finished: &[RequestId]) {}
    /// Replicas' lives changed.
    fn changed(&mut self, _changes: &[Change]) {}
    /// The scaler decided.
    fn decided(&mut self, _decision: &ScaleDecision) {}
    /// A scrape.
    fn sampled(&mut self, _sample: &FleetSample) {}
}

/// Nobody.
impl Watcher for () {}

/// A request that had to go elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reroute {
    /// When, in picoseconds.
    pub at: u64,
    /// Which.
    pub request: RequestId,
    /// The replica that had it.
    pub from: u32,
    /// Why it is gone.
    pub end: End,
    /// The replica that has it now; null: held at the gateway, since none serves.
    pub to: Option<u32>,
    /// Tokens that were computed of it and are lost.
    pub lost_tokens: u32,
}

/// What a run left behind.
#[derive(Clone, Debug)]
pub struct Run {
    /// One record a request.
    pub recorder: Recorder,
    /// Every scrape.
    pub samples: Vec<FleetSample>,
    /// Every decision.
    pub decisions: Vec<ScaleDecision>,
    /// Every change in a replica's life.
    pub changes: Vec<Change>,
    /// Every request that had to go elsewhere.
    pub reroutes: Vec<Reroute>,
    /// What the end of each replica that had served cost.
    pub bills: Vec<Bill>,
    /// Time from order to end of all replicas together.
    pub paid: Span,
    /// The part of it in which they served.
    pub served: Span,
    /// When the run ended.
    pub ended: Time,
    /// Requests that were not finished when it was given up.
    pub unfinished: usize,
}

/// A run that can be stopped between any two instants and gone on with.
pub struct Scaled<'e> {
    plan: Plan,
    fleet: Fleet<'e>,
    scaler: Box<dyn Scaler>,
    recorder: Recorder,
    window: Window,
    now: Time,
    next_arrival: usize,
    next_fault: usize,
    next_scrape: Time,
    next_decision: Time,
    /// At the gateway, in order.
    held: VecDeque<RequestId>,
    /// Samples that no scaler has seen yet: so many of the latest.
    unseen: usize,
    /// The latest instant at which anything was waiting or running.
    active: Time,
    /// Replicas that are to be replaced, and the one that is to take the place of the first.
    replace: VecDeque<u32>,
    replacement: Option<u32>,
    samples: Vec<FleetSample>,
    decisions: Vec<ScaleDecision>,
    reroutes: Vec<Reroute>,
    told: usize,
}

impl<'e> Scaled<'e> {
    pub(super) fn new(
        plan: Plan,
        fleet: Fleet<'e>,
        scaler: Box<dyn Scaler>,
        recorder: Recorder,
    ) -> Scaled<'e> {
        let first = |span: Span| Time::ZERO.after(span).unwrap_or(Time(u64::MAX));
        Scaled {
            next_scrape: first(plan.scrape),
            next_decision: first(scaler.interval()),
            plan,
            fleet,
            scaler,
            recorder,
            window: Window::default(),
            now: Time::ZERO,
            next_arrival: 0,
            next_fault: 0,
            held: VecDeque::new(),
            unseen: 0,
            active: Time::ZERO,
            replace: VecDeque::new(),
            replacement: None,
            samples: Vec::new(),
            decisions: Vec::new(),
            reroutes: Vec::new(),
            told: 0,
        }
    }

    /// How far it has come.
    pub fn now(&self) -> Time {
        self.now
    }

    fn last_arrival(&self) -> Time {
        self.plan.trace.requests.last().map_or(Time::ZERO, |r| r.arrival)
    }

    fn has_work(&self) -> bool {
        !self.held.is_empty() || self.fleet.has_work()
    }

    /// The next instant at which anything happens; `None` once nothing is left to happen.
    fn next_instant(&self) -> Option<Time> {
        let arrival = self.plan.trace.requests.get(self.next_arrival).map(|r| r.arrival);
        let over = arrival.is_none() && (!self.has_work() || self.now >= self.given_up());
        if over && self.now >= self.plan.until {
            return None;
        }
        let step = self.fleet.nodes.iter().filter_map(|node| node.busy).min();
        let fault = self.plan.faults.get(self.next_fault).map(|fault| fault.at);
        let end = Some(self.plan.until).filter(|until| *until > self.now);
        let others = [arrival, step, self.fleet.next_change(), fault, self.plan.replace, end];
        let own = [self.next_scrape, self.next_decision];
        others.into_iter().flatten().chain(own).min()
    }

    fn given_up(&self) -> Time {
        self.last_arrival().after(PATIENCE).unwrap_or(Time(u64::MAX))
    }

    /// Runs to the end.
    pub fn run(mut self, watcher: &mut impl Watcher) -> Result<Run, TooLong> {
        while self.advance(watcher)? {}
        Ok(self.finish())
    }

    /// Goes to the next instant at which anything happens, and does what happens there. `false` once
    /// nothing is left to happen.
    pub fn advance(&mut self, watcher: &mut impl Watcher) -> Result<bool, TooLong> {
        let Some(now) = self.next_instant() else { return Ok(false) };
        if self.has_work() {
            self.active = now;
        }
        // What was due since the last instant shows how that one left things.
        if let Some(before) = now.0.checked_sub(1) {
            self.fleet.refresh(Time(before));
        }
        self.now = now;
        self.end_steps(watcher);
        self.faults(watcher);
        self.replacements();
        self.lives(watcher);
        self.fleet.refresh(now);
        if now == self.next_scrape {
            self.scrape(watcher);
        }
        if now == self.next_decision {
            self.decide(watcher);
        }
        while self.plan.trace.requests.get(self.next_arrival).is_some_and(|r| r.arrival == now) {
            self.arrive(watcher);
        }
        self.start_steps(watcher)?;
        if self.told < self.fleet.changes.len() {
            watcher.changed(&self.fleet.changes[self.told..]);
            self.told = self.fleet.changes.len();
        }
        Ok(true)
    }

    fn end_steps(&mut self, watcher: &mut impl Watcher) {
        let at = self.now.0;
        for node in &mut self.fleet.nodes {
            if node.busy != Some(self.now) {
                continue;
            }
            node.busy = None;
            node.meter.ended();
            let replica = &mut node.replica;
            if let Some(decode) = replica.started().work.decode {
                let each = decode.tokens as u32;
                self.recorder.gaps(Gaps { first: node.step.0, slope: 0, steps: 1, each });
            }
            replica.end(None);
            for &request in replica.joined() {
                match self.recorder.emitted(at, request, 1) {
                    Some(gap) => self.recorder.gap(gap),
                    None => {
                        let ttft = self.recorder.record(request).and_then(|record| record.ttft());
                        ttft.into_iter().for_each(|ttft| self.window.first_token(ttft));
                    }
                }
            }
            for &request in replica.finished() {
                self.recorder.completed(at, request);
                self.window.finished(self.recorder.record(request).and_then(|record| record.itl()));
            }
            watcher.ended(self.now, node.id, replica.finished());
        }
    }

    fn faults(&mut self, watcher: &mut impl Watcher) {
        while let Some(&fault) = self.plan.faults.get(self.next_fault).filter(|fault| fault.at <= self.now) {
            self.next_fault += 1;
            let serving = self.fleet.serving();
            let Some(at) = fault.hits(serving.len()).map(|hit| serving[hit]) else { continue };
            if fault.end == End::Preempted && self.plan.notice > Span::ZERO {
                let id = self.fleet.nodes[at].id;
                self.fleet.drain(id, End::Preempted, self.plan.notice, self.now);
            } else {
                self.take_out(at, fault.end, watcher);
            }
        }
    }

    /// A replica goes, and what it has goes elsewhere.
    fn take_out(&mut self, at: usize, end: End, watcher: &mut impl Watcher) {
        let from = self.fleet.nodes[at].id;
        for (id, lost_tokens) in self.fleet.remove(at, end, self.now) {
            self.recorder.lost(id, lost_tokens);
            let to = self.send(id, true, watcher);
            self.reroutes.push(Reroute { at: self.now.0, request: id, from, end, to, lost_tokens });
        }
    }

    /// Planned replacements, one at a time: the next begins when the last one's substitute serves.
    fn replacements(&mut self) {
        if self.plan.replace.is_some_and(|at| at <= self.now) {
            self.plan.replace = None;
            let own = self.fleet.nodes.iter().filter(|n| n.phase == Phase::Serving).map(|n| n.id);
            self.replace = own.collect();
            self.next_replacement();
        }
    }

    fn next_replacement(&mut self) {
        self.replacement = None;
        while let Some(&old) = self.replace.front() {
            let serves = self.fleet.at(old).is_some_and(|at| self.fleet.nodes[at].phase == Phase::Serving);
            if serves {
                self.replacement = Some(self.fleet.start(self.now, self.plan.start_before_drain));
                if !self.plan.start_before_drain {
                    self.fleet.drain(old, End::Drained, self.fleet.grace(), self.now);
                }
                return;
            }
            self.replace.pop_front();
        }
    }

    /// A substitute serves, or is gone.
    fn replaced(&mut self) {
        let Some(id) = self.replacement else { return };
        let at = self.fleet.at(id);
        let serves = at.is_some_and(|at| self.fleet.nodes[at].phase == Phase::Serving);
        if at.is_some() && !serves {
            return;
        }
        if let (Some(at), Some(old)) = (at, self.replace.pop_front())
            && self.plan.start_before_drain
        {
            self.fleet.nodes[at].surge = false;
            self.fleet.drain(old, End::Drained, self.fleet.grace(), self.now);
        }
        self.next_replacement();
    }

    fn lives(&mut self, watcher: &mut impl Watcher) {
        let mut served = false;
        let mut at = 0;
        while at < self.fleet.nodes.len() {
            let node = &self.fleet.nodes[at];
            if node.is_drained() {
                let end = node.end.unwrap_or(End::Drained);
                self.fleet.remove(at, end, self.now);
                continue;
            }
            if node.phase == Phase::Draining && node.until.is_some_and(|until| until <= self.now) {
                let end = node.end.filter(|end| *end == End::Preempted).unwrap_or(End::Overdue);
                self.take_out(at, end, watcher);
                continue;
            }
            if self.fleet.advance(at, self.now) {
                served |= self.fleet.nodes[at].phase == Phase::Serving;
            }
            at += 1;
        }
        self.replaced();
        if served {
            self.release(watcher);
        }
    }

    /// Sends on whatever was held.
    fn release(&mut self, watcher: &mut impl Watcher) {
        for id in core::mem::take(&mut self.held) {
            self.send(id, true, watcher);
        }
    }

    /// Sends a request to a replica, or holds it; says to which.
    fn send(&mut self, id: RequestId, again: bool, watcher: &mut impl Watcher) -> Option<u32> {
        let spec = &self.plan.trace.requests[id as usize];
        let request = request(id, spec, &self.plan.sampling);
        let Some(routed) = self.fleet.decide(&request) else {
            self.held.push_back(id);
            watcher.held(self.now, id);
            return None;
        };
        if again {
            self.recorder.resent(id, routed.replica);
        }
        self.fleet.place(request, routed.replica, self.now);
        watcher.routed(self.now, id, &routed, again);
        Some(routed.replica)
    }

    fn arrive(&mut self, watcher: &mut impl Watcher) {
        let id = self.next_arrival as RequestId;
        self.next_arrival += 1;
        let spec = &self.plan.trace.requests[id as usize];
        let (arrival, at): (Arrival, u64) = (arrival(id, spec), self.now.0);
        self.window.arrived();
        if let Err(rejection) = self.fleet.check(spec) {
            self.recorder.rejected(at, &arrival, rejection);
            return;
        }
        match self.send(id, false, watcher) {
            Some(replica) => {
                self.recorder.grow(replica as usize + 1);
                self.recorder.routed(at, &arrival, replica);
            }
            None => self.recorder.held(at, &arrival),
        }
    }

    fn scrape(&mut self, watcher: &mut impl Watcher) {
        let now = self.now;
        self.next_scrape = now.after(self.plan.scrape).unwrap_or(Time(u64::MAX));
        let window = now.since(self.window.from());
        let (mut serving, mut aside) = (Vec::new(), Vec::new());
        for node in self.fleet.nodes.iter_mut().filter(|node| node.phase.works()) {
            let reading = node.meter.read(now, window);
            let mut sample = ReplicaSample::new(node.id, &node.replica, &reading);
            if let Some(counter) = &self.plan.counter {
                let seconds = window.seconds();
                sample.compute = Some(counter.compute(&reading.achieved, seconds));
                sample.memory = Some(counter.memory(&reading.achieved, seconds));
            }
            if node.phase == Phase::Serving { &mut serving } else { &mut aside }.push(sample);
        }
        let counts = self.fleet.counts(self.held.len());
        let mut sample = self.window.close(now, counts.held, serving, &aside);
        (sample.starting, sample.draining) = (counts.starting, counts.draining);
        watcher.sampled(&sample);
        self.samples.push(sample);
        self.unseen += 1;
    }

    fn decide(&mut self, watcher: &mut impl Watcher) {
        let now = self.now;
        self.next_decision = now.after(self.scaler.interval()).unwrap_or(Time(u64::MAX));
        let first = self.samples.len() - self.unseen;
        for sample in &self.samples[first..] {
            if now.since(sample.time()) < self.plan.delay {
                break;
            }
            self.scaler.observe(sample);
            self.unseen -= 1;
        }
        let counts = self.fleet.counts(self.held.len());
        let mut decision = self.scaler.decide(now, counts, self.plan.bounds);
        if decision.desired == 0 {
            let idle = if self.has_work() { Span::ZERO } else { now.since(self.active) };
            let may = self.scaler.idle_before_zero().is_some_and(|least| idle >= least && idle > Span::ZERO);
            if counts.live() == 0 {
                if counts.held > 0 {
                    (decision.desired, decision.reason) = (1, ScaleReason::Activation);
                    decision.formula = format!("{} held", counts.held);
                }
            } else if !may {
                (decision.desired, decision.limit) = (1, Some(Limit::NotIdle));
            }
        }
        if decision.desired != counts.live() {
            self.fleet.scale(decision.desired, now);
            if !self.held.is_empty() {
                // One without a start serves at once.
                self.release(watcher);
            }
        }
        watcher.decided(&decision);
        self.decisions.push(decision);
    }

    fn start_steps(&mut self, watcher: &mut impl Watcher) -> Result<(), TooLong> {
        let now = self.now;
        for node in &mut self.fleet.nodes {
            if node.busy.is_some() || !node.phase.works() || !node.replica.has_work() {
                continue;
            }
            node.replica.begin();
            let start = node.replica.started();
            self.recorder.started(now.0, start);
            watcher.started(now, start);
            for &request in node.replica.rested() {
                self.recorder.rested(now.0, request);
            }
            node.step = self.plan.price.of(&start.work);
            let ends = now.after(node.step).ok_or(TooLong)?;
            let achieved = self.plan.counter.as_ref().map(|counter| counter.of(&start.work));
            node.meter.began(now, ends, start, achieved.unwrap_or_default());
            node.busy = Some(ends);
        }
        Ok(())
    }

    /// What it leaves behind.
    pub fn finish(self) -> Run {
        let (paid, served) = self.fleet.spent(self.now);
        let inside: usize = self.fleet.nodes.iter().map(|node| node.replica.requests().count()).sum();
        Run {
            unfinished: self.held.len() + inside,
            recorder: self.recorder,
            samples: self.samples,
            decisions: self.decisions,
            changes: self.fleet.changes,
            reroutes: self.reroutes,
            bills: self.fleet.bills.into_bills(),
            paid,
            served,
            ended: self.now,
        }
    }
}
