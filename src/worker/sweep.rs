//! The jobs of a sweep and of a scan for replica-equivalents: no tensors, no clock, one after the other.
//!
//! Between two of them the worker listens; one that is longer than the reader's patience ends with its worker.

use super::run::{SLICE, listen, seconds, tell};
use super::{Ask, Told};
use crate::params::{Config, from_query};
use crate::sweep::{Plan, equivalents};

/// Runs jobs of a sweep, and tells what they came to as they end; those that are short, several at once.
pub(super) async fn points(run: u32, plan: Box<Plan>, jobs: Vec<u64>) {
    let mut jobs = jobs.into_iter().peekable();
    while jobs.peek().is_some() {
        if !listen(run).await {
            return;
        }
        let start = seconds();
        let mut done = Vec::new();
        for job in jobs.by_ref() {
            match plan.run(None, job) {
                Ok(one) => done.push(one),
                Err(problem) => return tell(&Told::Refused { message: problem.to_string() }),
            }
            if seconds() - start >= SLICE {
                break;
            }
        }
        tell(&Told::Swept { run, done });
    }
}

/// Scans one seed after the other, and tells of each what was found.
pub(super) async fn equals(run: u32, ask: Box<Ask>, seeds: Vec<u64>) {
    let (config, problems) = from_query(&ask.query);
    if let Some(problem) = problems.first() {
        return tell(&Told::Refused { message: problem.to_string() });
    }
    for seed in seeds {
        if !listen(run).await {
            return;
        }
        let config = Config { seed, ..config.clone() };
        match equivalents(&config, None, ask.of, ask.by, ask.cap) {
            Ok(found) => tell(&Told::Equivalent { run, found: Box::new(found) }),
            Err(problem) => return tell(&Told::Refused { message: problem.to_string() }),
        }
    }
}
