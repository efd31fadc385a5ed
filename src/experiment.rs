//! A configuration made into runs: one trace, one fleet a policy, one clock.

use std::sync::Arc;

use crate::engine::{Backend, Modelled, Replica, SharedModel, TinyGptBackend};
use crate::fleet::{Devices, Fleet};
use crate::model::{ModelConfig, TinyGpt};
use crate::params::{BackendKind, Config};
use crate::policy::{PolicyKind, PolicySettings};
use crate::sim;
use crate::sim::{Clock, Recorder, Simulation, Summary, TooLong, run_express};
use crate::trace::{Token, Trace};

/// The seed of TinyGPT's random weights: the model is the same whatever the trace.
pub const WEIGHTS_SEED: u64 = 18;

/// TinyGPT with its random weights.
pub fn random_model() -> SharedModel {
    Arc::new(TinyGpt::random(ModelConfig::default(), WEIGHTS_SEED))
}

/// Where a trace came from, and what it was read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file, as it was named.
    pub file: String,
    /// Tokens that an id of a block stands for, where it has ids.
    pub trace_block: Option<u32>,
    /// Whether its arrivals were spread out within their buckets.
    pub spread: bool,
    /// What else was said of how it is read or what of it is run.
    pub read: Option<String>,
}

/// A configuration with its trace and, where it computes, its model.
pub struct Experiment {
    /// The parameters.
    pub config: Config,
    /// What arrives.
    pub trace: Arc<Trace>,
    /// The file that the trace came from; `None`: it was generated.
    pub source: Option<Source>,
    model: Option<SharedModel>,
}

/// One replica that is only priced, as a configuration has it.
pub(crate) fn priced_replica(config: &Config, index: u32) -> Replica {
    Replica::new(index, config.limits(), Box::new(Modelled)).with_prefill_chunk(config.prefill_chunk as usize)
}

impl Experiment {
    /// An experiment on the generated trace.
    pub fn new(config: Config) -> Experiment {
        Experiment::reusing(config, None)
    }

    /// The same with weights that were made before: they are the same in every experiment.
    pub fn reusing(config: Config, model: Option<SharedModel>) -> Experiment {
        let trace = Arc::new(config.trace());
        let model = (config.backend == BackendKind::TinyGpt).then(|| model.unwrap_or_else(random_model));
        Experiment { config, trace, source: None, model }
    }

    /// The weights, where the experiment computes.
    pub fn model(&self) -> Option<SharedModel> {
        self.model.clone()
    }

    /// An experiment on a given trace.
    pub fn with_trace(config: Config, trace: impl Into<Arc<Trace>>, source: Option<Source>) -> Experiment {
        let model = (config.backend == BackendKind::TinyGpt).then(random_model);
        Experiment { config, trace: trace.into(), source, model }
    }

    /// One more than the highest token id that a trace may use on a backend.
    pub fn vocabulary(backend: BackendKind) -> Token {
        match backend {
            BackendKind::TinyGpt => ModelConfig::default().vocab_size as Token,
            BackendKind::Modelled => 1 << 31,
        }
    }

    /// One replica, as the configuration has it.
    pub fn replica(&self, index: u32) -> Replica {
        let limits = self.config.limits();
        let backend: Box<dyn Backend> = match &self.model {
            Some(model) => Box::new(TinyGptBackend::new(model.clone(), &limits)),
            None => Box::new(Modelled),
        };
        Replica::new(index, limits, backend).with_prefill_chunk(self.config.prefill_chunk as usize)
    }

    /// An empty fleet under a policy.
    pub fn fleet(&self, policy: PolicyKind) -> Fleet {
        let replicas = (0..self.config.replicas).map(|i| self.replica(i)).collect();
        Experiment::behind_routers(&self.config, policy, &self.policy_settings(&self.config), replicas)
    }

