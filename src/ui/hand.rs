//! One worker, as the page holds it: what it was asked, when it was last heard, and its end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wasm_bindgen::prelude::*;

use super::dom;
use crate::worker::{Job, Told, wire};

/// A worker that says nothing for so long while it should be computing is taken for dead, in
/// milliseconds.
pub const SILENCE: f64 = 15_000.0;
/// The same for one that has not yet said that it took a race up, which it does before it computes.
pub const ANSWER: f64 = 5_000.0;
/// The same for one that is still being loaded.
pub const LOADING: f64 = 30_000.0;

/// One worker and what was asked of it.
pub struct Hand {
    worker: web_sys::Worker,
    /// Jobs for when it listens; `None`: it does.
    queue: Rc<RefCell<Option<Vec<Job>>>>,
    /// When it was last heard or asked, in milliseconds of the page's clock.
    pub heard: Rc<Cell<f64>>,
    /// The race that it was given.
    pub given: Option<u32>,
    /// Whether a race was asked for that it has not come to the end of.
    pub busy: Rc<Cell<bool>>,
    /// Whether it has said nothing since it was last asked for a race.
    pub unanswered: Rc<Cell<bool>>,
    /// Whether it was told to pause.
    pub paused: bool,
    // What the browser calls; they live as long as the worker.
    _hear: Closure<dyn FnMut(web_sys::MessageEvent)>,
    _fail: Closure<dyn FnMut(web_sys::Event)>,
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// The worker's address, which index.html tells.
fn address() -> Option<String> {
    let meta = dom::document().query_selector("meta[name=worker]").ok()??;
    let base = dom::document().base_uri().ok()??;
    Some(web_sys::Url::new_with_base(&meta.get_attribute("content")?, &base).ok()?.href())
}

impl Hand {
    /// A worker that is being loaded. `tell` hears what it says, `died` that it failed, and why; `None`:
    /// this browser starts none.
    pub fn hire(tell: impl Fn(Told) + 'static, died: impl Fn(String) + 'static) -> Option<Hand> {
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

    /// Asks for something, now or once it listens.
    pub fn ask(&self, job: Job) {
        self.heard.set(dom::now());
        match &mut *self.queue.borrow_mut() {
            Some(queue) => queue.push(job),
            None => {
                let _ = self.worker.post_message(&wire::encode(&job));
            }
        }
    }

    /// Whether it is still being loaded.
    pub fn loading(&self) -> bool {
        self.queue.borrow().is_some()
    }

    /// Ends it at once; nothing it said is heard any more.
    pub fn dismiss(&self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }

    /// Ends it without telling anybody, as a browser short of memory may.
    pub fn kill(&self) {
        self.worker.terminate();
    }
}
