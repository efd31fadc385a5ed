//! The event loop: arrivals, steps and a clock make a run; [`Recorder`] counts what it was worth.
//!
//! Order at one instant: ends of steps by device, refreshes of load signals, arrivals in trace order,
//! starts of steps by device. A running step is not interrupted; what arrives meanwhile is routed on the state of
//! that moment.

mod clock;
mod express;
mod gaps;
mod log;
mod recorder;
mod summary;

pub use clock::{Clock, Measured, Modelled};
pub use express::{run_express, run_express_observed};
pub(crate) use gaps::Run;
pub use log::{Arrival, BlockChange, BlockState, Event, Observer, What};
pub use recorder::{NOWHERE, Outcome, Record, Recorder};
pub use summary::{Objectives, Quantiles, RejectedRequest, Summary, TenantSummary, quantile};

use log::BlockWatch;

use crate::engine::sampling::Sampling;
use crate::engine::{Engine, Request, RequestId};
use crate::trace::{RequestSpec, Trace};
use crate::units::Time;

/// A run that goes on for longer than the clock can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl core::fmt::Display for TooLong {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(
            "the run lasts longer than the simulated clock's 213 days; lower the price of a step, or let the requests arrive sooner",
        )
    }
}

impl std::error::Error for TooLong {}

/// A run that can be stopped between any two instants and gone on with.
pub struct Simulation<'t, E> {
    engine: E,
    trace: &'t Trace,
    sampling: Sampling,
    clock: Box<dyn Clock + 't>,
    next_arrival: usize,
    /// When the step of each device ends.
    busy: Vec<Option<Time>>,
    watches: Option<Vec<BlockWatch>>,
}

impl<'t, E: Engine> Simulation<'t, E> {
    /// A run of `trace` on `engine`, before its first instant.
    pub fn new(
        engine: E,
        trace: &'t Trace,
        sampling: Sampling,
        clock: Box<dyn Clock + 't>,
    ) -> Simulation<'t, E> {
        let busy = vec![None; engine.devices()];
        Simulation { engine, trace, sampling, clock, next_arrival: 0, busy, watches: None }
    }

    /// Reports in every event which blocks changed their use.
    pub fn watch_blocks(mut self) -> Simulation<'t, E> {
        self.watches = Some(vec![BlockWatch::default(); self.engine.replicas().len()]);
        self
    }

    /// The engine, as it stands.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Requests that have arrived so far.
    pub fn arrived(&self) -> usize {
        self.next_arrival
    }

    /// The next instant at which anything happens.
    pub fn next_instant(&self) -> Option<Time> {
        let arrival = self.trace.requests.get(self.next_arrival).map(|r| r.arrival);
        let end = self.busy.iter().flatten().min().copied();
        [arrival, end].into_iter().flatten().min()
    }

    /// Changes the engine between two instants. It may have more replicas, and more devices, afterwards.
    pub fn alter(&mut self, change: impl FnOnce(&mut E)) {
        change(&mut self.engine);
        self.busy.resize(self.engine.devices(), None);
        if let Some(watches) = &mut self.watches {
            watches.resize(self.engine.replicas().len(), BlockWatch::default());
        }
    }

    /// Runs to the end.
    pub fn run(&mut self, mut observe: impl FnMut(Event)) -> Result<(), TooLong> {
        while self.advance(&mut observe)? {}
        Ok(())
    }

    /// Goes to the next instant at which anything happens, and does what happens there. `false`
    /// once nothing is left to happen.
    pub fn advance(&mut self, mut observe: impl FnMut(Event)) -> Result<bool, TooLong> {
        let Some(now) = self.next_instant() else { return Ok(false) };
        // What was due since the last instant shows how that one left things.
        if let Some(before) = now.0.checked_sub(1) {
            self.engine.refresh(Time(before));
        }
        for device in 0..self.busy.len() {
            if self.busy[device] == Some(now) {
                self.busy[device] = None;
                let end = self.engine.end_step(device);
                let blocks = self.changes(end.replica);
                observe(Event { at: now.0, what: What::StepEnded { end, blocks } });
            }
        }
        self.engine.refresh(now);
        while self.trace.requests.get(self.next_arrival).is_some_and(|r| r.arrival == now) {
            observe(Event { at: now.0, what: self.arrive() });
        }
        for device in 0..self.busy.len() {
            if self.busy[device].is_none() && self.engine.device_has_work(device) {
                self.clock.start();
                let start = self.engine.begin_step(device);
                let ends = now.after(self.clock.took(&start.work)).ok_or(TooLong)?;
                self.busy[device] = Some(ends);
                let blocks = self.changes(start.replica);
                observe(Event { at: now.0, what: What::StepStarted { start, ends: ends.0, blocks } });
            }
        }
        Ok(true)
    }

    fn arrive(&mut self) -> What {
        let spec = &self.trace.requests[self.next_arrival];
        let id = self.next_arrival as RequestId;
        self.next_arrival += 1;
        let arrival = arrival(id, spec);
        match self.engine.add_request(request(id, spec, &self.sampling)) {
            Ok(placed) => What::Routed { arrival, replica: placed.replica, decision: placed.decision },
            Err(rejection) => What::Rejected { arrival, rejection },
        }
    }

    fn changes(&mut self, replica: u32) -> Vec<BlockChange> {
        match &mut self.watches {
            Some(watches) => watches[replica as usize].changes(&self.engine.replicas()[replica as usize]),
            None => Vec::new(),
        }
    }
}

/// A request of the trace as a report names it.
pub(crate) fn arrival(id: RequestId, spec: &RequestSpec) -> Arrival {
    Arrival {
        request: id,
        tenant: spec.tenant,
        prompt: spec.prompt.len() as u32,
        max_tokens: spec.max_tokens,
    }
}

/// The same as an engine takes it.
pub(crate) fn request(id: RequestId, spec: &RequestSpec, sampling: &Sampling) -> Request {
    Request {
        id,
        tenant: spec.tenant,
        prompt: spec.prompt.clone(),
        max_tokens: spec.max_tokens,
        output: spec.output.clone(),
        sampling: sampling.clone(),
    }
}
