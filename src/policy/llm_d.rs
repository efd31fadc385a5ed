//! `llm-d`: the default profile of llm-d's router (`config/charts/routerlib/templates/_config.yaml`
//! @ebab6879), and its optional prefix-affinity filter.
//!
//! Each replica scores `2 × queue + 2 × KV + 3 × prefix`, and the most wins, ties drawn. Queue is
//! `(most waiting − own) ÷ (most − fewest)`, 1 where all are equal; KV the part of the cache that is not in
//! use; prefix the part of the prompt's blocks (64 tokens, or a KV block if that is larger) that match. What was
//! sent stands for what is cached, for the 31,250 blocks that each replica was sent last; with `precise`
//! it is what the engines' events say.
//!
//! With the filter only replicas with at least 0.8 of the prompt are scored, unless the first token would
//! come 18 s later there than at the best of the others, judged by tokens in flight to compute at 15,928 a
//! second. The filter's authors say not to weigh prefixes besides; the weights stay as they are set.
//!
//! Queues and KV use are the engines' own, however many routers there are, as late as the signal is (50 ms
//! in llm-d).

use super::index::{BlockIndex, Lru, chain};
use super::tools::{Dice, Flight, Own, all_least, usable};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, Told};

/// What each replica was sent, and what is in flight.
#[derive(Clone, Debug)]
pub struct LlmD {
    dice: Dice,
    knobs: Knobs,
    index: BlockIndex,
    lru: Vec<Lru>,
    own: Own,
    hashes: Vec<u64>,
    matched: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    weights: [f64; 3],
    block: f64,
    capacity: usize,
    max_prefix: f64,
    precise: bool,
    hashes_agree: bool,
    weighted_random: bool,
    filter: bool,
    threshold: f64,
    penalty: f64,
    throughput: f64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::LlmD);
        Knobs {
            weights: ["queue_weight", "kv_weight", "prefix_weight"].map(|name| own.real(name)),
            block: own.real("block_tokens"),
            capacity: own.whole("capacity"),
            max_prefix: own.real("max_prefix_tokens"),
            precise: own.is_on("precise"),
            hashes_agree: own.is_on("hashes_agree"),
            weighted_random: own.is_on("picker"),
            filter: own.is_on("affinity_filter"),
            threshold: own.real("affinity_threshold"),
            penalty: own.real("max_ttft_penalty"),
            throughput: own.real("prefill_throughput"),
        }
    }
}

impl LlmD {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> LlmD {
        LlmD {
            dice: Dice::new(settings.seed),
            knobs: Knobs::new(settings),
            index: BlockIndex::default(),
            lru: Vec::new(),
            own: Own::default(),
            hashes: Vec::new(),
            matched: Vec::new(),
        }
    }

    /// The candidates that the filter leaves, by what part of the prompt each has.
    fn filter(&self, prefix: &[f64]) -> Option<Vec<u32>> {
        let all = 0..prefix.len() as u32;
        let sticks = |&replica: &u32| prefix[replica as usize] >= self.knobs.threshold;
        let (sticky, others): (Vec<u32>, Vec<u32>) = all.partition(sticks);
        if sticky.is_empty() || others.is_empty() {
            return None;
        }
        let wait = |of: &[u32]| {
            let tokens = of.iter().map(|&replica| self.own.on(replica as usize).prefill).min().unwrap_or(0);
            tokens as f64 / self.knobs.throughput
        };
        let breaks = self.knobs.penalty > 0.0 && wait(&sticky) - wait(&others) > self.knobs.penalty;
        (!breaks).then_some(sticky)
    }
}

