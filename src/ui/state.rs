//! The page's state and everything that can change it, without the web: a pure reducer.
//!
//! Workers are not in here. The state says which [`Job`](crate::worker::Job) each lane should be
//! doing ([`State::wanted`]); whoever owns the workers makes it so and reports what they tell.

use std::rc::Rc;

use super::address;
use super::fork::{self, Fork};
use super::study::Study;
use crate::coldstart::Settings;
use crate::cost::calibrate::Calibration;
use crate::engine::RequestId;
use crate::experiment::Experiment;
use crate::params::{ClockKind, Config, param, to_query};
use crate::units::PICOS_PER_SECOND;
use crate::worker::Told;

mod action;

pub use super::lane::{Lane, Status};
pub use action::{Action, Toward};

/// How long the replay of a race takes at speed 1, in seconds.
pub const REPLAY_SECONDS: f64 = 10.0;

/// A control whose text was refused: the last good value stays in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The parameter.
    pub key: String,
    /// What the reader wrote.
    pub text: String,
    /// Why it is refused.
    pub problem: String,
}

/// Prices measured on the reader's machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Bench {
    /// Not asked for yet.
    #[default]
    Idle,
    /// So many of so many measurements are done.
    Running(u32, u32),
    /// Measured.
    Done(Rc<Calibration>),
    /// Could not be; why.
    Failed(String),
}

/// The page.
#[derive(Clone, Debug)]
pub struct State {
    /// The parameters in force.
    pub config: Config,
    /// What the cold start is asked about.
    pub cold: Settings,
    /// The sweep: what is asked, and what came of it.
    pub study: Rc<Study>,
    /// Texts that were refused.
    pub drafts: Vec<Draft>,
    /// What in the address was not understood.
    pub notices: Vec<String>,
    /// One a policy.
    pub lanes: Vec<Lane>,
    /// Whether the reader stopped time, and the workers with it.
    pub paused: bool,
    /// Whether the replay is left out: the page waits for the result and shows it.
    pub skip: bool,
    /// How fast, as a factor.
    pub speed: f64,
    /// The moment that is shown, in picoseconds of simulated time.
    pub at: u64,
    /// How long a race will take, about, in picoseconds of simulated time.
    pub hint: u64,
    /// The request that is explained; `None`: the latest.
    pub selected: Option<RequestId>,
    /// Prices measured on the reader's machine.
    pub bench: Bench,
    /// Another future of one of the lanes.
    pub fork: Option<Rc<Fork>>,
    runs: u32,
}

impl State {
    /// The page at an address; `still`: the reader wants no motion.
    pub fn open(query: &str, still: bool) -> State {
        let mut state = State {
            config: Config::default(),
            cold: Settings::default(),
            study: Rc::default(),
            drafts: Vec::new(),
            notices: Vec::new(),
            lanes: Vec::new(),
            paused: false,
            skip: still,
            speed: 1.0,
            at: 0,
            hint: 0,
            selected: None,
            bench: Bench::Idle,
            fork: None,
            runs: 0,
        };
        state.load(query);
        state
    }

    /// The query of everything in force: the page's address.
    pub fn query(&self) -> String {
        address::write(&self.config, &self.cold, &self.study.settings)
    }

    /// The query of the race alone: what a worker is told.
    pub fn race_query(&self) -> String {
        to_query(&self.config)
    }

    /// The run that a lane's worker should be doing; `None`: none.
    pub fn wanted(&self, lane: usize) -> Option<u32> {
        let own = self.lanes.get(lane)?;
        // Side by side, stop-watches would measure how the workers hinder each other.
        let in_turn =
            self.config.clock == ClockKind::Modelled || self.lanes[..lane].iter().all(Lane::settled);
        (!own.settled() && in_turn).then_some(own.run)
    }

    /// Whether every lane is over.
    pub fn settled(&self) -> bool {
        self.lanes.iter().all(Lane::settled)
    }

    /// Up to where simulated time may go: what every living lane has computed.
    pub fn horizon(&self) -> u64 {
        let unsettled = self.lanes.iter().filter(|lane| !lane.settled()).map(|lane| lane.progress.at);
        // Up to where they part, a fork is what its lane is.
        let fork = self.fork.iter().filter(|fork| !fork.future.settled());
        let fork = fork.map(|fork| fork.future.progress.at.max(fork.at));
        unsettled.chain(fork).min().unwrap_or_else(|| self.end())
    }

