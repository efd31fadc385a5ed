//! The workers: one a lane, and one that measures. Makes them do what the state wants, and reports
//! what they say; one that dies is reported too.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wasm_bindgen::prelude::*;
use yew::Callback;

use super::dom;
use super::state::{Action, Bench, State, Status};
use crate::worker::{Job, Told, wire};

/// A worker that says nothing for so long while it should be computing is taken for dead, in
/// milliseconds.
const SILENCE: f64 = 15_000.0;
/// The same for one that has not yet said that it took a race up, which it does before it computes.
const ANSWER: f64 = 5_000.0;
/// The same for one that is still being loaded.
const LOADING: f64 = 30_000.0;

/// One worker and what was asked of it.
struct Hand {
    worker: web_sys::Worker,
    /// Jobs for when it listens; `None`: it does.
    queue: Rc<RefCell<Option<Vec<Job>>>>,
    heard: Rc<Cell<f64>>,
    given: Option<u32>,
    /// Whether a race was asked for that it has not come to the end of.
    busy: Rc<Cell<bool>>,
    /// Whether it has said nothing since it was last asked for a race.
    unanswered: Rc<Cell<bool>>,
    paused: bool,
    // What the browser calls; they live as long as the worker.
    _hear: Closure<dyn FnMut(web_sys::MessageEvent)>,
    _fail: Closure<dyn FnMut(web_sys::Event)>,
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

/// The worker's address, which index.html tells.
fn address() -> Option<String> {
    let meta = dom::document().query_selector("meta[name=worker]").ok()??;
    let base = dom::document().base_uri().ok()??;
    Some(web_sys::Url::new_with_base(&meta.get_attribute("content")?, &base).ok()?.href())
}

impl Hand {
    fn hire(tell: impl Fn(Told) + 'static, died: impl Fn(String) + 'static) -> Option<Hand> {
        let options = web_sys::WorkerOptions::new();
        options.set_type(web_sys::WorkerType::Module);
        let worker = web_sys::Worker::new_with_options(&address()?, &options).ok()?;
        let queue = Rc::new(RefCell::new(Some(Vec::new())));
        let heard = Rc::new(Cell::new(dom::now()));
        let (busy, unanswered) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let hear = {
            let (queue, heard, worker) = (queue.clone(), heard.clone(), worker.clone());
            let (busy, unanswered) = (busy.clone(), unanswered.clone());
            Closure::<dyn FnMut(_)>::new(move |event: web_sys::MessageEvent| {
                heard.set(dom::now());
                match wire::decode(event.data()) {
                    Some(Told::Ready) => {
                        for job in queue.borrow_mut().take().into_iter().flatten() {
                            let _ = worker.post_message(&wire::encode(&job));
                        }
                    }
                    Some(told) => {
                        unanswered.set(false);
                        if matches!(told, Told::Finished { .. } | Told::Failed { .. } | Told::Refused { .. })
                        {
                            busy.set(false);
                        }
                        tell(told);
                    }
                    None => {}
                }
            })
        };
        worker.set_onmessage(Some(hear.as_ref().unchecked_ref()));
        let fail = Closure::<dyn FnMut(_)>::new(move |event: web_sys::Event| {
            let message = event.dyn_ref::<web_sys::ErrorEvent>().map(web_sys::ErrorEvent::message);
            died(match message.filter(|m| !m.is_empty()) {
                Some(message) => format!("Its worker failed: {message}"),
                None => "Its worker could not be loaded.".into(),
            });
        });
        worker.set_onerror(Some(fail.as_ref().unchecked_ref()));
        Some(Hand {
            worker,
            queue,
            heard,
            given: None,
            busy,
            unanswered,
            paused: false,
            _hear: hear,
            _fail: fail,
        })
    }

    fn ask(&self, job: Job) {
        self.heard.set(dom::now());
        match &mut *self.queue.borrow_mut() {
            Some(queue) => queue.push(job),
            None => {
                let _ = self.worker.post_message(&wire::encode(&job));
            }
        }
    }
}

/// All workers of the page.
pub struct Crew {
    dispatch: Callback<Action>,
    hands: Vec<Option<Hand>>,
    bench: Option<Hand>,
}

impl Crew {
    /// Nobody yet.
    pub fn new(dispatch: Callback<Action>) -> Crew {
        Crew { dispatch, hands: Vec::new(), bench: None }
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
        match (&state.bench, &self.bench) {
            (Bench::Running(..), None) => self.measure(),
            (Bench::Running(..), Some(_)) | (_, None) => {}
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

    fn measure(&mut self) {
        let (tell, died) = (self.dispatch.clone(), self.dispatch.clone());
        self.bench = Hand::hire(
            move |told| match told {
                Told::Measured { done, of } => tell.emit(Action::Bench(Bench::Running(done, of))),
                Told::Calibrated(found) => tell.emit(Action::Bench(Bench::Done(found.into()))),
                Told::Failed { message } => tell.emit(Action::Bench(Bench::Failed(message))),
                _ => {}
            },
            move |why| died.emit(Action::Bench(Bench::Failed(why))),
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
            self.hands.iter().flatten().for_each(|hand| hand.heard.set(dom::now()));
            return;
        }
        for (lane, hand) in self.hands.iter().enumerate() {
            let Some(hand) = hand else { continue };
            let patience = match (hand.queue.borrow().is_some(), hand.unanswered.get()) {
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

    /// Ends a worker without telling anybody, as a browser short of memory may.
    pub fn kill(&self, lane: usize) {
        if let Some(hand) = self.hands.get(lane).and_then(Option::as_ref) {
            hand.worker.terminate();
        }
    }
}
