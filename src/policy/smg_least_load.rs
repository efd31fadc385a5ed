//! `smg-least-load`: SMG's expected wait (`model_gateway/src/policies/least_load.rs`).
//!
//! `(queued + sent since the poll) ÷ throughput + 0.15 s × k ÷ (1 − k)`, the least of it: tokens that wait
//! to be computed as the engine reports them every ten seconds, tokens of the prompts that this router
//! sent it since then, and `k`, the part of its KV cache in use, at most 0.999. Ties are drawn.
//!
//! A poll is made at the first decision after it is due. Engines here report no rate of generation, so
//! that the source's fallback of 2,000 tokens a second is what everything is divided by. Where the source
//! would let a request wait because every queue is at the limit, the limit is ignored here.

use super::tools::{Dice, all_least};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad};

/// The latest poll, and what was sent since.
#[derive(Clone, Debug)]
pub struct SmgLeastLoad {
    dice: Dice,
    knobs: Knobs,
    polled: Option<u64>,
    /// As of the poll.
    loads: Vec<ReplicaLoad>,
    /// Since then: tokens and requests.
    sent: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    kv_pressure_weight: f64,
    throughput: f64,
    mean_prefill_tokens: f64,
    poll: u64,
    max_waiting: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::SmgLeastLoad);
        Knobs {
            kv_pressure_weight: own.real("kv_pressure_weight"),
            throughput: own.real("throughput"),
            mean_prefill_tokens: own.real("mean_prefill_tokens"),
            poll: own.picos("poll"),
            max_waiting: own.whole("max_waiting_requests") as u64,
        }
    }
}

impl SmgLeastLoad {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> SmgLeastLoad {
        let (dice, knobs) = (Dice::new(settings.seed), Knobs::new(settings));
        SmgLeastLoad { dice, knobs, polled: None, loads: Vec::new(), sent: Vec::new() }
    }

    fn score(&self, load: &ReplicaLoad, sent: u64) -> f64 {
        let queued = match load.waiting_tokens {
            0 => f64::from(load.waiting) * self.knobs.mean_prefill_tokens,
            tokens => tokens as f64,
        };
        let k = load.kv_usage().min(0.999);
        (queued + sent as f64) / self.knobs.throughput + self.knobs.kv_pressure_weight * k / (1.0 - k)
    }
}

impl Policy for SmgLeastLoad {
    fn name(&self) -> &'static str {
        "smg-least-load"
    }

    fn scrapes(&self) -> bool {
        true
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let due = self.polled.is_none_or(|at| asked.now.0 - at >= self.knobs.poll);
        if due || self.loads.len() != replicas.len() {
            self.polled = Some(asked.now.0);
            self.loads = replicas.to_vec();
            self.sent = vec![(0, 0); replicas.len()];
        }
        let scores: Vec<f64> =
            self.loads.iter().zip(&self.sent).map(|(load, sent)| self.score(load, sent.0)).collect();
        let waits = |at: usize| u64::from(self.loads[at].waiting) + self.sent[at].1;
        let open = |at: usize| self.knobs.max_waiting == 0 || waits(at) < self.knobs.max_waiting;
        let any = (0..scores.len()).any(open);
        let scored = (0..scores.len()).filter(|&at| open(at) || !any);
        let best = all_least(scored.map(|at| (at as u32, scores[at])));
        let replica = self.dice.one_of(&best);
        self.sent[replica as usize].0 += u64::from(asked.tokens);
        self.sent[replica as usize].1 += 1;
        Decision {
            replica,
            reason: Reason::BestScore,
            tied: best.len() as u32,
            scores,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::asked;

    fn load(waiting: u32, waiting_tokens: u64, held_blocks: u32) -> ReplicaLoad {
        ReplicaLoad { waiting, waiting_tokens, held_blocks, pool_blocks: 100, ..ReplicaLoad::default() }
    }

    /// 3,000 tokens take 1.5 s and 60 % of the cache is worth 0.225 s; 1,000 tokens and 90 % are
    /// 0.5 + 1.35 s; 2,000 tokens and nothing are 1 s.
    #[test]
    fn waits_and_pressure_are_added_up() {
        let mut policy = SmgLeastLoad::new(&PolicySettings::default());
        let fleet = [load(1, 3000, 60), load(1, 1000, 90), load(1, 2000, 0)];
        let decision = policy.route(&asked(&[0; 100], 0, 0.0), &fleet);
        assert_eq!((decision.replica, decision.reason), (2, Reason::BestScore));
        for (score, by_hand) in decision.scores.iter().zip([1.725, 1.85, 1.0]) {
            assert!((score - by_hand).abs() < 1e-12, "{score} {by_hand}");
        }
        let unknown = policy.score(&ReplicaLoad { waiting: 2, ..load(2, 0, 0) }, 0);
        assert!((unknown - 2.0 * 1024.0 / 2000.0).abs() < 1e-12);
    }

    #[test]
    fn between_polls_what_was_sent_counts_and_the_engines_do_not() {
        let mut policy = SmgLeastLoad::new(&PolicySettings::default());
        let idle = [load(0, 0, 0); 2];
        let first = policy.route(&asked(&[0; 100], 0, 0.0), &idle);
        assert_eq!(first.tied, 2, "a tie is drawn");
        let other = 1 - first.replica;
        assert_eq!(policy.route(&asked(&[0; 300], 1, 1.0), &idle).replica, other);
        // 100 tokens are there, 300 here; that the engine is busy is not seen before the next poll.
        let mut busy = idle;
        busy[first.replica as usize] = load(9, 90_000, 99);
        assert_eq!(policy.route(&asked(&[0; 100], 2, 9.9), &busy).replica, first.replica);
        assert_eq!(policy.route(&asked(&[0; 100], 3, 10.0), &busy).replica, other);
    }

    #[test]
    fn a_full_queue_is_passed_over_unless_all_are_full() {
        let tuning = PolicySettings::default().tuning.with("smg_least_load.max_waiting_requests", 2.0);
        let mut policy = SmgLeastLoad::new(&PolicySettings { tuning, ..PolicySettings::default() });
        let fleet = [load(2, 10, 0), load(1, 5000, 0)];
        assert_eq!(policy.route(&asked(&[0; 10], 0, 0.0), &fleet).replica, 1);
        assert_eq!(policy.route(&asked(&[0; 10], 1, 0.1), &fleet).replica, 0, "now both are full");
    }
}