    /// A configuration's settings of the policies for this trace: a prefix is so many of what its prompts
    /// are told by.
    pub fn policy_settings(&self, config: &Config) -> PolicySettings {
        config.policy_settings_for(&self.trace)
    }

    /// Replicas behind the routers of a configuration.
    fn behind_routers(
        config: &Config,
        policy: PolicyKind,
        settings: &PolicySettings,
        replicas: Vec<Replica>,
    ) -> Fleet {
        let policies = (0..config.routers).map(|router| policy.build(&settings.of_router(router))).collect();
        Fleet::behind(policies, replicas, config.devices).with_signal(config.signal())
    }

    /// A recorder for such a fleet.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(self.config.replicas as usize, self.config.pool_blocks() as usize)
    }

    /// A run under a policy, before its first instant.
    pub fn simulation<'t>(&'t self, policy: PolicyKind, clock: Box<dyn Clock + 't>) -> Simulation<'t, Fleet> {
        Simulation::new(self.fleet(policy), &self.trace, self.config.sampling(), clock)
    }

    /// The deterministic clock of the configuration's price.
    pub fn modelled_clock(&self) -> Box<dyn Clock> {
        Box::new(crate::sim::Modelled(self.config.price()))
    }

    /// Runs the trace under a policy at its price, from beginning to end: the same figures as
    /// [`run`](Experiment::run) with the modelled clock, from event to event where that is possible.
    pub fn run_modelled(&self, policy: PolicyKind) -> Result<Recorder, TooLong> {
        if self.model.is_some() || self.config.devices == Devices::Shared {
            return self.run(policy, self.modelled_clock());
        }
        let mut recorder = self.recorder();
        let (sampling, price) = (self.config.sampling(), self.config.price());
        run_express(&mut self.fleet(policy), &self.trace, &sampling, &price, &mut recorder)?;
        Ok(recorder)
    }

    /// Runs the trace under a policy, from beginning to end.
    pub fn run(&self, policy: PolicyKind, clock: Box<dyn Clock + '_>) -> Result<Recorder, TooLong> {
        let mut recorder = self.recorder();
        self.simulation(policy, clock).run(|event| recorder.observe(&event))?;
        Ok(recorder)
    }

    /// Runs the trace under a policy without tensors, at its price: the same schedule in a
    /// millisecond. It is written apart from [`run`](Experiment::run) so that a program that only
    /// ever does this carries no tensor code.
    pub fn run_priced(config: &Config, policy: PolicyKind) -> Result<(Trace, Recorder), TooLong> {
        let trace = config.trace();
        let replicas = (0..config.replicas).map(|i| priced_replica(config, i)).collect();
        let mut fleet = Experiment::behind_routers(config, policy, &config.policy_settings(), replicas);
        let mut recorder = Recorder::new(config.replicas as usize, config.pool_blocks() as usize);
        let (sampling, price) = (config.sampling(), config.price());
        match config.devices {
            Devices::Shared => Simulation::new(fleet, &trace, sampling, Box::new(sim::Modelled(price)))
                .run(|event| recorder.observe(&event))?,
            Devices::Separate => run_express(&mut fleet, &trace, &sampling, &price, &mut recorder)?,
        }
        Ok((trace, recorder))
    }

    /// The figures of a run.
    pub fn summary(&self, recorder: &Recorder) -> Summary {
        recorder.summary(&self.config.objectives(), &self.trace.tenants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priced_run_is_the_modelled_backends() {
        let config = Config { backend: BackendKind::Modelled, ..Config::default() };
        let experiment = Experiment::new(config.clone());
        for policy in PolicyKind::ALL {
            let (trace, priced) = Experiment::run_priced(&config, policy).expect("it fits the clock");
            let recorder = experiment.run(policy, experiment.modelled_clock()).expect("it fits the clock");
            assert_eq!(*experiment.trace, trace);
            assert_eq!(experiment.summary(&priced), experiment.summary(&recorder));
        }
    }
}
