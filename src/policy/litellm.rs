//! `litellm`: LiteLLM's defaults (1.110.2): simple-shuffle, which draws a deployment; or least-busy, the
//! fewest requests in flight, ties to the lowest index. With the optional check `prompt_caching` a prompt
//! of at least 1,024 tokens that was sent in the last 300 s goes where it went.
//!
//! Weights, limits of requests and tokens a minute, and lowest-latency, whose averages over a deployment's
//! last answers depend on more than a replica here has, are left out.

use std::collections::BTreeMap;

use super::index::chained;
use super::tools::{Dice, requests};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, least_loaded};

/// Where prompts are pinned, and who gets the others.
#[derive(Clone, Debug)]
pub struct LiteLlm {
    dice: Dice,
    knobs: Knobs,
    /// By the hash of a prompt's beginning: where it went, and when.
    pins: BTreeMap<u64, (u32, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    least_busy: bool,
    pin: bool,
    pin_tokens: f64,
    ttl: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::LiteLlm);
        Knobs {
            least_busy: own.is_on("strategy"),
            pin: own.is_on("prompt_cache_pin"),
            pin_tokens: own.real("pin_tokens"),
            ttl: own.picos("pin_ttl"),
        }
    }
}

impl LiteLlm {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> LiteLlm {
        LiteLlm { dice: Dice::new(settings.seed), knobs: Knobs::new(settings), pins: BTreeMap::new() }
    }
}

impl Policy for LiteLlm {
    fn name(&self) -> &'static str {
        "litellm"
    }

    fn reads_loads(&self) -> bool {
        self.knobs.least_busy
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, knobs) = (replicas.len(), self.knobs);
        let long = knobs.pin && f64::from(asked.tokens) >= knobs.pin_tokens;
        let head = asked.items.len().min(asked.items_in(knobs.pin_tokens));
        let key = long.then(|| chained(0, &asked.items[..head]));
        let pinned = key
            .and_then(|key| self.pins.get(&key))
            .filter(|(replica, at)| asked.now.0 - at < knobs.ttl && (*replica as usize) < n);
        let decision = match pinned {
            Some(&(replica, _)) => {
                let predicted = Some(asked.tokens_in(head));
                Decision {
                    replica,
                    reason: Reason::Preferred,
                    preferred: Some(replica),
                    predicted,
                    ..Decision::default()
                }
            }
            None if knobs.least_busy => least_loaded(requests(replicas)),
            None => {
                let replica = self.dice.below(n) as u32;
                Decision { replica, reason: Reason::Drawn, ..Decision::default() }
            }
        };
        if let Some(key) = key {
            self.pins.insert(key, (decision.replica, asked.now.0));
        }
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::{asked, in_flight, tuned};

    fn policy(knobs: &[(&str, f64)]) -> LiteLlm {
        LiteLlm::new(&tuned(PolicyKind::LiteLlm, knobs))
    }

    #[test]
    fn it_draws_or_takes_the_least_busy() {
        let mut shuffle = policy(&[]);
        assert!(!shuffle.reads_loads());
        let picks: Vec<u32> =
            (0..60).map(|at| shuffle.route(&asked(&[1], at, 0.0), &in_flight(&[99, 0, 0])).replica).collect();
        assert!((0..3).all(|replica| picks.contains(&replica)), "whatever the load");
        let mut busy = policy(&[("strategy", 1.0)]);
        assert_eq!(busy.route(&asked(&[1], 0, 0.0), &in_flight(&[4, 1, 1])).replica, 1);
    }

    #[test]
    fn a_long_prompt_is_pinned_for_five_minutes() {
        let mut pins = policy(&[("strategy", 1.0), ("prompt_cache_pin", 1.0)]);
        let (long, short) = (vec![7; 1024], vec![7; 1023]);
        let mut pick = |prompt: &[u32], seconds, loads: &[u32]| {
            let decision = pins.route(&asked(prompt, 0, seconds), &in_flight(loads));
            (decision.replica, decision.reason)
        };
        assert_eq!(pick(&long, 0.0, &[1, 0]), (1, Reason::LeastLoaded));
        assert_eq!(pick(&long, 299.0, &[0, 50]), (1, Reason::Preferred));
        assert_eq!(pick(&long, 599.5, &[0, 50]), (0, Reason::LeastLoaded), "it was last sent 300.5 s ago");
        assert_eq!(pick(&short, 600.0, &[9, 1]), (1, Reason::LeastLoaded));
    }
}
