//! A run replayed, and other futures of it: to an instant everything is as it was, and from there on
//! something is different.
//!
//! # What a change means
//!
//! A change at `t` is made once everything has happened that happens at `t` (arrivals are decided as
//! before, steps that begin at `t` have begun), so that [`RunLog::seek`]`(t)` shows where both futures
//! part. Nothing before depends on it. Steps under way are not interrupted.
//!
//! - **Policy**: the routers are given another policy, and go on. What a router itself keeps stays: what
//!   it sent and has in flight, and the loads that it was shown last (one that decides on late loads and
//!   has never looked takes its first look at `t`). What the old policy remembered is lost, as when a new
//!   router takes over: round-robin begins at replica 0; prefix-affinity, which hashes, remembers nothing
//!   and so loses nothing, but the prefixes' replicas may hold none of them yet. Replicas keep queues,
//!   batches and caches. A change to the policy that decides already is none.
//! - **A policy's parameter**: the policies go on with what they remember. One that it does not concern
//!   does not notice.
//! - **Replicas**: more of them join cold and empty at `t`, at once (how long that takes is the cold-start
//!   calculator's subject). With fewer, those of the highest numbers are drained: they are sent nothing
//!   more, and finish what they have, what waits there included. A policy chooses among the active ones;
//!   prefix-affinity's hash is taken modulo their number, so nearly every prefix moves. On a shared device
//!   new replicas share it.
//! - **Objectives**: nothing happens otherwise. They are a yardstick, and every request of the run is
//!   measured by it, whenever it came.
//!
//! A fork is a whole run: its log, records and summary begin at time 0, and until `t` they are those of
//! the run that it was forked from. Changes may follow on each other, in order of time. It is run step by
//! step, at the price of each step (the modelled clock), so that it can be stopped between any two
//! instants; an experiment that only prices its steps is replayed quickly, tensors are computed again.

use std::collections::VecDeque;

use super::change::{Change, Phase};
use super::{RunLog, Setting};
use crate::engine::{BlockUse, Engine};
use crate::experiment::Experiment;
use crate::fleet::{Devices, Fleet};
use crate::params::{BackendKind, Problem};
use crate::policy::PolicyKind;
use crate::sim::{Event, Objectives, Recorder, Simulation, Summary, TooLong, run_express_observed};
use crate::units::Time;

/// A whole run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What happened.
    pub log: RunLog,
    /// The record of each request.
    pub recorder: Recorder,
    /// Its figures, by the objectives that held in the end.
    pub summary: Summary,
}

/// Runs an experiment under a policy at its price, from beginning to end, and keeps its log. The fast way:
/// from event to event where that is possible and no details are wanted.
pub fn record(experiment: &Experiment, policy: PolicyKind, detailed: bool) -> Result<Run, TooLong> {
    let config = &experiment.config;
    let priced = config.backend == BackendKind::Modelled && config.devices == Devices::Separate;
    if detailed || !priced {
        return Replay::new(experiment, policy, Vec::new(), detailed)
            .expect("nothing changes, so nothing is wrong with it")
            .finish();
    }
    let mut log = RunLog::new(Setting::of(config, policy), None);
    let mut recorder = experiment.recorder();
    let (sampling, price, fleet) = (config.sampling(), config.price(), &mut experiment.fleet(policy));
    run_express_observed(fleet, &experiment.trace, &sampling, &price, &mut recorder, &mut log)?;
    let summary = experiment.summary(&recorder);
    Ok(Run { log, recorder, summary })
}

/// A run at its price, step by step, that can be stopped between any two instants and in which something
/// may change.
pub struct Replay<'e> {
    experiment: &'e Experiment,
    simulation: Simulation<'e, Fleet>,
    recorder: Recorder,
    log: RunLog,
    now: Phase,
    /// What is to come, the next first.
    changes: VecDeque<(Time, Phase)>,
    at: Time,
}

