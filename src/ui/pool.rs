//! The pool: workers that share out the jobs of a sweep or a scan. One that dies or goes silent is
//! replaced, and what it had is given out again.
//!
//! They are hired when there is something to do, and dismissed when it is done or given up.

use std::cell::RefCell;
use std::rc::Rc;

use yew::Callback;

use super::dom;
use super::hand::{Hand, LOADING, SILENCE};
use super::state::Action;
use super::study::deal::Deal;
use super::study::{Act, Task};
use crate::sweep::{Done, Equivalents};
use crate::worker::{Job, Told};

/// The most workers.
const MOST: usize = 8;

/// How often the page hears of what was done, in milliseconds.
const NEWS: f64 = 200.0;

/// Milliseconds of patience for each run of a request, on top of [`SILENCE`]: a job of many says nothing
/// before its end.
const A_REQUEST: f64 = 0.3;

/// How many workers there are for so many jobs: one less than the machine has processors.
pub fn size(jobs: usize) -> usize {
    dom::processors().saturating_sub(1).min(MOST).min(jobs).max(1)
}

/// The page's pool.
pub struct Pool {
    dispatch: Callback<Action>,
    shift: Option<Rc<RefCell<Shift>>>,
}

/// The workers at one task.
struct Shift {
    number: u32,
    task: Task,
    deal: Deal,
    hands: Vec<Option<Hand>>,
    /// Workers whose end was seen in a callback of their own, which must not be dropped in it.
    dismissed: Vec<Hand>,
    swept: Vec<Done>,
    found: Vec<Equivalents>,
    told: f64,
    dispatch: Callback<Action>,
}

impl Pool {
    /// Nobody yet.
    pub fn new(dispatch: Callback<Action>) -> Pool {
        Pool { dispatch, shift: None }
    }

    /// Makes the workers do what is wanted, and nothing else.
    pub fn sync(&mut self, wanted: Option<(u32, Task)>) {
        let at = self.shift.as_ref().map(|shift| shift.borrow().number);
        if wanted.as_ref().map(|(number, _)| *number) == at {
            return;
        }
        self.shift = wanted.map(|(number, task)| Shift::begin(number, task, self.dispatch.clone()));
    }

    /// Replaces whoever has been silent for too long, and passes on what was not told yet.
    pub fn watch(&self) {
        let Some(shift) = &self.shift else { return };
        let silent = shift.borrow_mut().silent();
        for (at, patience) in silent {
            let why = format!("It has said nothing for {:.0} seconds.", patience / 1000.0);
            Shift::died(shift, at, &why);
        }
        shift.borrow_mut().tell(true);
    }

    /// Ends a worker without telling anybody, as a browser short of memory may.
    pub fn kill(&self, at: usize) {
        if let Some(shift) = &self.shift
            && let Some(hand) = shift.borrow().hands.get(at).and_then(Option::as_ref)
        {
            hand.kill();
        }
    }
}

impl Shift {
    fn begin(number: u32, task: Task, dispatch: Callback<Action>) -> Rc<RefCell<Shift>> {
        let jobs = task.jobs();
        let workers = size(jobs.len());
        let shift = Rc::new(RefCell::new(Shift {
            number,
            task,
            deal: Deal::new(jobs, workers),
            hands: (0..workers).map(|_| None).collect(),
            dismissed: Vec::new(),
            swept: Vec::new(),
            found: Vec::new(),
            told: dom::now(),
            dispatch,
        }));
        for at in 0..workers {
            Shift::hire(&shift, at);
        }
        shift
    }

