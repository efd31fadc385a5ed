//! A configuration made into autoscaled runs: one trace, and a run for each scaler and policy.

use std::sync::Arc;

use super::faults::{Fault, drawn};
use super::fleet::Fleet;
use super::life::End;
use super::run::{Plan, Run, Scaled};
use super::scaler::{ScalerKind, Surroundings};
use super::settings::Settings;
use crate::cost::roofline::Counter;
use crate::experiment::priced_replica;
use crate::params::Config;
use crate::policy::{PolicyKind, PolicySettings};
use crate::sim::{Recorder, TooLong, run_express};
use crate::trace::generate::Draw;
use crate::trace::{RequestSpec, Trace};
use crate::units::{PICOS_PER_SECOND, Span, Time};

/// Arrivals are counted in stretches of ten seconds: long enough to be a rate, short enough for a cold start.
pub const BUCKET: Span = Span(10 * PICOS_PER_SECOND);

/// Requests that a replica's capacity is measured with.
const MEASURED: usize = 1500;

/// The part of them that must meet both objectives.
const GOOD: f64 = 0.95;

/// What arrives, on what, and how it is scaled.
pub struct Lab {
    /// The experiment's parameters.
    pub config: Config,
    /// The others.
    pub settings: Settings,
    /// What arrives.
    pub trace: Arc<Trace>,
    /// Requests a second that one replica serves, with 95 % of them within both objectives.
    pub capacity: f64,
}

impl Lab {
    /// A lab on a trace, or on the one that the parameters make. They are valid
    /// ([`Settings::validate`]).
    pub fn new(config: Config, settings: Settings, trace: Option<Arc<Trace>>) -> Lab {
        let trace = trace.unwrap_or_else(|| {
            let load = settings.load(config.rate);
            Arc::new(config.generator().generate_under(&load, config.block_size))
        });
        let capacity = capacity(&config, &trace);
        Lab { config, settings, trace, capacity }
    }

    /// When arrivals end: as said, or with the trace.
    pub fn horizon(&self) -> Time {
        let last = self.trace.requests.last().map_or(Time::ZERO, |r| r.arrival);
        let said = Time::from_seconds(self.settings.duration).unwrap_or(last);
        if last > said { last } else { said.min(last.after(BUCKET).unwrap_or(last)) }
    }

    /// Arrivals in each stretch of `BUCKET`.
    pub fn arrivals(&self) -> Vec<u32> {
        let mut counts = vec![0; (self.horizon().0 / BUCKET.0) as usize + 1];
        for request in &self.trace.requests {
            counts[(request.arrival.0 / BUCKET.0) as usize] += 1;
        }
        counts
    }

    /// What scalers know besides samples.
    pub fn surroundings(&self) -> Surroundings {
        let life = self.settings.lifecycle(&self.config);
        Surroundings {
            replicas: self.config.replicas,
            lead: life.start.total(),
            capacity: self.capacity,
            context: self.config.positions,
            arrivals: self.arrivals().into(),
            bucket: BUCKET,
        }
    }

    fn faults(&self) -> Vec<Fault> {
        let one = |at: Option<f64>, end| {
            at.and_then(Time::from_seconds).map(|at| Fault { at, end, pick: 0.0, of: None })
        };
        let mut faults: Vec<Fault> = one(self.settings.fail_at, End::Failed)
            .into_iter()
            .chain(one(self.settings.preempt_at, End::Preempted))
            .collect();
        if let Some(mean) = self.settings.mtbf.and_then(Span::from_seconds) {
            faults.extend(drawn(mean, self.settings.max, self.horizon(), self.config.seed));
        }
        faults.sort_by_key(|fault| fault.at);
        faults
    }

    /// What a run needs besides its fleet and its scaler.
    pub fn plan(&self) -> Plan {
        let counter = self.config.deployment().map(|deployment| {
            Counter::new(&deployment.model.shape(), deployment.tp, &deployment.accelerator.datasheet())
        });
        Plan {
            trace: self.trace.clone(),
            sampling: self.config.sampling(),
            price: self.config.price(),
            counter,
            bounds: self.settings.bounds(),
            scrape: self.settings.scrape_span(),
            delay: self.settings.delay_span(),
            until: self.horizon(),
            faults: self.faults(),
            notice: self.settings.notice_span(),
            replace: self.settings.replace_time(),
            start_before_drain: self.settings.start_before_drain,
        }
    }

    /// A run before its first instant.
    pub fn scaled(&self, scaler: ScalerKind, policy: PolicyKind) -> Scaled<'_> {
        let config = &self.config;
        let policy = policy.build(&config.policy_settings_for(&self.trace));
        let make = Box::new(move |id| priced_replica(config, id));
        let life = self.settings.lifecycle(config);
        let fleet = Fleet::new(config.replicas, config.limits(), make, life, policy, config.signal());
        let scaler = scaler.build(&self.settings.overrides(), &self.surroundings());
        let recorder = Recorder::new(config.replicas as usize, config.pool_blocks() as usize);
        Scaled::new(self.plan(), fleet, scaler, recorder)
    }

    /// A run from beginning to end.
    pub fn run(&self, scaler: ScalerKind, policy: PolicyKind) -> Result<Run, TooLong> {
        self.scaled(scaler, policy).run(&mut ())
    }
}

/// Requests a second that one replica serves with 95 % of them within both objectives: the trace's first
/// requests, arriving evenly at random, at ever nearer rates. At least a thousandth.
pub fn capacity(config: &Config, trace: &Trace) -> f64 {
    const LEAST: f64 = 0.001;
    let mut draw = Draw::new(config.seed);
    let first = &trace.requests[..trace.requests.len().min(MEASURED)];
    let gaps: Vec<f64> = first.iter().map(|_| draw.exponential()).collect();
    let good = |rate: f64| {
        let mut seconds = 0.0;
        let mut requests: Vec<RequestSpec> = Vec::with_capacity(first.len());
        for (request, gap) in first.iter().zip(&gaps) {
            seconds += gap / rate;
            let Some(arrival) = Time::from_seconds(seconds) else { break };
            requests.push(RequestSpec { arrival, ..request.clone() });
        }
        let trace = Trace { requests, tenants: trace.tenants.clone() };
        let policy = PolicyKind::RoundRobin.build(&PolicySettings::default());
        let mut fleet = crate::fleet::Fleet::new(
            vec![priced_replica(config, 0)],
            policy,
            crate::fleet::Devices::Separate,
        );
        let mut recorder = Recorder::new(1, config.pool_blocks() as usize);
        run_express(&mut fleet, &trace, &config.sampling(), &config.price(), &mut recorder).is_ok()
            && recorder.good(&config.objectives()) as f64 >= GOOD * first.len() as f64
    };
    if first.is_empty() || !good(LEAST) {
        return LEAST;
    }
    let (mut low, mut high) = (LEAST, 2.0 * LEAST);
    while good(high) && high < 1e5 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..8 {
        let middle = (low + high) / 2.0;
        if good(middle) { low = middle } else { high = middle }
    }
    low
}
