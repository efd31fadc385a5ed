//! warmroute: which replica should get this request?
//!
//! A real, tiny transformer behind a paged, prefix-shared KV cache; a fleet of such replicas behind
//! a router; and the same scheduler without tensors, as a simulator. One experiment, run natively by
//! the `warmroute` command and in the browser by the page.
//!
//! # Layout
//!
//! In reading order; each module uses only those above it.
//!
//! - [`units`]: instants and spans in whole picoseconds, bytes, rates.
//! - [`trace`]: what arrives, made to a shape or read from a file.
//! - [`model`]: TinyGPT: configuration, weights, kernels, forward pass.
//! - [`kv`]: the block pool with prefix sharing, and the memory behind it.
//! - [`policy`]: which replica gets a request, and why.
//! - [`engine`]: one replica: continuous batching, preemption, and what computes a step.
//! - [`cost`]: what a step costs in simulated time.
//! - [`router`]: who decides, and on what it knows of the replicas.
//! - [`fleet`]: replicas behind routers, with the interface of one engine.
//! - [`sim`]: the event loop, the record of each request, the summary.
//! - [`params`]: every parameter once, for controls, URL, command line and help.
//! - [`experiment`]: a configuration made into runs.
//! - [`runlog`]: what happened in a run, kept small: the state at any time, and other futures.
//! - [`chapter`]: the published run that the default price is fitted to, and how near it comes.
//! - [`report`]: results as JSON and tables.
//! - [`compare`]: any policies on one trace, where two first differ, what a threshold trades.
//! - [`scenario`]: what users of the routers reported, as runs.
//! - [`take_home`]: a policy's parameters as the real router's configuration.
//! - [`portrait`]: what a trace is like, before anything is run.
//! - [`sweep`]: one or two parameters over their values × policies × seeds; replica-equivalents.
//! - [`coldstart`]: how long a new replica's weights take to arrive.
//! - [`autoscale`]: more replicas and fewer: signals, scalers, lives, and what a run was worth.
//! - [`plot`]: charts over time, drawn onto whatever can draw lines and texts.
//! - `cli` (native only): the command line.
//! - [`worker`]: what the page and its workers say to each other; a run in slices.
//! - [`ui`]: the page: its state, the replay of a run, and its components (on wasm32, and with the feature `prerender`).

pub mod autoscale;
pub mod chapter;
#[cfg(not(target_arch = "wasm32"))]
pub mod cli;
pub mod coldstart;
pub mod compare;
pub mod cost;
pub mod engine;
pub mod experiment;
pub mod fleet;
pub mod kv;
pub mod model;
pub mod params;
pub mod plot;
pub mod policy;
pub mod portrait;
pub mod report;
pub mod router;
pub mod runlog;
pub mod scenario;
pub mod sim;
pub mod sweep;
pub mod take_home;
pub mod trace;
pub mod ui;
pub mod units;
pub mod worker;
