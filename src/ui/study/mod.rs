//! How much it is worth: the sweep that the reader asks for and what came of it so far, without the web.
//!
//! Workers are not in here. The study says which [`Task`] they should be at ([`Study::wanted`]); the pool
//! makes it so, and reports what they tell.

use std::rc::Rc;

use super::playback::Chunks;
use crate::params::{Config, from_query, param};
use crate::policy::PolicyKind;
use crate::report::columns;
use crate::sweep::{DEFAULT_CAP, Done, Equivalents, Plan, Results, Seeds};
use crate::worker::Ask;

pub mod chart;
pub mod deal;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod words;

use settings::{Part, Range, Settings, modelled_query};

/// Whose replicas are counted in whose.
pub const OF: PolicyKind = PolicyKind::PrefixAffinity;
/// The policy that they are counted in.
pub const BY: PolicyKind = PolicyKind::RoundRobin;

/// How far a task has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is being done, or waits for its turn.
    Running,
    /// All of it is done.
    Done,
    /// The reader ended it.
    Cancelled,
    /// It cannot go on; why.
    Failed(String),
}

/// A sweep that was asked for.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its number among the page's tasks.
    pub number: u32,
    /// What is run.
    pub plan: Rc<Plan>,
    /// What its jobs came to, in the order in which they were told.
    pub done: Chunks<Done>,
    /// How far it has come.
    pub phase: Phase,
}

impl Sweep {
    /// Its jobs that are done, in their order.
    fn jobs(&self) -> Vec<Done> {
        // Placed and not sorted: a sort is kilobytes of code.
        let mut jobs: Vec<Option<&Done>> = vec![None; self.plan.jobs() as usize];
        for done in self.done.iter() {
            if let Some(place) = jobs.get_mut(done.job as usize) {
                *place = Some(done);
            }
        }
        jobs.into_iter().flatten().cloned().collect()
    }

    /// What has come of it: all of it, or what is done so far.
    pub fn results(&self) -> Results {
        Results::so_far((*self.plan).clone(), &self.jobs())
    }

    /// What came of it, once all of it is done: what the command line writes.
    pub fn whole(&self) -> Option<Results> {
        let jobs = self.jobs();
        let whole = self.phase == Phase::Done && jobs.len() as u64 == self.plan.jobs();
        whole.then(|| Results::so_far((*self.plan).clone(), &jobs))
    }

    /// How many of its runs (each under one policy) are done, and of how many.
    pub fn runs(&self) -> (u64, u64) {
        let each = self.plan.policies.len() as u64;
        (self.done.len() as u64 * each, self.plan.jobs() * each)
    }
}

/// A scan for replica-equivalents that was asked for.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Its number among the page's tasks.
    pub number: u32,
    /// What is asked.
    pub ask: Rc<Ask>,
    /// The configuration that it was asked of.
    pub config: Rc<Config>,
    /// Of which seeds.
    pub seeds: Seeds,
    /// What was found, by seed.
    pub found: Vec<Equivalents>,
    /// How far it has come.
    pub phase: Phase,
}

/// What workers are to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// All jobs of a sweep.
    Sweep(Rc<Plan>),
    /// A scan for each seed.
    Scan(Rc<Ask>, Seeds),
}

impl Task {
    /// Its jobs in the order in which they are given out. Of a sweep the first seed of all points comes
    /// first, so that the whole plot is there soon and then gets sharper.
    pub fn jobs(&self) -> Vec<u64> {
        match self {
            Task::Sweep(plan) => {
                let (points, seeds) = (plan.points(), plan.seeds.count());
                (0..seeds).flat_map(|seed| (0..points).map(move |point| point * seeds + seed)).collect()
            }
            Task::Scan(_, seeds) => (seeds.from..seeds.to).collect(),
        }
    }

    /// How many requests are served in a job at most, under all its policies or on all its fleets.
    pub fn requests(&self) -> u64 {
        match self {
            Task::Sweep(plan) => {
                let swept = plan.over.iter().find(|axis| axis.key == "requests");
                let values = swept.into_iter().flat_map(|axis| axis.values.iter());
                let most = values.filter_map(|value| value.parse::<u64>().ok()).max();
                let set = || plan.config(0).map_or(0, |config| config.requests.into());
                most.unwrap_or_else(set) * plan.policies.len() as u64
            }
            Task::Scan(ask, _) => u64::from(from_query(&ask.query).0.requests) * u64::from(1 + ask.cap),
        }
    }

