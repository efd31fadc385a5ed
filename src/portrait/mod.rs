//! A trace's portrait, before anything is run: when requests arrive, how long they are, and what of their prompts
//! could be reused.
//!
//! Everything is counted from the trace alone, with one cache that all requests go through in order of arrival and
//! no scheduler: [`Reuse::ideal`] is what no router and no replica can exceed.

use serde::Serialize;

use crate::trace::Log;

mod arrivals;
mod lengths;
mod reuse;
mod text;

pub use arrivals::Arrivals;
pub use lengths::{Lengths, Percentiles};
pub use reuse::{CurvePoint, Reuse, Skew};

/// Tokens of the blocks that prompts of tokens are cut into.
pub const BLOCK: usize = 16;

/// What a trace is like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Portrait {
    /// Requests.
    pub requests: usize,
    /// Tenants that are named.
    pub tenants: usize,
    /// Requests that belong together.
    pub sessions: Sessions,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// Tokens of prompts.
    pub input: Lengths,
    /// Tokens of outputs.
    pub output: Lengths,
    /// What prompts have in common.
    pub reuse: Reuse,
}

/// Requests that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sessions {
    /// How many.
    pub count: u32,
    /// Whether the trace names them; else they are told by how prompts begin.
    pub named: bool,
    /// Requests of one in the mean; null without any.
    pub mean_requests: Option<f64>,
    /// Requests of the largest.
    pub most_requests: u32,
}

impl Portrait {
    /// Of a trace.
    pub fn of(log: &Log) -> Portrait {
        let requests = &log.trace.requests;
        let (of, count) = log.all_sessions();
        let mut sizes = vec![0u32; count as usize];
        for session in of {
            sizes[session as usize] += 1;
        }
        let mean = (count > 0).then(|| requests.len() as f64 / f64::from(count));
        Portrait {
            requests: requests.len(),
            tenants: log.trace.tenants.len(),
            sessions: Sessions {
                count,
                named: log.names_sessions(),
                mean_requests: mean,
                most_requests: sizes.into_iter().max().unwrap_or(0),
            },
            arrivals: Arrivals::of(&log.trace),
            input: Lengths::of(requests.iter().map(|r| r.prompt.len() as u64)),
            output: Lengths::of(requests.iter().map(|r| r.max_tokens)),
            reuse: Reuse::of(&log.trace),
        }
    }

    /// As JSON, with a line's end.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a portrait holds no map") + "\n"
    }
}