    /// The end of the longest run, as far as it is known.
    pub fn end(&self) -> u64 {
        self.every().map(|lane| lane.progress.at).max().unwrap_or(0)
    }

    /// All runs that there are to see: the lanes, and the fork where there is one.
    pub fn every(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().chain(self.fork.as_ref().map(|fork| &fork.future))
    }

    /// The last instant, up to the moment shown, at which anything happened.
    pub fn instant(&self) -> Option<u64> {
        let until = self.at.saturating_add(1);
        self.every().filter_map(|lane| lane.log.instant_before(until)).max()
    }

    /// Where a step goes; `None`: nothing happened there, or it is not known yet.
    pub fn step(&self, toward: Toward) -> Option<u64> {
        match toward {
            Toward::Past => self.every().filter_map(|lane| lane.log.instant_before(self.at)).max(),
            Toward::Future => {
                let next = self.every().filter_map(|lane| lane.log.next_instant(self.at)).min();
                next.filter(|next| *next <= self.horizon())
            }
        }
    }

    /// How far the scale of time reaches: the end, or what it is expected to be.
    pub fn reach(&self) -> u64 {
        if self.settled() { self.end() } else { self.end().max(self.hint) }
    }

    /// Where the replay stops for want of events, where they are not all kept.
    fn last_drawn(&self) -> Option<u64> {
        self.every().filter(|lane| lane.truncated()).map(|lane| lane.log.end()).min()
    }

    /// Whether the moment shown is the end of everything.
    pub fn over(&self) -> bool {
        self.settled() && self.at >= self.end()
    }

    /// Whether simulated time goes on.
    pub fn playing(&self) -> bool {
        !self.paused && !self.skip && !self.over()
    }

    /// Whether time would go on if more had been computed.
    pub fn starved(&self) -> bool {
        !self.settled() && (self.skip || !self.paused && self.at >= self.horizon())
    }

    /// The text of a control, and why it is refused.
    pub fn text(&self, key: &str) -> (String, Option<&str>) {
        match self.drafts.iter().find(|draft| draft.key == key) {
            Some(draft) => (draft.text.clone(), Some(&draft.problem)),
            None => (param(key).map_or_else(String::new, |p| p.get(&self.config)), None),
        }
    }