    /// A job in words.
    pub fn job(&self, job: u64) -> String {
        match self {
            Task::Sweep(plan) => {
                let (point, seed) = (job / plan.seeds.count(), plan.seeds.from + job % plan.seeds.count());
                let at = plan.over.iter().zip(plan.values(point)).map(|(a, v)| format!("{} {v}, ", a.key));
                format!("{}seed {seed}", at.collect::<String>())
            }
            Task::Scan(..) => format!("seed {job}"),
        }
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Study {
    /// What the reader asks, as typed.
    pub settings: Settings,
    /// The latest sweep.
    pub sweep: Option<Sweep>,
    /// The latest scan.
    pub scan: Option<Scan>,
    tasks: u32,
}

/// What can happen to it.
#[derive(Clone, Debug)]
pub enum Act {
    /// The first or the second parameter is another; `None`: there is no second.
    Vary(usize, Option<&'static str>),
    /// Its values are a list, or a range.
    List(usize, bool),
    /// A text of it was changed.
    Edit(usize, Part, String),
    /// The seeds' text was changed.
    Seeds(String),
    /// Another figure is shown.
    Figure(usize),
    /// A policy takes part, or does no longer.
    Policy(PolicyKind),
    /// Run the sweep.
    Run,
    /// Scan for replica-equivalents.
    Scan,
    /// Give up what is not done yet.
    Cancel,
    /// Jobs of a sweep are done.
    Swept(u32, Vec<Done>),
    /// Scans are done.
    Found(u32, Vec<Equivalents>),
    /// A task cannot go on; why.
    Failed(u32, String),
}

impl Study {
    /// With settings.
    pub fn new(settings: Settings) -> Study {
        Study { settings, ..Study::default() }
    }

    /// What the workers should be at, and its number.
    pub fn wanted(&self) -> Option<(u32, Task)> {
        match (&self.sweep, &self.scan) {
            (Some(sweep), _) if sweep.phase == Phase::Running => {
                Some((sweep.number, Task::Sweep(Rc::clone(&sweep.plan))))
            }
            (_, Some(scan)) if scan.phase == Phase::Running => {
                Some((scan.number, Task::Scan(Rc::clone(&scan.ask), scan.seeds)))
            }
            _ => None,
        }
    }

    /// Changes it; `config` is the page's.
    pub fn act(&mut self, act: Act, config: &Config) {
        match act {
            Act::Vary(at, key) => self.vary(at, key, config),
            Act::List(at, list) => {
                if let Some(range) = self.settings.ranges.get_mut(at) {
                    // What was a range is the list of its values; what was a list is typed anew.
                    if list
                        && !range.list
                        && let Ok(axis) = range.axis()
                    {
                        range.values = axis.values.join(",");
                    }
                    range.list = list;
                }
            }
            Act::Edit(at, part, text) => {
                if let Some(range) = self.settings.ranges.get_mut(at) {
                    *range.part(part) = text;
                }
            }
            Act::Seeds(text) => self.settings.seeds = text,
            Act::Figure(figure) => self.settings.figure = figure.min(columns().len() - 1),
            Act::Policy(policy) => {
                let chosen = &self.settings.policies;
                let next = PolicyKind::ALL.into_iter().filter(|own| chosen.contains(own) != (*own == policy));
                let next: Vec<PolicyKind> = next.collect();
                if !next.is_empty() {
                    self.settings.policies = next;
                }
            }
            Act::Run => {
                if let Ok(plan) = self.settings.plan(config) {
                    self.tasks += 1;
                    let (number, plan) = (self.tasks, plan.into());
                    self.sweep = Some(Sweep { number, plan, done: Chunks::default(), phase: Phase::Running });
                }
            }
            Act::Scan => self.begin_scan(config),
            Act::Cancel => {
                let phases = self.sweep.iter_mut().map(|s| &mut s.phase);
                for phase in phases.chain(self.scan.iter_mut().map(|s| &mut s.phase)) {
                    if *phase == Phase::Running {
                        *phase = Phase::Cancelled;
                    }
                }
            }
            Act::Swept(number, done) => {
                if let Some(sweep) = &mut self.sweep
                    && (sweep.number, &sweep.phase) == (number, &Phase::Running)
                {
                    sweep.done.push(done);
                    if sweep.done.len() as u64 >= sweep.plan.jobs() {
                        sweep.phase = Phase::Done;
                    }
                }
            }
            Act::Found(number, found) => {
                if let Some(scan) = &mut self.scan
                    && (scan.number, &scan.phase) == (number, &Phase::Running)
                {
                    for one in found {
                        let place = scan.found.partition_point(|own| own.seed < one.seed);
                        scan.found.insert(place, one);
                    }
                    if scan.found.len() as u64 >= scan.seeds.count() {
                        scan.phase = Phase::Done;
                    }
                }
            }
            Act::Failed(number, why) => {
                let sweep = self.sweep.iter_mut().map(|s| (s.number, &mut s.phase));
                for (own, phase) in sweep.chain(self.scan.iter_mut().map(|s| (s.number, &mut s.phase))) {
                    if own == number && *phase == Phase::Running {
                        *phase = Phase::Failed(why.clone());
                    }
                }
            }
        }
    }

    fn vary(&mut self, at: usize, key: Option<&'static str>, config: &Config) {
        let ranges = &mut self.settings.ranges;
        match key.and_then(param) {
            None if at == 1 => ranges.truncate(1),
            Some(param) if at <= ranges.len() && ranges.get(at).is_none_or(|own| own.key != param.key) => {
                ranges.truncate(if at == 0 { ranges.len() } else { 1 });
                let range = Range::suggested(param, config);
                match ranges.get_mut(at) {
                    Some(own) => *own = range,
                    None => ranges.push(range),
                }
            }
            _ => {}
        }
    }

    fn begin_scan(&mut self, config: &Config) {
        let Ok(seeds) = self.settings.seeds(config) else { return };
        // The most replicas of which all can be simulated.
        let fits = |replicas: &u32| Config { replicas: *replicas, ..config.clone() }.validate().is_ok();
        let cap = (1..=DEFAULT_CAP).rev().find(fits).unwrap_or(1);
        self.tasks += 1;
        self.scan = Some(Scan {
            number: self.tasks,
            ask: Ask { query: modelled_query(config), of: OF, by: BY, cap }.into(),
            config: config.clone().into(),
            seeds,
            found: Vec::new(),
            phase: Phase::Running,
        });
    }
}
