//! Who computed which prefix, and where a run's prompt tokens came from.

use crate::experiment::Experiment;
use crate::params::{BackendKind, Config};
use crate::policy::PolicyKind;
use crate::sim::{Outcome, Summary};
use crate::trace::generate::system_prompt;

/// What replicas had to do with each tenant's system prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefixes {
    /// By tenant and replica: requests, and those of them whose system prompt was computed from nothing.
    pub cells: Vec<Vec<(u32, u32)>>,
    /// Requests.
    pub requests: u32,
    /// Those whose system prompt was computed from nothing.
    pub cold: u32,
    /// Tenants that sent anything: so often would have been enough.
    pub tenants: u32,
    /// Prompt tokens by where they came from.
    pub tokens: Tokens,
    /// All other figures.
    pub summary: Summary,
}

/// Prompt tokens by where they came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Found in the cache.
    pub cached: u64,
    /// System prompts that had to be computed.
    pub system: u64,
    /// Questions, and what of a system prompt fills no whole block with them: nobody has those before.
    pub own: u64,
}

impl Tokens {
    /// All.
    pub fn all(&self) -> u64 {
        self.cached + self.system + self.own
    }
}

/// The configuration's trace under a policy, without tensors, at its price.
///
/// `None` where it does not fit the clock.
pub fn prefixes(config: &Config, policy: PolicyKind) -> Option<Prefixes> {
    let config = Config { backend: BackendKind::Modelled, ..config.clone() };
    let (trace, recorder) = Experiment::run_priced(&config, policy).ok()?;
    let block = config.block_size as usize;
    // What of each system prompt fills whole blocks: the most that can ever be found again.
    let shared: Vec<usize> = (0..config.tenants as usize)
        .map(|t| system_prompt(t, config.seed).len() * config.repeat as usize / block * block)
        .collect();
    let mut cells = vec![vec![(0, 0); config.replicas as usize]; config.tenants as usize];
    let (mut tokens, mut requests, mut cold) = (Tokens::default(), 0, 0);
    for record in recorder.records() {
        let (Outcome::Served { replica, cached, .. }, Some(tenant)) = (&record.outcome, record.tenant) else {
            continue;
        };
        let cell: &mut (u32, u32) = &mut cells[tenant as usize][*replica as usize];
        cell.0 += 1;
        requests += 1;
        if *cached == 0 {
            cell.1 += 1;
            cold += 1;
        }
        let shared = shared[tenant as usize].min(record.prompt as usize) as u64;
        let cached = u64::from(*cached);
        tokens.cached += cached;
        tokens.system += shared.saturating_sub(cached);
        tokens.own += u64::from(record.prompt) - cached.max(shared);
    }
    let tenants = cells.iter().filter(|row| row.iter().any(|cell| cell.0 > 0)).count() as u32;
    let summary = recorder.summary(&config.objectives(), &trace.tenants);
    Some(Prefixes { cells, requests, cold, tenants, tokens, summary })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_trace_is_as_the_opening_says() {
        let config = Config::default();
        let [scattered, kept] = [PolicyKind::RoundRobin, PolicyKind::PrefixAffinity]
            .map(|p| prefixes(&config, p).expect("it fits"));
        assert_eq!((scattered.requests, scattered.cold, kept.cold), (24, 18, 8));
        assert_eq!((scattered.tenants, scattered.cells.len(), scattered.cells[0].len()), (6, 6, 4));
        for one in [&scattered, &kept] {
            assert_eq!(one.tokens.all(), one.summary.prompt_tokens);
            assert_eq!(one.tokens.cached, one.summary.cached_tokens);
            let sums = one.cells.iter().flatten().fold((0, 0), |s, c| (s.0 + c.0, s.1 + c.1));
            assert_eq!(sums, (one.requests, one.cold));
        }
        assert_eq!(scattered.tokens.own, kept.tokens.own, "questions are nobody's to share");
        assert!(scattered.tokens.system > 2 * kept.tokens.system);
    }

    #[test]
    fn the_longest_run_of_round_robin_computes_every_prefix_everywhere_once() {
        let config = Config { requests: 400, ..Config::default() };
        let run = prefixes(&config, PolicyKind::RoundRobin).expect("it fits");
        assert_eq!(run.cold, 24, "6 prefixes on 4 replicas");
    }
}
