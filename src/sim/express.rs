//! The event loop from event to event: the same run as [`Simulation`](super::Simulation)'s, without a
//! token being counted that nobody asks for.
//!
//! Replicas with devices of their own meet only where a router looks at them: at an arrival, or at a
//! refresh of what it is shown. So each is taken from one such moment that concerns it to the next by
//! itself, and from one step in which anything but decoding happens to the next at once: in between a
//! step's price lies on a line ([`Line`]), and what a router reads (waiting, running, outstanding
//! tokens) follows from how many steps have ended.

use super::gaps::Run;
use super::{Observer, Recorder, TooLong, arrival, request};
use crate::cost::{Line, Price};
use crate::engine::sampling::Sampling;
use crate::engine::{Engine, Replica, RequestId, Work};
use crate::fleet::Fleet;
use crate::trace::Trace;
use crate::units::{Span, Time};

/// Runs a trace from beginning to end and records it. `fleet` is at rest, with separate devices and
/// without tensors.
///
/// # Panics
///
/// If replicas share a device: then every step of one moves all others, and there is nothing to skip.
pub fn run_express(
    fleet: &mut Fleet,
    trace: &Trace,
    sampling: &Sampling,
    price: &impl Price,
    recorder: &mut Recorder,
) -> Result<(), TooLong> {
    run_express_observed(fleet, trace, sampling, price, recorder, &mut ())
}

/// The same, telling somebody what happens.
pub fn run_express_observed(
    fleet: &mut Fleet,
    trace: &Trace,
    sampling: &Sampling,
    price: &impl Price,
    recorder: &mut Recorder,
    observer: &mut impl Observer,
) -> Result<(), TooLong> {
    let replicas = fleet.replicas().len();
    assert_eq!(fleet.devices(), replicas, "each replica has a device of its own");
    let mut lanes = vec![Lane::default(); replicas];
    for (id, spec) in trace.requests.iter().enumerate() {
        let (id, now) = (id as RequestId, spec.arrival);
        let request = request(id, spec, sampling);
        let arrival = arrival(id, spec);
        if let Err(rejection) = fleet.check(&request) {
            recorder.rejected(now.0, &arrival, rejection);
            observer.rejected(now.0, &arrival, rejection);
            continue;
        }
        if let Some(seen) = fleet.looks_at(now) {
            for (index, lane) in lanes.iter_mut().enumerate() {
                lane.go(fleet, index, seen, price, recorder, observer)?;
            }
            fleet.refresh(seen);
        }
        if fleet.is_up_to_date() {
            for (index, lane) in lanes.iter_mut().enumerate() {
                lane.go(fleet, index, now, price, recorder, observer)?;
            }
        }
        fleet.arrives(now);
        let decision = fleet.decide(&request);
        let index = decision.replica as usize;
        let lane = &mut lanes[index];
        lane.go(fleet, index, now, price, recorder, observer)?;
        lane.interrupt(fleet.replica_mut(index), now);
        fleet.place(request, &decision).expect("it was checked against the limits of all replicas");
        recorder.routed(now.0, &arrival, decision.replica);
        observer.routed(now.0, &arrival, decision.replica, Some(&decision));
    }
    for (index, lane) in lanes.iter_mut().enumerate() {
        lane.go(fleet, index, Time(u64::MAX), price, recorder, observer)?;
    }
    // Whoever is ready at the clock's last instant has no time left.
    if fleet.has_work() { Err(TooLong) } else { Ok(()) }
}

/// Where one replica stands in time.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// The step under way, and what is known to follow.
    stretch: Option<Stretch>,
    /// Without one: when the next step may begin.
    ready: Time,
}

/// Steps in a row in which nothing but decoding happens, or a single step.
#[derive(Clone, Debug)]
struct Stretch {
    line: Line,
    /// Steps that have ended.
    passed: u64,
    /// Steps in all.
    steps: u64,
    /// When the step under way ends.
    end: Time,
    /// Requests that decode.
    batch: u32,
}

