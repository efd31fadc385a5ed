//! What routers expected to be cached against what was: the difference split by its cause.
//!
//! A policy that keeps an index of its own (a tree of what was sent, an LRU, a TTL) or is told by events
//! expects so many tokens of a prompt in the chosen replica's cache. What the replica then finds at the
//! request's first admission differs, and why is told block by block, from who was sent what when:
//!
//! - expected and not there: the replica had computed the block before and **evicted** it; or it had
//!   **never** had it (the earlier request still waits, or the index is wrong); or the expectation is no
//!   whole block, or is the last token, which is always computed (**mismatch**);
//! - there and not expected: this router had sent the block there before and its index forgot it
//!   (**expired**: a TTL, a cap); or it had **never** sent it there (another router did, the rule keeps no
//!   record of it, or it is a chat's own answer); or the index counts in larger pieces than the cache
//!   (**mismatch**).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::params::Config;
use crate::policy::index::chained;
use crate::policy::{Decision, PolicyKind};
use crate::sim::{Outcome, Recorder};
use crate::trace::{Content, Prompt, Trace};

/// Tokens that were expected and not found, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Over {
    /// They had been there.
    pub evicted: u64,
    /// They had not.
    pub never: u64,
    /// They are less than a block, or the last one.
    pub mismatch: u64,
}

/// Tokens that were found and not expected, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Under {
    /// The router sent them there and forgot it.
    pub expired: u64,
    /// It did not send them there.
    pub never: u64,
    /// They are less than what its index can tell.
    pub mismatch: u64,
}

/// Expected and found, in tokens of the prompts of which a policy expected anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// Requests.
    pub requests: u64,
    /// Tokens that were expected.
    pub predicted: u64,
    /// Tokens that were found.
    pub found: u64,
    /// What was expected in vain.
    pub over: Over,
    /// What was found unexpectedly.
    pub under: Under,
}

/// The hashes of a prompt's whole KV blocks.
fn blocks(prompt: &Prompt, size: usize) -> Vec<u64> {
    let mut hash = 0;
    let content = |content| {
        hash = match content {
            Content::Tokens(tokens) => chained(hash, tokens),
            Content::Part(part) => chained(!hash, &[part as u32, (part >> 32) as u32]),
        };
        hash
    };
    prompt.contents(0, size).map(content).collect()
}

/// Tokens that a policy's own index tells apart at least; 1 where it counts tokens.
pub fn grain(config: &Config, policy: PolicyKind) -> u32 {
    let own = config.tuning.of(policy);
    let tokens = match policy {
        PolicyKind::SmgCacheAware | PolicyKind::SglangCacheAware => own.real("page_size"),
        PolicyKind::StackPrefixAware => own.real("chunk_chars") / own.real("chars_per_token"),
        PolicyKind::AibrixPrefixCache => own.real("block_chars") / own.real("chars_per_token"),
        PolicyKind::LlmD if !own.is_on("precise") => own.real("block_tokens"),
        PolicyKind::LiteLlm => own.real("pin_tokens"),
        _ => 1.0,
    };
    (tokens.ceil() as u32).max(1)
}