impl<'e> Replay<'e> {
    /// A run before its first instant, with changes in order of time; or what is wrong with one of them.
    pub fn new(
        experiment: &'e Experiment,
        policy: PolicyKind,
        changes: Vec<(Time, Change)>,
        detailed: bool,
    ) -> Result<Replay<'e>, Problem> {
        let now = Phase { config: experiment.config.clone(), policy };
        let (mut next, mut phases) = (now.clone(), VecDeque::new());
        assert!(changes.is_sorted_by_key(|(at, _)| *at), "changes come in order of time");
        for (at, change) in changes {
            change.apply(&mut next)?;
            phases.push_back((at, next.clone()));
        }
        let mut simulation = experiment.simulation(policy, experiment.modelled_clock());
        if detailed {
            simulation = simulation.watch_blocks();
        }
        let blocks = detailed.then_some(experiment.config.pool_blocks() as usize);
        Ok(Replay {
            experiment,
            simulation,
            recorder: experiment.recorder(),
            log: RunLog::new(now.setting(), blocks),
            now,
            changes: phases,
            at: Time::ZERO,
        })
    }

    /// A run that is as it was until `at`, with all that happens then, and different from there on.
    pub fn fork(
        experiment: &'e Experiment,
        policy: PolicyKind,
        at: Time,
        change: Change,
        detailed: bool,
    ) -> Result<Replay<'e>, Problem> {
        Replay::new(experiment, policy, vec![(at, change)], detailed)
    }

    /// Goes to the next instant at which anything happens, and does what happens there. `false` once
    /// nothing is left to happen.
    pub fn advance(&mut self) -> Result<bool, TooLong> {
        self.advance_until(Time(u64::MAX))
    }

    /// The same unless the next instant is later than `time`: then nothing happens, and `false`.
    pub fn advance_until(&mut self, time: Time) -> Result<bool, TooLong> {
        self.tell_until(time, |_| {})
    }

    /// The same as [`advance`](Replay::advance), and tells what happens.
    pub fn tell(&mut self, observe: impl FnMut(&Event)) -> Result<bool, TooLong> {
        self.tell_until(Time(u64::MAX), observe)
    }

    fn tell_until(&mut self, time: Time, mut observe: impl FnMut(&Event)) -> Result<bool, TooLong> {
        let next = self.simulation.next_instant();
        let due = |at: Time| at <= time && next.is_none_or(|next| at < next);
        if let Some((at, phase)) = self.changes.pop_front_if(|(at, _)| due(*at)) {
            self.change(at, phase);
            return Ok(true);
        }
        let Some(next) = next.filter(|next| *next <= time) else { return Ok(false) };
        self.at = next;
        let (log, recorder) = (&mut self.log, &mut self.recorder);
        self.simulation.advance(|event| {
            recorder.observe(&event);
            log.observe(&event);
            observe(&event);
        })
    }

    fn change(&mut self, at: Time, to: Phase) {
        let from = core::mem::replace(&mut self.now, to);
        let (now, experiment) = (&self.now, self.experiment);
        let settings = |phase: &Phase| experiment.policy_settings(&phase.config);
        self.simulation.alter(|fleet| {
            if from.policy != now.policy {
                let settings = settings(now);
                let policies =
                    (0..now.config.routers).map(|router| now.policy.build(&settings.of_router(router)));
                fleet.change_policy(policies.collect(), at);
            } else if settings(&from) != settings(now) {
                fleet.retune(&settings(now));
            }
            if from.config.signal() != now.config.signal() {
                fleet.change_signal(now.config.signal(), at);
            }
            if from.config.replicas != now.config.replicas {
                fleet.scale(now.config.replicas as usize, |index| experiment.replica(index));
            }
        });
        self.recorder.grow(self.simulation.engine().replicas().len());
        if from.setting() != now.setting() {
            self.log.set(at.0, now.setting());
        }
        self.at = at;
    }

    /// How far it has come.
    pub fn at(&self) -> Time {
        self.at
    }

    /// Requests that have arrived so far; of [`Experiment::trace`]'s, for its progress.
    pub fn arrived(&self) -> usize {
        self.simulation.arrived()
    }

    /// Replicas that there are, drained ones included.
    pub fn replicas(&self) -> usize {
        self.simulation.engine().replicas().len()
    }

    /// The objectives that hold in the end, by which the whole run is measured.
    pub fn final_objectives(&self) -> Objectives {
        self.changes.back().map_or(&self.now, |(_, phase)| phase).config.objectives()
    }

    /// What happened so far.
    pub fn log(&self) -> &RunLog {
        &self.log
    }

    /// The records so far.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// What each block of a replica is used for as it stands.
    pub fn block_uses(&self, replica: usize) -> impl Iterator<Item = BlockUse> {
        self.simulation.engine().replicas()[replica].block_uses()
    }

    /// Runs to the end.
    pub fn finish(mut self) -> Result<Run, TooLong> {
        while self.advance()? {}
        let objectives = self.now.config.objectives();
        let summary = self.recorder.summary(&objectives, &self.experiment.trace.tenants);
        Ok(Run { log: self.log, recorder: self.recorder, summary })
    }
}