    /// Hires a worker for a place, and gives it something to do.
    fn hire(shift: &Rc<RefCell<Shift>>, at: usize) {
        let (hears, fails) = (Rc::downgrade(shift), Rc::downgrade(shift));
        let hand = Hand::hire(
            move |told| {
                if let Some(shift) = hears.upgrade() {
                    Shift::hear(&shift, at, told);
                }
            },
            move |why| {
                if let Some(shift) = fails.upgrade() {
                    Shift::died(&shift, at, &why);
                }
            },
        );
        let mut shift = shift.borrow_mut();
        if hand.is_none() {
            return shift.stop("This browser starts no workers.".into());
        }
        shift.hands[at] = hand;
        shift.give(at);
    }

    /// Gives a worker that has nothing to do its next jobs.
    fn give(&mut self, at: usize) {
        let Some(Some(hand)) = self.hands.get(at) else { return };
        let batch = self.deal.next(at);
        if batch.is_empty() {
            return;
        }
        let run = self.number;
        hand.ask(match &self.task {
            Task::Sweep(plan) => Job::Sweep { run, plan: Box::new((**plan).clone()), jobs: batch },
            Task::Scan(ask, _) => Job::Equivalents { run, ask: Box::new((**ask).clone()), seeds: batch },
        });
    }

    fn hear(shift: &Rc<RefCell<Shift>>, at: usize, told: Told) {
        if let Told::Failed { message } = &told {
            return Shift::died(shift, at, message);
        }
        let mut own = shift.borrow_mut();
        match told {
            Told::Swept { run, done } if run == own.number => {
                for one in done {
                    if own.deal.done(at, one.job) {
                        own.swept.push(one);
                    }
                }
            }
            Told::Equivalent { run, found } if run == own.number => {
                if own.deal.done(at, found.seed) {
                    own.found.push(*found);
                }
            }
            Told::Refused { message } => return own.stop(message),
            _ => return,
        }
        if !own.deal.busy(at) {
            own.give(at);
        }
        let over = own.deal.over();
        own.tell(over);
    }

    /// Passes on what was done, where that is due.
    fn tell(&mut self, now: bool) {
        if !now && dom::now() - self.told < NEWS {
            return;
        }
        self.told = dom::now();
        if !self.swept.is_empty() {
            let done = core::mem::take(&mut self.swept);
            self.dispatch.emit(Action::Study(Act::Swept(self.number, done)));
        }
        if !self.found.is_empty() {
            let found = core::mem::take(&mut self.found);
            self.dispatch.emit(Action::Study(Act::Found(self.number, found)));
        }
    }

    /// A worker is gone: another takes its place, unless a job has lost its second one.
    fn died(shift: &Rc<RefCell<Shift>>, at: usize, why: &str) {
        {
            let mut own = shift.borrow_mut();
            let Some(hand) = own.hands.get_mut(at).and_then(Option::take) else { return };
            hand.dismiss();
            own.dismissed.push(hand);
            if let Err(job) = own.deal.died(at) {
                let job = own.task.job(job);
                return own.stop(format!("two workers died at {job}. {why}"));
            }
        }
        Shift::hire(shift, at);
    }

    /// Ends all workers and says why.
    fn stop(&mut self, why: String) {
        for hand in self.hands.iter_mut().filter_map(Option::take) {
            hand.dismiss();
            self.dismissed.push(hand);
        }
        self.tell(true);
        self.dispatch.emit(Action::Study(Act::Failed(self.number, why)));
    }

    /// Workers that have been silent for too long, and for how long that is.
    fn silent(&mut self) -> Vec<(usize, f64)> {
        self.dismissed.clear();
        let hidden = dom::document().hidden();
        let patience = SILENCE + A_REQUEST * self.task.requests() as f64;
        let mut silent = Vec::new();
        for (at, hand) in self.hands.iter().enumerate() {
            let Some(hand) = hand else { continue };
            let patience = if hand.loading() { LOADING } else { patience };
            if hidden {
                // A hidden page's workers may be slowed down; they are not dead for that.
                hand.heard.set(dom::now());
            } else if self.deal.busy(at) && dom::now() - hand.heard.get() > patience {
                silent.push((at, patience));
            }
        }
        silent
    }
}