impl Lane {
    /// Does all that happens to a replica before arrivals at `now`: every step that ends until then,
    /// and every step that begins before.
    fn go(
        &mut self,
        fleet: &mut Fleet,
        index: usize,
        now: Time,
        price: &impl Price,
        recorder: &mut Recorder,
        observer: &mut impl Observer,
    ) -> Result<(), TooLong> {
        loop {
            let replica = fleet.replica_mut(index);
            let Some(stretch) = &mut self.stretch else {
                if self.ready >= now || !replica.has_work() {
                    return Ok(());
                }
                self.stretch = Some(Stretch::begin(replica, self.ready, price, recorder, observer)?);
                continue;
            };
            if stretch.end > now {
                return Ok(());
            }
            // Between two steps that meet at `now`, somebody may arrive: the later one has not begun.
            if stretch.end < now && stretch.passed + 1 < stretch.steps {
                stretch.pass(replica, now)?;
                continue;
            }
            stretch.finish(replica, recorder);
            observer.ended(stretch.end.0, index as u32, replica.joined(), replica.finished());
            fleet.settle(index);
            self.ready = stretch.end;
            self.stretch = None;
        }
    }

    /// A request is about to join the replica's queue, which has been taken as far as `now`. Where it
    /// may be admitted when the step under way ends, what was to follow does not.
    fn interrupt(&mut self, replica: &Replica, now: Time) {
        match &mut self.stretch {
            Some(stretch) if replica.may_admit() => stretch.steps = stretch.passed + 1,
            Some(_) => {}
            None if replica.has_work() => debug_assert_eq!(self.ready, now),
            None => self.ready = now,
        }
    }
}

impl Stretch {
    fn begin(
        replica: &mut Replica,
        at: Time,
        price: &impl Price,
        recorder: &mut Recorder,
        observer: &mut impl Observer,
    ) -> Result<Stretch, TooLong> {
        replica.begin();
        let start = replica.started();
        recorder.started(at.0, start);
        observer.started(at.0, start);
        for &request in replica.rested() {
            recorder.rested(at.0, request);
        }
        let line = match &start.work {
            Work { prefills, decode: Some(decode) } if prefills.is_empty() => price.decode_line(*decode),
            work => Line::of_one(price.of(work)),
        };
        let steps = replica.quiet_steps().min(line.steps).min(u64::from(u32::MAX));
        let end = at.after(Span(line.first)).ok_or(TooLong)?;
        let batch = start.work.decode.map_or(0, |piece| piece.tokens as u32);
        Ok(Stretch { line, passed: 0, steps, end, batch })
    }

    /// Ends as many steps as end before `now`, but not the last, and begins as many.
    fn pass(&mut self, replica: &mut Replica, now: Time) -> Result<(), TooLong> {
        let rest = self.line.from(self.passed).ok_or(TooLong)?;
        // From the beginning of the step under way.
        let begun = Span(self.end.0 - rest.first);
        let most = self.steps - self.passed - 1;
        let elapsed = now.since(Time(begun.0)) - Span::GRAIN;
        let steps = rest.steps_within(elapsed).min(most);
        let sum = rest.sum(steps + 1).ok_or(TooLong)?;
        self.end = Time(begun.0).after(sum).ok_or(TooLong)?;
        self.passed += steps;
        replica.pass(steps);
        Ok(())
    }

    /// Ends the step under way, and the stretch.
    fn finish(&mut self, replica: &mut Replica, recorder: &mut Recorder) {
        let at = self.end.0;
        if self.batch > 0 {
            let Line { first, slope, .. } = self.line;
            let steps = (self.passed + 1) as u32;
            recorder.gaps(Run { first, slope, steps, each: self.batch });
        }
        replica.end(None);
        for &request in replica.joined() {
            if let Some(gap) = recorder.emitted(at, request, 1) {
                recorder.gap(gap);
            }
        }
        for &request in replica.finished() {
            recorder.completed(at, request);
        }
    }
}
