//! `vllm-kv-aware`: vLLM router's cost from KV events (0.1.17, `kv_aware.rs`).
//!
//! The least of `(tokens to compute for it + tokens that are still to be computed there) × (requests
//! there + 1)`, where the last token of a prompt is always computed. What is still to be computed and what
//! is there are the router's own reservations: from the moment it sends a request to its first and its
//! last token. What is cached is what the engine's events say, here without delay. Replicas here have one
//! tier, so that the credits for others (host .8, external .6, disk .3) have nothing to apply to. Ties go
//! to the lowest index.

use super::tools::{Dice, Flight, Own, all_least, usable};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, Told};

/// What the router has in flight.
#[derive(Clone, Debug)]
pub struct VllmKvAware {
    dice: Dice,
    temperature: f64,
    own: Own,
}

impl VllmKvAware {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> VllmKvAware {
        let temperature = settings.tuning.of(PolicyKind::VllmKvAware).real("temperature");
        VllmKvAware { dice: Dice::new(settings.seed), temperature, own: Own::default() }
    }
}

impl Policy for VllmKvAware {
    fn name(&self) -> &'static str {
        "vllm-kv-aware"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn reads_matches(&self) -> bool {
        true
    }

    fn follows(&self) -> bool {
        true
    }

    fn told(&mut self, told: Told) {
        self.own.told(told);
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.temperature = VllmKvAware::new(settings).temperature;
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let cached = |replica: &ReplicaLoad| usable(replica.matched_blocks, asked.block_size, asked.tokens);
        let scores: Vec<f64> = replicas
            .iter()
            .enumerate()
            .map(|(at, replica)| {
                let there = self.own.on(at);
                let uncached = u64::from(asked.tokens - cached(replica));
                (uncached + there.prefill) as f64 * (there.requests + 1) as f64
            })
            .collect();
        let best = all_least(scores.iter().enumerate().map(|(at, &score)| (at as u32, score)));
        let replica = match self.temperature > 0.0 {
            true => self.dice.by_cost(&scores, self.temperature) as u32,
            false => best[0],
        };
        let predicted = cached(&replicas[replica as usize]);
        let uncached = u64::from(asked.tokens - predicted);
        self.own.sent(asked.request, Flight { replica, uncached, ..Flight::default() });
        Decision {
            replica,
            reason: Reason::BestScore,
            // A softmax draws by all scores, not among the least.
            tied: if self.temperature > 0.0 { 0 } else { best.len() as u32 },
            matched: replicas.iter().map(|replica| replica.matched_blocks).collect(),
            predicted: Some(predicted),
            scores,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Happened;
    use crate::policy::tools::{asked, tuned};

    fn fleet(matched: &[u32]) -> Vec<ReplicaLoad> {
        matched
            .iter()
            .map(|&matched_blocks| ReplicaLoad { matched_blocks, ..ReplicaLoad::default() })
            .collect()
    }

    /// 100 tokens, 16 a block. Warm is 100 − 96 = 4 tokens, cold 100.
    #[test]
    fn tokens_to_compute_times_requests_there() {
        let mut policy = VllmKvAware::new(&PolicySettings::default());
        let prompt = [5; 100];
        let mut ask = |request, matched: &[u32]| policy.route(&asked(&prompt, request, 0.0), &fleet(matched));
        let warm = ask(0, &[0, 6]);
        assert_eq!((warm.replica, warm.scores, warm.predicted), (1, vec![100.0, 4.0], Some(96)));
        // There: 4 tokens of one request in flight. (4 + 4) × 2 = 16 against 100.
        assert_eq!(ask(1, &[0, 6]).scores, [100.0, 16.0]);
        // (4 + 8) × 3 = 36; (4 + 12) × 4 = 64; (4 + 16) × 5 = 100: a tie goes to the lowest index.
        assert_eq!(ask(2, &[0, 6]).scores, [100.0, 36.0]);
        assert_eq!(ask(3, &[0, 6]).scores, [100.0, 64.0]);
        let tie = ask(4, &[0, 6]);
        assert_eq!((tie.replica, tie.tied), (0, 2));
        let told = |request, replica, what| Told { request, replica, what };
        policy.told(told(0, 1, Happened::FirstToken));
        policy.told(told(1, 1, Happened::Finished));
        // Of four there are three, and of 16 tokens 8.
        let later = policy.route(&asked(&prompt, 5, 0.0), &fleet(&[0, 6]));
        assert_eq!(later.scores, [(100.0 + 100.0) * 2.0, (4.0 + 8.0) * 4.0]);
    }

    /// As Dynamo's: what is drawn by a softmax is not said to be among the least.
    #[test]
    fn above_a_temperature_of_zero_no_tie_is_said() {
        let settings = tuned(PolicyKind::VllmKvAware, &[("temperature", 1.0)]);
        let decision = VllmKvAware::new(&settings).route(&asked(&[5; 100], 0, 0.0), &fleet(&[0, 0, 0]));
        assert_eq!((decision.tied, decision.scores), (0, vec![100.0; 3]));
    }

    #[test]
    fn the_last_token_is_always_computed() {
        let mut policy = VllmKvAware::new(&PolicySettings::default());
        let decision = policy.route(&Asked { block_size: 1, ..Asked::of(&[1, 2, 3]) }, &fleet(&[3]));
        assert_eq!((decision.scores, decision.predicted), (vec![1.0], Some(2)));
    }
}