impl Policy for LlmD {
    fn name(&self) -> &'static str {
        "llm-d"
    }

    fn scrapes(&self) -> bool {
        true
    }

    fn reads_matches(&self) -> bool {
        self.knobs.precise
    }

    fn follows(&self) -> bool {
        self.knobs.filter
    }

    fn told(&mut self, told: Told) {
        self.own.told(told);
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, knobs) = (replicas.len(), self.knobs);
        let block = asked.items_in(knobs.block.max(f64::from(asked.block_size)));
        let looked_at = asked.items.len().min(asked.items_in(knobs.max_prefix));
        chain(&asked.items[..looked_at], block, false, &mut self.hashes);
        self.matched.resize(n, 0);
        if knobs.precise {
            let size = asked.block_size;
            let blocks = |load: &ReplicaLoad| usable(load.matched_blocks, size, asked.tokens) / size;
            for (matched, load) in self.matched.iter_mut().zip(replicas) {
                *matched = if knobs.hashes_agree { blocks(load) } else { 0 };
            }
        } else {
            self.index.leading(&self.hashes, &mut self.matched);
        }
        let total = match knobs.precise {
            true => f64::from(asked.tokens / asked.block_size.max(1)),
            false => self.hashes.len() as f64,
        };
        let prefix: Vec<f64> = self.matched.iter().map(|&m| f64::from(m) / total.max(1.0)).collect();
        let filtered = if knobs.filter { self.filter(&prefix) } else { None };
        let candidates: Vec<u32> = filtered.clone().unwrap_or_else(|| (0..n as u32).collect());
        let waiting = |&replica: &u32| replicas[replica as usize].waiting;
        let most = candidates.iter().map(waiting).max().expect("a fleet has at least one replica");
        let fewest = candidates.iter().map(waiting).min().expect("a fleet has at least one replica");
        let [queue_weight, kv_weight, prefix_weight] = knobs.weights;
        let score = |&replica: &u32| {
            let load = &replicas[replica as usize];
            let queue = match most - fewest {
                0 => 1.0,
                range => f64::from(most - load.waiting) / f64::from(range),
            };
            queue_weight * queue
                + kv_weight * (1.0 - load.kv_usage())
                + prefix_weight * prefix[replica as usize]
        };
        let of_candidates: Vec<f64> = candidates.iter().map(score).collect();
        let best =
            all_least(candidates.iter().zip(&of_candidates).map(|(&replica, &score)| (replica, -score)));
        let replica = if knobs.weighted_random && of_candidates.iter().sum::<f64>() > 0.0 {
            candidates[self.dice.by_weight(of_candidates.iter().copied())]
        } else {
            self.dice.one_of(&best)
        };
        let matched = self.matched[replica as usize];
        let predicted = match knobs.precise {
            true => matched * asked.block_size,
            false => asked.tokens_in(matched as usize * block),
        };
        if !knobs.precise {
            self.lru.resize(self.lru.len().max(n), Lru::default());
            let lru = &mut self.lru[replica as usize];
            for &hash in &self.hashes {
                self.index.add(hash, replica);
                lru.touch(hash, asked.now.0);
            }
            while let Some(hash) = lru.pop(knobs.capacity, 0) {
                self.index.remove(hash, replica);
            }
        }
        if knobs.filter {
            let uncached = u64::from(asked.tokens.saturating_sub(predicted));
            self.own.sent(asked.request, Flight { replica, uncached, ..Flight::default() });
        }
        let mut scores = vec![0.0; n];
        candidates.iter().zip(of_candidates).for_each(|(&at, score)| scores[at as usize] = score);
        Decision {
            replica,
            reason: Reason::BestScore,
            tied: if knobs.weighted_random { 0 } else { best.len() as u32 },
            matched: if knobs.precise { self.matched.clone() } else { Vec::new() },
            candidates: filtered.unwrap_or_default(),
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

    fn load(waiting: u32, held_blocks: u32) -> ReplicaLoad {
        ReplicaLoad { waiting, held_blocks, pool_blocks: 100, ..ReplicaLoad::default() }
    }

    fn policy(knobs: &[(&str, f64)]) -> LlmD {
        LlmD::new(&tuned(PolicyKind::LlmD, knobs))
    }

    fn prompt(shared: usize, own: u32) -> Vec<u32> {
        (0..256).map(|at| if at < shared { 7 } else { 100 + own }).collect()
    }

    /// Four blocks of 64, of which replica 0 was sent two: 3 × 0.5. Queues 4, 1, 0 score 0, 0.75 and 1.
    #[test]
    fn queue_kv_and_prefix_are_weighed() {
        let mut policy = policy(&[]);
        policy.route(&asked(&prompt(128, 0), 0, 0.0), &[load(0, 0), load(9, 0), load(9, 0)]);
        let fleet = [load(4, 20), load(1, 50), load(0, 90)];
        let decision = policy.route(&asked(&prompt(128, 1), 1, 0.0), &fleet);
        for (score, by_hand) in decision.scores.iter().zip([1.6 + 1.5, 1.5 + 1.0, 2.0 + 0.2]) {
            assert!((score - by_hand).abs() < 1e-12, "{score} {by_hand}");
        }
        assert_eq!((decision.replica, decision.predicted, decision.tied), (0, Some(128), 1));
        let far = policy.route(&asked(&prompt(128, 2), 2, 0.0), &[load(4, 99), load(1, 0), load(0, 90)]);
        assert_eq!(far.replica, 1, "1.5 + 0.02 against 1.5 + 2");
        let equal = policy.route(&asked(&prompt(0, 3), 3, 0.0), &[load(5, 0); 3]);
        assert_eq!((equal.tied, equal.scores[0]), (3, 4.0), "where all wait alike the queue is worth 1");
    }

    #[test]
    fn each_replica_keeps_so_many_blocks() {
        let mut policy = policy(&[("capacity", 4.0)]);
        let only = [load(0, 0)];
        policy.route(&asked(&prompt(0, 1), 0, 0.0), &only);
        assert_eq!(policy.route(&asked(&prompt(0, 1), 1, 1.0), &only).predicted, Some(256));
        policy.route(&asked(&prompt(0, 2)[..64], 2, 2.0), &only);
        assert_eq!(
            policy.route(&asked(&prompt(0, 1), 3, 3.0), &only).predicted,
            Some(0),
            "its first block went"
        );
    }

    #[test]
    fn precise_matches_are_the_engines_and_are_lost_where_hashes_differ() {
        let fleet = [load(0, 0), ReplicaLoad { matched_blocks: 15, ..load(0, 0) }];
        for (agree, replica) in [(1.0, Some(1)), (0.0, None)] {
            let mut policy = policy(&[("precise", 1.0), ("hashes_agree", agree)]);
            let decision = policy.route(&asked(&prompt(0, 1), 0, 0.0), &fleet);
            assert_eq!(decision.predicted, Some(if replica.is_some() { 240 } else { 0 }));
            assert_eq!(decision.tied, if replica.is_some() { 1 } else { 2 });
        }
    }

    /// 300,000 tokens at 15,928 a second are 18.8 s, 200,000 are 12.6 s.
    #[test]
    fn the_filter_keeps_to_the_warm_until_they_are_too_late() {
        let warm = vec![7; 256];
        for (tokens, kept) in [(200_000, true), (300_000, false)] {
            let mut policy = policy(&[("affinity_filter", 1.0), ("prefix_weight", 0.0)]);
            policy.route(&asked(&warm, 0, 0.0), &[load(0, 0), load(5, 0)]);
            policy.told(Told { request: 0, replica: 0, what: Happened::FirstToken });
            policy.own.sent(1, Flight { replica: 0, uncached: tokens, ..Flight::default() });
            let decision = policy.route(&asked(&warm, 2, 0.0), &[load(5, 0), load(0, 0)]);
            assert_eq!(decision.replica, if kept { 0 } else { 1 });
            assert_eq!(decision.candidates, if kept { vec![0] } else { vec![] });
        }
    }
}