    /// The state after an action; the same pointer where nothing changed.
    pub fn reduce(self: Rc<State>, action: Action) -> Rc<State> {
        if let Action::Tick(_) = &action
            && (!self.playing() || self.at >= self.horizon())
        {
            return self;
        }
        let mut state = Rc::unwrap_or_clone(self);
        state.act(action);
        Rc::new(state)
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Open(query) => {
                // The address also changes when the reader follows a link within the page.
                let (config, cold, swept, problems) = address::read(&query);
                if config != self.config || !problems.is_empty() {
                    self.load(&query);
                }
                self.cold = cold;
                // What is being typed is in no address, and stays.
                if swept.to_pairs() != self.study.settings.to_pairs() {
                    Rc::make_mut(&mut self.study).settings = swept;
                }
            }
            Action::Edit { key, text } => self.edit(key, text),
            Action::Apply(config) => {
                self.drafts.clear();
                self.config = *config;
                self.restart();
            }
            Action::Restart => self.restart(),
            Action::Still => self.skip = true,
            Action::Play => {
                if self.settled() && self.lanes.iter().any(|lane| lane.status == Status::Cancelled) {
                    self.restart();
                } else if self.over() {
                    self.at = 0;
                }
                (self.paused, self.skip) = (false, false);
            }
            Action::Pause => self.paused = true,
            Action::Skip => {
                (self.paused, self.skip) = (false, true);
                self.settle();
            }
            Action::Seek(at) => {
                // Whoever looks at a moment wants to see that one.
                (self.paused, self.skip) = (self.paused || self.skip || self.over(), false);
                self.at = at.min(self.horizon());
            }
            Action::Step(toward) => {
                if let Some(at) = self.step(toward) {
                    (self.paused, self.skip, self.at) = (true, false, at);
                }
            }
            Action::Speed(speed) => self.speed = speed,
            Action::Tick(seconds) => self.tick(seconds),
            Action::Cancel => {
                for lane in self.lanes.iter_mut().filter(|lane| !lane.settled()) {
                    lane.status = Status::Cancelled;
                }
                self.settle();
            }
            Action::Heard(lane, told) => self.hear(lane, told),
            Action::Died(lane, message) => {
                if let Some(own) = self.lanes.get_mut(lane)
                    && !own.settled()
                {
                    own.status = Status::Dead(message);
                }
                self.settle();
            }
            Action::Revive(lane) => {
                self.paused = false;
                // Beyond the lanes is the fork.
                if lane == self.lanes.len() {
                    return self.fork(fork::Act::Again);
                }
                self.runs += 1;
                let runs = self.runs;
                if let Some(own) = self.lanes.get_mut(lane) {
                    *own = Lane::new(own.policy, runs);
                }
            }
            Action::Select(request) => self.selected = request,
            Action::Cold(settings) => self.cold = settings,
            Action::Study(act) => Rc::make_mut(&mut self.study).act(act, &self.config),
            Action::Fork(act) => self.fork(act),
            Action::Dismiss => self.notices.clear(),
            Action::Bench(bench) => self.bench = bench,
        }
    }

    fn load(&mut self, query: &str) {
        let swept;
        (self.config, self.cold, swept, self.notices) = address::read(query);
        Rc::make_mut(&mut self.study).settings = swept;
        self.drafts.clear();
        self.restart();
    }

    fn edit(&mut self, key: &'static str, text: String) {
        let Some(param) = param(key) else { return };
        self.drafts.retain(|draft| draft.key != key);
        let mut config = self.config.clone();
        match param.set(&mut config, &text).and_then(|()| config.validate()) {
            Ok(()) => {
                if config != self.config {
                    self.config = config;
                    self.restart();
                }
            }
            Err(problem) => {
                self.drafts.push(Draft { key: key.into(), text, problem: problem.problem });
            }
        }
    }

    /// Everything from the start, with the parameters in force.
    fn restart(&mut self) {
        self.runs += 1;
        let run = self.runs;
        self.lanes = self.config.policy.iter().map(|&policy| Lane::new(policy, run)).collect();
        self.at = 0;
        self.paused = false;
        self.hint = span(&self.config);
        self.selected = None;
        self.fork = None;
    }

    fn fork(&mut self, act: fork::Act) {
        self.runs += 1;
        match act {
            fork::Act::Ask { lane, change } => {
                let ask = self.lanes.get(lane).map(|of| (lane, of.policy));
                let fork = ask.and_then(|ask| Fork::new(ask, self.at, change, &self.config, self.runs).ok());
                self.fork = fork.map(Rc::new);
            }
            fork::Act::Drop => {
                self.fork = None;
                self.at = self.at.min(self.horizon());
            }
            act => {
                if let Some(fork) = &mut self.fork {
                    Rc::make_mut(fork).act(act, self.runs);
                }
            }
        }
    }

    /// Shows the result where the replay is left out and there is a result.
    fn settle(&mut self) {
        if self.skip && self.settled() {
            self.at = self.end();
        }
    }

    fn tick(&mut self, seconds: f64) {
        let a_second = self.reach() as f64 / REPLAY_SECONDS * self.speed;
        let to = self.at.saturating_add((seconds * a_second) as u64);
        // A lane that was started anew catches up; the others do not go back for it.
        self.at = to.min(self.horizon()).max(self.at);
        if self.settled() && self.last_drawn().is_some_and(|last| self.at >= last) {
            self.at = self.end();
        }
    }

    fn hear(&mut self, lane: usize, told: Told) {
        if let Some(own) = self.lanes.get_mut(lane)
            && own.hear(told)
        {
            self.settle();
        }
    }
}

/// How long the longest run will take in simulated time, in picoseconds: the same scheduler without
/// tensors says it exactly in a millisecond; for a long trace the arrivals must do.
fn span(config: &Config) -> u64 {
    let arrivals = f64::from(config.requests) / config.rate * PICOS_PER_SECOND as f64;
    if config.requests > 400 {
        return arrivals as u64;
    }
    let spans = config.policy.iter().map(|&policy| {
        let (_, recorder) = Experiment::run_priced(config, policy).ok()?;
        recorder.records().filter_map(|record| record.finished()).map(|end| end.0).max()
    });
    spans.flatten().max().unwrap_or(arrivals as u64)
}

#[cfg(test)]
mod tests;