/// Splits what was expected and found in a run. `decisions` are by request.
pub fn prediction(
    trace: &Trace,
    decisions: &[Option<Decision>],
    recorder: &Recorder,
    block_size: u32,
    grain: u32,
) -> Prediction {
    if decisions.iter().flatten().all(|decision| decision.predicted.is_none()) {
        return Prediction::default();
    }
    // What happens, in order: who arrives at a moment is decided before anybody is admitted at it.
    let mut events: Vec<(u64, bool, u32)> = Vec::new();
    for record in recorder.records() {
        if let Outcome::Served { admitted, .. } = record.outcome {
            events.push((record.arrival, true, record.request));
            events.extend(admitted.map(|at| (at, false, record.request)));
        }
    }
    events.sort_by_key(|&(at, arrives, request)| (at, !arrives, request));
    let size = block_size as usize;
    // Blocks that a replica has had, and that a router has sent it.
    let mut had: BTreeSet<(u32, u64)> = BTreeSet::new();
    let mut sent: BTreeSet<(u32, u32, u64)> = BTreeSet::new();
    // Of whoever waits: its blocks, and how many of them its router had sent there before.
    let mut waiting: BTreeMap<u32, (Vec<u64>, u32)> = BTreeMap::new();
    let mut sum = Prediction::default();
    for (_, arrives, request) in events {
        let Some(Some(decision)) = decisions.get(request as usize) else { continue };
        let prompt = &trace.requests[request as usize].prompt;
        let (replica, router) = (decision.replica, decision.view.router.unwrap_or(0));
        if arrives {
            let hashes = blocks(prompt, size);
            let before = hashes.iter().take_while(|&&hash| sent.contains(&(router, replica, hash))).count();
            sent.extend(hashes.iter().map(|&hash| (router, replica, hash)));
            waiting.insert(request, (hashes, before as u32));
            continue;
        }
        let Some((hashes, before)) = waiting.remove(&request) else { continue };
        let found = match recorder.record(request).map(|record| &record.outcome) {
            Some(&Outcome::Served { cached, .. }) => cached,
            _ => 0,
        };
        if let Some(predicted) = decision.predicted {
            sum.requests += 1;
            sum.predicted += u64::from(predicted);
            sum.found += u64::from(found);
            let usable = (prompt.len() as u32 - 1) / block_size * block_size;
            if predicted > found {
                let whole = (predicted / block_size * block_size).min(usable);
                sum.over.mismatch += u64::from(predicted - whole.max(found));
                for block in found / block_size..whole.max(found) / block_size {
                    let known =
                        hashes.get(block as usize).is_some_and(|&hash| had.contains(&(replica, hash)));
                    let cause = if known { &mut sum.over.evicted } else { &mut sum.over.never };
                    *cause += u64::from(block_size);
                }
            } else if found - predicted < grain {
                sum.under.mismatch += u64::from(found - predicted);
            } else {
                let known = before * block_size;
                let expired = known.min(found).saturating_sub(predicted);
                sum.under.expired += u64::from(expired);
                sum.under.never += u64::from(found - predicted - expired);
            }
        }
        had.extend(hashes.iter().map(|&hash| (replica, hash)));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::side;
    use crate::experiment::Experiment;
    use crate::fleet::Devices;
    use crate::params::{BackendKind, set};

    fn split(policy: PolicyKind, settings: &[(&str, &str)]) -> Prediction {
        let mut config = Config {
            backend: BackendKind::Modelled,
            devices: Devices::Separate,
            requests: 300,
            tenants: 12,
            rate: 20.0,
            policy: vec![policy],
            ..Config::default()
        };
        for (key, value) in settings {
            set(&mut config, key, value).unwrap_or_else(|e| panic!("{e}"));
        }
        let experiment = Experiment::new(config);
        let side = side(&experiment, policy).expect("it fits the clock");
        side.prediction.expect("it expects something")
    }

    fn adds_up(p: &Prediction) {
        let over = p.over.evicted + p.over.never + p.over.mismatch;
        let under = p.under.expired + p.under.never + p.under.mismatch;
        assert_eq!(p.predicted + under, p.found + over, "{p:?}");
    }

    #[test]
    fn in_a_roomy_cache_nothing_is_evicted_and_in_a_tight_one_it_is() {
        let roomy = split(PolicyKind::SmgCacheAware, &[("blocks", "4000")]);
        adds_up(&roomy);
        assert!(roomy.requests == 300 && roomy.found > 0 && roomy.over.evicted == 0, "{roomy:?}");
        assert_eq!(roomy.under.expired, 0);
        let tight = split(PolicyKind::SmgCacheAware, &[("blocks", "60")]);
        adds_up(&tight);
        assert!(tight.over.evicted > 1000, "{tight:?}");
    }

    #[test]
    fn an_index_that_forgets_expects_too_little() {
        let short = split(
            PolicyKind::AibrixPrefixCache,
            &[("blocks", "4000"), ("aibrix_prefix_cache.ttl", "0.2"), ("rate", "4")],
        );
        adds_up(&short);
        assert!(short.under.expired > 1000, "{short:?}");
        let one = split(PolicyKind::SmgCacheAware, &[("blocks", "4000"), ("routers", "1")]);
        let many = split(PolicyKind::SmgCacheAware, &[("blocks", "4000"), ("routers", "4")]);
        adds_up(&many);
        assert!(many.under.never > one.under.never + 1000, "another router sent it: {many:?}");
    }

    #[test]
    fn hashes_that_differ_expect_nothing() {
        let blind = split(
            PolicyKind::LlmD,
            &[("llm_d.precise", "on"), ("llm_d.hashes_agree", "off"), ("blocks", "4000")],
        );
        adds_up(&blind);
        assert!(blind.predicted == 0 && blind.found > 0, "{blind:?}");
    }

    #[test]
    fn every_policys_difference_adds_up() {
        for policy in PolicyKind::PRODUCTION {
            let expects = !matches!(
                policy,
                PolicyKind::Random
                    | PolicyKind::PowerOfTwo
                    | PolicyKind::SessionHash
                    | PolicyKind::Chwbl
                    | PolicyKind::SmgPrefixHash
                    | PolicyKind::SmgLeastLoad
                    | PolicyKind::LiteLlm
            );
            if expects {
                for blocks in ["60", "4000"] {
                    adds_up(&split(policy, &[("blocks", blocks), ("routers", "2")]));
                }
            }
        }
    }

    #[test]
    fn with_blocks_of_one_token_all_works_the_same() {
        let fine = split(PolicyKind::SglangCacheAware, &[("block_size", "1"), ("blocks", "64000")]);
        adds_up(&fine);
        assert!(fine.found > 0 && fine.over.evicted == 0, "{fine:?}");
    }
}
