//! The page's state and everything that can change it, without the web: a pure reducer.
//!
//! Workers are not in here. The state says which [`Job`](crate::worker::Job) each lane should be
//! doing ([`State::wanted`]); whoever owns the workers makes it so and reports what they tell.

use std::rc::Rc;

use super::playback::{Chunks, Log};
use crate::cost::calibrate::Calibration;
use crate::engine::RequestId;
use crate::experiment::Experiment;
use crate::params::{ClockKind, Config, from_query, param, to_query};
use crate::policy::PolicyKind;
use crate::units::PICOS_PER_SECOND;
use crate::worker::{Finished, MAX_EVENTS, Point, Progress, Told};

/// How long the replay of a race takes at speed 1, in seconds.
pub const REPLAY_SECONDS: f64 = 10.0;

/// How a lane's worker is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Its worker loads, or has not taken the job up yet.
    Starting,
    /// It computes.
    Running,
    /// It has come to the end.
    Done(Rc<Finished>),
    /// Its worker died; why.
    Dead(String),
    /// The reader ended it.
    Cancelled,
}

/// One policy's run.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The policy.
    pub policy: PolicyKind,
    /// The number of its run; what other runs still say is not heard.
    pub run: u32,
    /// How its worker is doing.
    pub status: Status,
    /// What happened so far.
    pub log: Log,
    /// How its figures went.
    pub points: Chunks<Point>,
    /// How far it has come.
    pub progress: Progress,
}

impl Lane {
    fn new(policy: PolicyKind, run: u32) -> Lane {
        Lane {
            policy,
            run,
            status: Status::Starting,
            log: Log::default(),
            points: Chunks::default(),
            progress: Progress::default(),
        }
    }

    /// Whether nothing more will come of it.
    pub fn settled(&self) -> bool {
        !matches!(self.status, Status::Starting | Status::Running)
    }

    /// What came of it, once it is done.
    pub fn finished(&self) -> Option<&Rc<Finished>> {
        match &self.status {
            Status::Done(finished) => Some(finished),
            _ => None,
        }
    }

    /// Whether more happened than is kept for the replay.
    pub fn truncated(&self) -> bool {
        self.log.len() >= MAX_EVENTS
    }
}

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
    runs: u32,
}

/// Everything that can happen to the page.
#[derive(Clone, Debug)]
pub enum Action {
    /// The address has this query.
    Open(String),
    /// A control's text was changed.
    Edit {
        /// The parameter.
        key: &'static str,
        /// The text.
        text: String,
    },
    /// All parameters at once: a preset, or the defaults.
    Apply(Box<Config>),
    /// The same again, from the start.
    Restart,
    /// Go on.
    Play,
    /// Stop.
    Pause,
    /// Show the result, without the replay.
    Skip,
    /// Show this moment, in picoseconds.
    Seek(u64),
    /// How fast, as a factor.
    Speed(f64),
    /// So many seconds went by on the reader's clock.
    Tick(f64),
    /// Give up what is not done yet.
    Cancel,
    /// A lane's worker said something.
    Heard(usize, Told),
    /// A lane's worker died; why.
    Died(usize, String),
    /// Start a lane anew.
    Revive(usize),
    /// Explain a request; `None`: the latest.
    Select(Option<RequestId>),
    /// The notices have been read.
    Dismiss,
    /// Prices are being measured, are, or cannot be.
    Bench(Bench),
}

impl State {
    /// The page at an address; `still`: the reader wants no motion.
    pub fn open(query: &str, still: bool) -> State {
        let mut state = State {
            config: Config::default(),
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
            runs: 0,
        };
        state.load(query);
        state
    }

    /// The query of the parameters in force.
    pub fn query(&self) -> String {
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
        let unsettled = self.lanes.iter().filter(|lane| !lane.settled());
        unsettled.map(|lane| lane.progress.at).min().unwrap_or_else(|| self.end())
    }

