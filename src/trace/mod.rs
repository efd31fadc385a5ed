//! What arrives: requests with their arrival times, prompts and budgets.
//!
//! [`generate`] makes traces, one file per shape; [`import`] reads them, one file per format, and [`export`] writes them.
//! A [`Log`] is a trace with its sessions, to be cut, joined, thinned and stretched.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::units::Time;

pub mod export;
pub mod generate;
pub mod import;
mod log;
mod prompt;
mod spread;

pub use log::{Log, NO_SESSION};
pub use prompt::{BlockIds, Content, Contents, Prompt};

/// A token id. Prompts use 0 … 2³¹ − 1; the modelled backend's own outputs lie above.
pub type Token = u32;

/// One request as it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSpec {
    /// When it was sent, whatever the server was doing then (an open loop).
    pub arrival: Time,
    /// What it asks.
    pub prompt: Prompt,
    /// How many tokens it may generate at most. Zero is refused by the engine, not by the reader.
    pub max_tokens: u64,
    /// Index into [`Trace::tenants`].
    pub tenant: Option<u32>,
    /// What a modelled replica answers, where the trace says so.
    pub output: Option<Arc<[Token]>>,
}

/// A tenant as the trace names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TenantName {
    /// Named by a number, as generated traces do.
    Number(i64),
    /// Named by a text.
    Text(String),
}

impl core::fmt::Display for TenantName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            TenantName::Number(n) => write!(f, "{n}"),
            TenantName::Text(s) => f.write_str(s),
        }
    }
}

/// Requests in order of arrival (a tie keeps the order they were given in).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The requests; a request's index here is its id everywhere else.
    pub requests: Vec<RequestSpec>,
    /// Tenants by first appearance (generated traces: by number).
    pub tenants: Vec<TenantName>,
}

impl Trace {
    /// Puts the requests in order of arrival, ties as they stand.
    pub fn sorted(mut self) -> Trace {
        self.requests.sort_by_key(|r| r.arrival);
        self
    }

    /// Tokens that one of its prompts' [items](Prompt::items) stands for: the same in every request.
    pub fn tokens_per_item(&self) -> usize {
        self.requests.first().map_or(1, |request| request.prompt.tokens_per_item())
    }
}
