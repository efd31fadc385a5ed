//! What a monitoring system sees of a fleet: samples taken at every scrape, and nothing in between.
//!
//! A [`Meter`] accumulates what a replica does; at a scrape it is read and starts anew. What a scaler is
//! shown of a sample is as old as the scrape, and older by a delay (collection, aggregation, an adapter).
//!
//! Definitions, each over the time since the scrape before (the *window*) or at the scrape:
//!
//! - *compute*: operations ÷ what the peak could compute in the window; *memory*: bytes ÷ what the memory
//!   could move ([`Achieved`]); *busy*: the part of the window in which a step ran, which is what
//!   `nvidia-smi` shows as utilisation.
//! - *waiting*: requests that are not admitted, those held at the gateway included; its *slope* is the
//!   change since the scrape before, a second.
//! - *kv*: blocks held by running requests ÷ pool; *kv demand*: with the blocks that waiting requests will
//!   need, so it can be above 1.
//! - *occupancy*: running requests ÷ batch limit.
//! - *preemptions* and *recomputed* tokens in the window.
//! - *TTFT* of the requests whose first token came in the window, *ITL* of those that finished in it.

use serde::{Deserialize, Serialize};

use crate::cost::roofline::Achieved;
use crate::engine::{Engine, Replica, StepStart};
use crate::sim::quantile;
use crate::units::{Span, Time};

/// One replica at a scrape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSample {
    /// Its id, which no other replica of the run ever has.
    pub replica: u32,
    /// Requests not admitted.
    pub waiting: u32,
    /// Requests admitted and unfinished.
    pub running: u32,
    /// Running requests ÷ batch limit.
    pub occupancy: f64,
    /// Blocks held ÷ pool.
    pub kv: f64,
    /// Blocks held, and those that waiting requests will need, ÷ pool.
    pub kv_demand: f64,
    /// Prompt tokens of what waits.
    pub queued_tokens: u64,
    /// Part of the window in which a step ran.
    pub busy: f64,
    /// Operations ÷ peak; null where what a step computes is not known.
    pub compute: Option<f64>,
    /// Bytes ÷ memory bandwidth; likewise.
    pub memory: Option<f64>,
    /// Requests preempted in the window.
    pub preemptions: u32,
    /// Tokens computed again in the window, after a preemption.
    pub recomputed: u64,
}

/// The fleet at a scrape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetSample {
    /// When, in picoseconds.
    pub at: u64,
    /// Seconds since the scrape before.
    pub window: f64,
    /// Replicas that serve.
    pub serving: u32,
    /// Replicas that are on their way to serving.
    pub starting: u32,
    /// Replicas that finish what they have.
    pub draining: u32,
    /// Requests held at the gateway, since no replica was ready.
    pub held: u32,
    /// Requests not admitted anywhere, held ones included.
    pub waiting: u32,
    /// Requests admitted and unfinished.
    pub running: u32,
    /// Change of `waiting`, requests a second.
    pub slope: f64,
    /// Requests that arrived in the window.
    pub arrived: u32,
    /// Requests that finished in it.
    pub finished: u32,
    /// Means over the replicas that serve; null where none does.
    pub mean: Option<Means>,
    /// Requests preempted in the window, on all replicas.
    pub preemptions: u32,
    /// Tokens computed again in the window, on all replicas.
    pub recomputed: u64,
    /// Median and 95th percentile of TTFT in the window, in seconds.
    pub ttft: [Option<f64>; 2],
    /// The same of ITL.
    pub itl: [Option<f64>; 2],
    /// Each replica that serves, by id.
    pub replicas: Vec<ReplicaSample>,
}

/// Means over the replicas that serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// See [`ReplicaSample::occupancy`].
    pub occupancy: f64,
    /// See [`ReplicaSample::kv`].
    pub kv: f64,
    /// See [`ReplicaSample::busy`].
    pub busy: f64,
    /// See [`ReplicaSample::compute`].
    pub compute: Option<f64>,
    /// See [`ReplicaSample::memory`].
    pub memory: Option<f64>,
}

impl FleetSample {
    /// When.
    pub fn time(&self) -> Time {
        Time(self.at)
    }

    /// Arrivals a second in the window.
    pub fn rate(&self) -> f64 {
        per_second(self.arrived, self.window)
    }

    /// Finished requests a second in the window.
    pub fn throughput(&self) -> f64 {
        per_second(self.finished, self.window)
    }

    /// Requests in the fleet: waiting, held and running.
    pub fn in_flight(&self) -> u32 {
        self.waiting + self.running
    }
}