    /// The end of the longest run, as far as it is known.
    pub fn end(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.progress.at).max().unwrap_or(0)
    }

    /// How far the scale of time reaches: the end, or what it is expected to be.
    pub fn reach(&self) -> u64 {
        if self.settled() { self.end() } else { self.end().max(self.hint) }
    }

    /// Where the replay stops for want of events, where they are not all kept.
    fn last_drawn(&self) -> Option<u64> {
        self.lanes.iter().filter(|lane| lane.truncated()).map(|lane| lane.log.end()).min()
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
                let (config, problems) = from_query(&query);
                if config != self.config || !problems.is_empty() {
                    self.load(&query);
                }
            }
            Action::Edit { key, text } => self.edit(key, text),
            Action::Apply(config) => {
                self.drafts.clear();
                self.config = *config;
                self.restart();
            }
            Action::Restart => self.restart(),
            Action::Play => {
                if self.over() {
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
                self.runs += 1;
                self.paused = false;
                let runs = self.runs;
                if let Some(own) = self.lanes.get_mut(lane) {
                    *own = Lane::new(own.policy, runs);
                }
            }
            Action::Select(request) => self.selected = request,
            Action::Dismiss => self.notices.clear(),
            Action::Bench(bench) => self.bench = bench,
        }
    }

    fn load(&mut self, query: &str) {
        let (config, problems) = from_query(query);
        self.notices = problems.iter().map(ToString::to_string).collect();
        self.drafts.clear();
        self.config = config;
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
        let Some(own) = self.lanes.get_mut(lane) else { return };
        match told {
            Told::Started { run } if run == own.run => own.status = Status::Running,
            Told::Slice { run, progress, events, points } if run == own.run && !own.settled() => {
                own.progress = progress;
                own.log.push(events);
                own.points.push(points);
            }
            Told::Finished { run, finished } if run == own.run && !own.settled() => {
                own.status = Status::Done(finished.into());
                self.settle();
            }
            Told::Failed { message } if !own.settled() => {
                own.status = Status::Dead(message);
                self.settle();
            }
            _ => {}
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
        let (_, recorder) = Experiment::run_priced(config, policy);
        recorder.records().filter_map(|record| record.finished()).map(|end| end.0).max().unwrap_or(0)
    });
    spans.max().unwrap_or(arrivals as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::BackendKind;
    use crate::sim::Event;
    use crate::worker::Trend;

    fn act(state: &mut Rc<State>, action: Action) {
        *state = Rc::clone(state).reduce(action);
    }

    /// Plays a worker: everything it would tell of a lane's run.
    fn told(state: &State, lane: usize, slice: usize) -> Vec<Told> {
        let Lane { run, policy, .. } = state.lanes[lane];
        let config = Config { backend: BackendKind::Modelled, ..from_query(&state.query()).0 };
        let experiment = Experiment::new(config);
        let mut events: Vec<Event> = Vec::new();
        let (mut recorder, mut points) = (experiment.recorder(), Vec::new());
        let mut trend = Trend::new(experiment.config.replicas as usize, experiment.config.objectives());
        experiment.simulation(policy, experiment.modelled_clock()).watch_blocks().run(|event| {
            recorder.observe(&event);
            points.extend(trend.observe(&event));
            events.push(event);
        });
        let mut told = vec![Told::Started { run }];
        for part in events.chunks(slice) {
            let progress = Progress { at: part.last().expect("not empty").at, ..Progress::default() };
            told.push(Told::Slice { run, progress, events: part.to_vec(), points: Vec::new() });
        }
        let summary = experiment.summary(&recorder);
        let finished = Finished { summary, json: String::new(), kv_bytes: 0, wall: 0.0 };
        told.push(Told::Finished { run, finished: Box::new(finished) });
        told
    }

    fn opened(query: &str, still: bool) -> Rc<State> {
        Rc::new(State::open(query, still))
    }

    #[test]
    fn time_waits_for_the_slowest_lane_and_stops_at_the_end() {
        let mut state = opened("", false);
        for lane in [0, 1] {
            for said in told(&state, lane, 50) {
                act(&mut state, Action::Heard(lane, said));
            }
        }
        assert_eq!((state.horizon(), state.starved(), state.settled()), (0, true, false));
        let same = Rc::clone(&state).reduce(Action::Tick(0.1));
        assert!(Rc::ptr_eq(&state, &same), "nothing to show, nothing to draw");
        for said in told(&state, 2, 50).into_iter().take(3) {
            act(&mut state, Action::Heard(2, said));
        }
        act(&mut state, Action::Tick(60.0));
        assert_eq!(state.at, state.horizon());
        assert!(state.at > 0 && state.playing() && !state.over());
        act(&mut state, Action::Died(2, "gone".into()));
        act(&mut state, Action::Tick(60.0));
        assert!(state.over() && !state.playing(), "the other lanes go on to their end");
        assert_eq!(state.lanes[2].status, Status::Dead("gone".into()));
    }

    #[test]
    fn the_replay_takes_about_ten_seconds() {
        let mut state = opened("", false);
        for lane in 0..3 {
            for said in told(&state, lane, 50) {
                act(&mut state, Action::Heard(lane, said));
            }
        }
        assert_eq!(state.hint, state.end(), "the modelled clock says beforehand how long it takes");
        let mut ticks = 0;
        while state.playing() {
            act(&mut state, Action::Tick(0.016));
            ticks += 1;
        }
        assert!((600..650).contains(&ticks), "{ticks}");
        act(&mut state, Action::Play);
        assert_eq!((state.at, state.playing()), (0, true), "play at the end plays again");
    }

    #[test]
    fn what_is_out_of_range_is_refused_and_the_last_value_stays() {
        let mut state = opened("rate=12", false);
        let run = state.lanes[0].run;
        act(&mut state, Action::Edit { key: "replicas", text: "99".into() });
        assert_eq!((state.config.replicas, state.lanes[0].run), (4, run), "nothing is run anew");
        let (text, problem) = state.text("replicas");
        assert!(text == "99" && problem.expect("refused").contains("from 1 to 64"));
        act(&mut state, Action::Edit { key: "replicas", text: "3".into() });
        assert_eq!((state.config.replicas, state.text("replicas")), (3, ("3".into(), None)));
        assert_eq!(state.query(), "rate=12&replicas=3");
        act(&mut state, Action::Edit { key: "user_min", text: "33".into() });
        assert!(state.text("user_min").1.expect("refused").contains("user_min = 33"));
    }

    #[test]
    fn what_an_earlier_run_still_says_is_not_heard() {
        let mut state = opened("", false);
        let late = told(&state, 0, 50);
        act(&mut state, Action::Restart);
        for said in late {
            act(&mut state, Action::Heard(0, said));
        }
        assert_eq!((state.lanes[0].status.clone(), state.lanes[0].log.len()), (Status::Starting, 0));
    }

    #[test]
    fn under_a_stop_watch_lanes_take_turns() {
        let mut state = opened("clock=measured", false);
        let wanted = |state: &State| [0, 1, 2].map(|lane| state.wanted(lane).is_some());
        assert_eq!(wanted(&state), [true, false, false]);
        act(&mut state, Action::Died(0, "gone".into()));
        assert_eq!(wanted(&state), [false, true, false]);
        act(&mut state, Action::Revive(0));
        assert_eq!(wanted(&state), [true, false, false]);
        act(&mut state, Action::Cancel);
        assert_eq!((wanted(&state), state.settled()), ([false; 3], true));
        assert_eq!([0, 1, 2].map(|lane| opened("", false).wanted(lane).is_some()), [true; 3]);
    }

    #[test]
    fn without_motion_only_the_result_is_shown() {
        let mut state = opened("", true);
        for lane in 0..3 {
            for said in told(&state, lane, 50) {
                assert_eq!(state.at, 0);
                act(&mut state, Action::Heard(lane, said));
            }
        }
        assert!(state.over() && !state.playing() && state.at > 0);
        act(&mut state, Action::Seek(5));
        assert_eq!((state.at, state.paused), (5, true));
    }

    #[test]
    fn what_the_address_says_wrong_is_said_and_can_be_dismissed() {
        let mut state = opened("?tenant=3&rate=0&seed=7", false);
        assert_eq!((state.notices.len(), state.config.seed), (2, 7));
        act(&mut state, Action::Dismiss);
        assert!(state.notices.is_empty());
    }
}
