//! What the page and its workers say to each other, and the worker's side of it.
//!
//! One worker a policy for a race, a pool of them for a sweep. The page sends a [`Job`], the worker
//! answers with [`Told`]. A job carries a configuration as a URL's query (or a sweep's plan) and nothing
//! else: the worker draws the same trace from it. Every message names its run, so that what a run that
//! was given up still says is not taken for news.

use serde::{Deserialize, Serialize};

use crate::cost::calibrate::Calibration;
use crate::policy::PolicyKind;
use crate::runlog::Change;
use crate::sim::{Event, Summary};
use crate::sweep::{Done, Equivalents, Plan};

#[cfg(target_arch = "wasm32")]
mod bench;
#[cfg(target_arch = "wasm32")]
mod fork;
#[cfg(target_arch = "wasm32")]
mod run;
#[cfg(target_arch = "wasm32")]
mod sweep;
mod trend;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
pub mod wire;

#[cfg(target_arch = "wasm32")]
pub use run::start;
pub use trend::{Point, Trend};

/// The most events of one run that are kept for the replay; the figures count all.
pub const MAX_EVENTS: usize = 10_000;

/// What the page asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Job {
    /// Run a configuration under one policy.
    Race {
        /// The run's number.
        run: u32,
        /// The configuration, as a URL's query.
        query: String,
        /// Under which policy.
        policy: PolicyKind,
    },
    /// Run a configuration under one policy up to a moment, and from there on with a change; and once
    /// without it.
    Fork {
        /// The run's number.
        run: u32,
        /// The configuration, as a URL's query.
        query: String,
        /// Under which policy up to the moment.
        policy: PolicyKind,
        /// The moment, in picoseconds.
        at: u64,
        /// What is different from then on.
        change: Change,
    },
    /// Run some jobs of a sweep, one after the other.
    Sweep {
        /// The sweep's number.
        run: u32,
        /// The sweep.
        plan: Box<Plan>,
        /// Which of its jobs.
        jobs: Vec<u64>,
    },
    /// Look for the number of replicas under one policy that are worth the configuration's under another,
    /// seed by seed.
    Equivalents {
        /// The scan's number.
        run: u32,
        /// What is asked.
        ask: Box<Ask>,
        /// The seeds.
        seeds: Vec<u64>,
    },
    /// Measure what TinyGPT's passes take on this machine.
    Calibrate,
    /// Stop between two steps.
    Pause,
    /// Go on.
    Resume,
    /// Forget the run.
    Stop,
}

/// What a scan for replica-equivalents is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The configuration, as a URL's query; its backend is modelled.
    pub query: String,
    /// The policy that is to be reached.
    pub of: PolicyKind,
    /// The policy that is to reach it.
    pub by: PolicyKind,
    /// The most replicas that are tried.
    pub cap: u32,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Requests that have arrived.
    pub arrived: u32,
    /// Requests that were finished or refused.
    pub finished: u32,
    /// Requests there are.
    pub of: u32,
    /// Everything up to here has been computed, in picoseconds of simulated time.
    pub at: u64,
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Its figures.
    pub summary: Summary,
    /// The same with the configuration, as the command line writes it.
    pub json: String,
    /// Bytes of keys and values that were held at the end; zero without tensors.
    pub kv_bytes: u64,
    /// Bytes of the model's weights, packed; zero without tensors.
    pub weight_bytes: u64,
    /// Bytes of memory that the worker has taken in all.
    pub memory_bytes: u64,
    /// How long it took to compute, in seconds of this machine's time.
    pub wall: f64,
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Told {
    /// It has loaded and listens.
    Ready,
    /// It has taken up a run.
    Started {
        /// The run's number.
        run: u32,
    },
    /// It is alive and has come so far.
    Slice {
        /// The run's number.
        run: u32,
        /// How far.
        progress: Progress,
        /// What happened since the last slice.
        events: Vec<Event>,
        /// How the figures changed.
        points: Vec<Point>,
    },
    /// What a run that is forked comes to without the change.
    Original {
        /// The number of the fork's run.
        run: u32,
        /// Its figures.
        summary: Box<Summary>,
    },
    /// A run is over.
    Finished {
        /// The run's number.
        run: u32,
        /// What came of it.
        finished: Box<Finished>,
    },
    /// Jobs of a sweep that are done.
    Swept {
        /// The sweep's number.
        run: u32,
        /// What they came to.
        done: Vec<Done>,
    },
    /// A scan that is done.
    Equivalent {
        /// The scan's number.
        run: u32,
        /// What was found.
        found: Box<Equivalents>,
    },
    /// So many of so many measurements are done.
    Measured {
        /// Done.
        done: u32,
        /// Of.
        of: u32,
    },
    /// The measurements, and the constants that explain them.
    Calibrated(Box<Calibration>),
    /// It cannot go on.
    Failed {
        /// Why.
        message: String,
    },
    /// The race cannot be run as it is asked for; why.
    Refused {
        /// In words.
        message: String,
    },
}