fn per_second(count: u32, seconds: f64) -> f64 {
    if seconds > 0.0 { f64::from(count) / seconds } else { 0.0 }
}

/// The step that a replica runs.
#[derive(Clone, Copy, Debug)]
struct Step {
    began: Time,
    ends: Time,
    achieved: Achieved,
    /// The part that earlier scrapes have counted.
    counted: f64,
}

/// Accumulates what one replica does between two scrapes.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    achieved: Achieved,
    busy: Span,
    preemptions: u32,
    recomputed: u64,
    step: Option<Step>,
}

impl Meter {
    /// A step began that will end at `ends` and achieve so much.
    pub fn began(&mut self, began: Time, ends: Time, start: &StepStart, achieved: Achieved) {
        self.preemptions += start.preempted.len() as u32;
        self.recomputed += start.admitted.iter().map(|one| u64::from(one.recomputed)).sum::<u64>();
        self.recomputed += start.continued.map_or(0, |one| u64::from(one.recomputed));
        self.step = Some(Step { began, ends, achieved, counted: 0.0 });
    }

    /// The step ended.
    pub fn ended(&mut self) {
        if let Some(step) = self.step.take() {
            self.count(&step, 1.0);
        }
    }

    /// Counts the step up to a part of it, of which earlier scrapes have counted less.
    fn count(&mut self, step: &Step, part: f64) {
        let more = part - step.counted;
        self.achieved.operations += more * step.achieved.operations;
        self.achieved.bytes += more * step.achieved.bytes;
        let length = step.ends.since(step.began).0 as f64;
        self.busy += Span((more * length) as u64);
    }

    /// Reads what happened since the last reading, `window` ago, and starts anew.
    pub fn read(&mut self, now: Time, window: Span) -> Reading {
        if let Some(mut step) = self.step.take() {
            let length = step.ends.since(step.began).0 as f64;
            let part = now.since(step.began).0 as f64 / length;
            self.count(&step, part);
            step.counted = part;
            self.step = Some(step);
        }
        let reading = Reading {
            achieved: core::mem::take(&mut self.achieved),
            busy: self.busy.0 as f64 / window.0.max(1) as f64,
            preemptions: core::mem::take(&mut self.preemptions),
            recomputed: core::mem::take(&mut self.recomputed),
        };
        self.busy = Span::ZERO;
        reading
    }
}

/// What a meter read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Operations and bytes.
    pub achieved: Achieved,
    /// Part of the window in which a step ran.
    pub busy: f64,
    /// Requests preempted.
    pub preemptions: u32,
    /// Tokens computed again.
    pub recomputed: u64,
}

impl ReplicaSample {
    /// What is seen of a replica, with what its meter read; utilisation is filled in by whoever knows the
    /// device.
    pub fn new(id: u32, replica: &Replica, reading: &Reading) -> ReplicaSample {
        let (load, pool) = (replica.load(), replica.pool());
        let held = pool.held() as f64;
        ReplicaSample {
            replica: id,
            waiting: load.waiting,
            running: load.running,
            occupancy: f64::from(load.running) / replica.limits().max_batch as f64,
            kv: held / pool.len() as f64,
            kv_demand: (held + replica.queued_blocks() as f64) / pool.len() as f64,
            queued_tokens: if replica.has_work() { replica.queued_tokens() } else { 0 },
            busy: reading.busy,
            compute: None,
            memory: None,
            preemptions: reading.preemptions,
            recomputed: reading.recomputed,
        }
    }
}

/// What happened to requests between two scrapes.
#[derive(Clone, Debug, Default)]
pub struct Window {
    arrived: u32,
    finished: u32,
    ttft: Vec<f64>,
    itl: Vec<f64>,
    /// At the scrape before.
    waiting: u32,
    from: Time,
}

impl Window {
    /// A request arrived.
    pub fn arrived(&mut self) {
        self.arrived += 1;
    }

    /// A request had its first token, so long after it arrived.
    pub fn first_token(&mut self, ttft: Span) {
        self.ttft.push(ttft.seconds());
    }

    /// A request finished, with so many seconds a token after the first, if it had more than one.
    pub fn finished(&mut self, itl: Option<f64>) {
        self.finished += 1;
        self.itl.extend(itl);
    }

    /// When the window began.
    pub fn from(&self) -> Time {
        self.from
    }

