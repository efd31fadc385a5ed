//! The race's workers: one a lane, one that runs its fork, and one that measures. Makes them do what the state wants, and reports
//! what they say; one that dies is reported too.

use std::cell::Cell;
use std::rc::Rc;

use yew::Callback;

use super::dom;
use super::fork::Act;
use super::hand::{ANSWER, Hand, LOADING, SILENCE};
use super::state::{Action, Bench, State, Status};
use crate::worker::{Job, Told};

/// All of them.
pub struct Crew {
    dispatch: Callback<Action>,
    hands: Vec<Option<Hand>>,
    fork: Option<Hand>,
    bench: Option<Hand>,
    /// Whether the one that measures has failed: the next measurement takes a new one, however soon it is asked for.
    failed: Rc<Cell<bool>>,
}

impl Crew {
    /// Nobody yet.
    pub fn new(dispatch: Callback<Action>) -> Crew {
        Crew { dispatch, hands: Vec::new(), fork: None, bench: None, failed: Rc::default() }
    }

    /// Whether there is nobody yet.
    pub fn is_empty(&self) -> bool {
        self.hands.is_empty()
    }

    /// Makes the workers do what the state wants.
    pub fn sync(&mut self, state: &State) {
        self.hands.truncate(state.lanes.len());
        self.hands.resize_with(state.lanes.len(), || None);
        for lane in 0..state.lanes.len() {
            self.sync_lane(state, lane);
        }
        self.sync_fork(state);
        match (&state.bench, &self.bench) {
            (Bench::Running(..), own) if own.is_none() || self.failed.get() => self.measure(),
            (Bench::Running(..), _) | (_, None) => {}
            _ => self.bench = None,
        }
    }

    fn sync_lane(&mut self, state: &State, lane: usize) {
        let Some(run) = state.wanted(lane) else {
            match state.lanes[lane].status {
                // Its worker is of no more use, or computes what nobody wants.
                Status::Dead(_) | Status::Cancelled => self.hands[lane] = None,
                _ => {
                    if let Some(hand) = &mut self.hands[lane]
                        && hand.given.take().is_some()
                    {
                        hand.ask(Job::Stop);
                    }
                }
            }
            return;
        };
        // One that is still at an earlier run may be dead: a new one takes the next.
        if self.hands[lane].as_ref().is_some_and(|hand| hand.given != Some(run) && hand.busy.get()) {
            self.hands[lane] = None;
        }
        if self.hands[lane].is_none() {
            let (tell, died) = (self.dispatch.clone(), self.dispatch.clone());
            self.hands[lane] = Hand::hire(
                move |told| tell.emit(Action::Heard(lane, told)),
                move |why| died.emit(Action::Died(lane, why)),
            );
        }
        let Some(hand) = &mut self.hands[lane] else {
            self.dispatch.emit(Action::Died(lane, "This browser starts no workers.".into()));
            return;
        };
        if hand.given != Some(run) {
            hand.given = Some(run);
            hand.paused = false;
            hand.busy.set(true);
            hand.unanswered.set(true);
            hand.ask(Job::Race { run, query: state.race_query(), policy: state.lanes[lane].policy });
        }
        if hand.paused != state.paused {
            hand.paused = state.paused;
            hand.ask(if state.paused { Job::Pause } else { Job::Resume });
        }
    }

    /// The fork's worker is hired for one run and then dismissed.
    fn sync_fork(&mut self, state: &State) {
        let wanted = state.fork.as_ref().and_then(|fork| Some((fork, fork.wanted()?)));
        let Some((fork, run)) = wanted else {
            self.fork = None;
            return;
        };
        if self.fork.as_ref().is_some_and(|hand| hand.given == Some(run)) {
            return;
        }
        let (tell, died) = (self.dispatch.clone(), self.dispatch.clone());
        self.fork = Hand::hire(
            move |told| tell.emit(Action::Fork(Act::Heard(told))),
            move |why| died.emit(Action::Fork(Act::Died(why))),
        );
        let Some(hand) = &mut self.fork else {
            return self.dispatch.emit(Action::Fork(Act::Died("This browser starts no workers.".into())));
        };
        hand.given = Some(run);
        let (query, policy) = (state.race_query(), fork.of.1);
        hand.ask(Job::Fork { run, query, policy, at: fork.at, change: fork.change.clone() });
    }

    fn measure(&mut self) {
        let (tell, died) = (self.dispatch.clone(), self.dispatch.clone());
        self.failed = Rc::default();
        let (failed, dead) = (self.failed.clone(), self.failed.clone());
        self.bench = Hand::hire(
            move |told| match told {
                Told::Measured { done, of } => tell.emit(Action::Bench(Bench::Running(done, of))),
                Told::Calibrated(found) => tell.emit(Action::Bench(Bench::Done(found.into()))),
                Told::Failed { message } => {
                    failed.set(true);
                    tell.emit(Action::Bench(Bench::Failed(message)));
                }
                _ => {}
            },
            move |why| {
                dead.set(true);
                died.emit(Action::Bench(Bench::Failed(why)));
            },
        );
        match &self.bench {
            Some(hand) => hand.ask(Job::Calibrate),
            None => {
                self.dispatch.emit(Action::Bench(Bench::Failed("This browser starts no workers.".into())))
            }
        }
    }

    /// Reports whoever has been silent for too long.
    pub fn watch(&self) {
        if dom::document().hidden() {
            // A hidden page's workers may be slowed down; they are not dead for that.
            self.hands.iter().chain([&self.fork]).flatten().for_each(|hand| hand.heard.set(dom::now()));
            return;
        }
        if let Some(hand) = &self.fork {
            let patience = if hand.loading() { LOADING } else { ANSWER };
            if dom::now() - hand.heard.get() > patience {
                let why = format!("Its worker has said nothing for {:.0} seconds.", patience / 1000.0);
                self.dispatch.emit(Action::Fork(Act::Died(why)));
            }
        }
        for (lane, hand) in self.hands.iter().enumerate() {
            let Some(hand) = hand else { continue };
            let patience = match (hand.loading(), hand.unanswered.get()) {
                (true, _) => LOADING,
                (false, true) => ANSWER,
                (false, false) => SILENCE,
            };
            if hand.given.is_some() && !hand.paused && dom::now() - hand.heard.get() > patience {
                let why = format!("Its worker has said nothing for {:.0} seconds.", patience / 1000.0);
                self.dispatch.emit(Action::Died(lane, why));
            }
        }
    }

    /// Ends a worker without telling anybody, as a browser short of memory may; the fork's is the one after
    /// the lanes'.
    pub fn kill(&self, lane: usize) {
        let hand = if lane == self.hands.len() { Some(&self.fork) } else { self.hands.get(lane) };
        if let Some(hand) = hand.and_then(Option::as_ref) {
            hand.kill();
        }
    }
}