    /// Closes the window at `now`. `held` wait at the gateway; `aside` are replicas that do not serve any more
    /// but still work.
    pub fn close(
        &mut self,
        now: Time,
        held: u32,
        replicas: Vec<ReplicaSample>,
        aside: &[ReplicaSample],
    ) -> FleetSample {
        let window = now.since(self.from).seconds();
        let all = || replicas.iter().chain(aside);
        let waiting = held + all().map(|r| r.waiting).sum::<u32>();
        let two = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            let found = [0.5, 0.95].map(|p| quantile(values, p));
            values.clear();
            found
        };
        let slope = if window > 0.0 { (f64::from(waiting) - f64::from(self.waiting)) / window } else { 0.0 };
        let sample = FleetSample {
            at: now.0,
            window,
            serving: replicas.len() as u32,
            starting: 0,
            draining: 0,
            held,
            waiting,
            running: all().map(|r| r.running).sum(),
            slope,
            arrived: core::mem::take(&mut self.arrived),
            finished: core::mem::take(&mut self.finished),
            mean: means(&replicas),
            preemptions: all().map(|r| r.preemptions).sum(),
            recomputed: all().map(|r| r.recomputed).sum(),
            ttft: two(&mut self.ttft),
            itl: two(&mut self.itl),
            replicas,
        };
        (self.waiting, self.from) = (waiting, now);
        sample
    }
}

fn means(replicas: &[ReplicaSample]) -> Option<Means> {
    let n = replicas.len();
    let mean = |of: fn(&ReplicaSample) -> f64| replicas.iter().map(of).sum::<f64>() / n as f64;
    let known = |of: fn(&ReplicaSample) -> Option<f64>| {
        replicas.iter().map(of).sum::<Option<f64>>().map(|sum| sum / n as f64)
    };
    (n > 0).then(|| Means {
        occupancy: mean(|r| r.occupancy),
        kv: mean(|r| r.kv),
        busy: mean(|r| r.busy),
        compute: known(|r| r.compute),
        memory: known(|r| r.memory),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Admitted, Work};

    fn start(recomputed: u32) -> StepStart {
        let one = Admitted { request: 0, cached: 0, computed: 9, recomputed, first: true };
        StepStart {
            replica: 0,
            continued: None,
            admitted: vec![one],
            preempted: vec![4],
            evicted: 0,
            held: 1,
            work: Work::default(),
        }
    }

    #[test]
    fn a_step_over_a_scrape_is_counted_in_parts() {
        let mut meter = Meter::default();
        let achieved = Achieved { operations: 100.0, bytes: 8.0 };
        meter.began(Time(100), Time(200), &start(3), achieved);
        let first = meter.read(Time(125), Span(125));
        assert_eq!((first.achieved.operations, first.achieved.bytes, first.busy), (25.0, 2.0, 0.2));
        assert_eq!((first.preemptions, first.recomputed), (1, 3));
        meter.ended();
        let second = meter.read(Time(225), Span(100));
        assert_eq!((second.achieved.operations, second.busy, second.preemptions), (75.0, 0.75, 0));
        assert_eq!(meter.read(Time(300), Span(75)), Reading::default());
    }

    #[test]
    fn a_window_has_what_happened_in_it_and_the_slope_since_the_last() {
        let mut window = Window::default();
        window.arrived();
        window.arrived();
        window.first_token(Span(2_000_000_000_000));
        window.first_token(Span(4_000_000_000_000));
        window.finished(Some(0.5));
        window.finished(None);
        let replica = ReplicaSample { waiting: 6, running: 2, compute: Some(0.5), ..Default::default() };
        let other = ReplicaSample { replica: 1, running: 4, compute: Some(0.1), ..Default::default() };
        let aside = [ReplicaSample { replica: 2, waiting: 1, ..Default::default() }];
        let ten = Time(10_000_000_000_000);
        let sample = window.close(ten, 3, vec![replica, other], &aside);
        assert_eq!((sample.waiting, sample.running, sample.slope, sample.serving), (10, 6, 1.0, 2));
        assert_eq!((sample.rate(), sample.throughput(), sample.in_flight()), (0.2, 0.2, 16));
        assert_eq!((sample.ttft, sample.itl), ([Some(3.0), Some(3.9)], [Some(0.5), Some(0.5)]));
        assert_eq!(sample.mean.and_then(|mean| mean.compute), Some(0.3));
        let sample = window.close(Time(20_000_000_000_000), 0, vec![], &[]);
        assert_eq!((sample.slope, sample.mean, sample.ttft[1], sample.arrived), (-1.0, None, None, 0));
    }
}
