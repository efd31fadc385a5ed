//! `dynamo`: NVIDIA Dynamo's cost (1.6.1; `lib/kv-router/src/scheduling/selector/reference.rs` and
//! `config.rs`).
//!
//! The least of, in KV blocks,
//! `scale × max(0, (prefill that waits there + this prompt) ÷ block − credit) + blocks held there + w × requests`,
//! where the credit is the prompt's cached blocks, times `1 ÷ (1 + d × excess prefill ÷ this prompt)` if a
//! decay is set. Ties are drawn; above a temperature of 0 a softmax over the costs, stretched to [0, 1], is.
//!
//! What waits and what is held there are the router's own projection: a prompt's uncached tokens from
//! when it is sent to its first token, its blocks, each counted once however many requests share it, until
//! its last. If the request went there, its own blocks would be held too, and are counted. What is cached
//! is what engines' events say, here without delay; without events, what was sent in the last 120 s.
//! Replicas have one tier, and routers do not tell each other what they send, which is the default.

use hashbrown::HashTable;

use super::index::{BlockIndex, Lru, chain};
use super::tools::{Dice, Flight, Own, all_least, usable};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, Told};

/// What the router projects.
#[derive(Clone, Debug)]
pub struct Dynamo {
    dice: Dice,
    knobs: Knobs,
    own: Own,
    held: Held,
    /// Without events: what was sent.
    sent: BlockIndex,
    lru: Vec<Lru>,
    hashes: Vec<u64>,
    shared: Vec<u32>,
    matched: Vec<u32>,
}

/// The blocks of all that is in flight, by replica.
#[derive(Clone, Debug, Default)]
struct Held {
    index: BlockIndex,
    /// Requests that hold a block on a replica.
    holders: HashTable<((u64, u32), u32)>,
    blocks: Vec<u64>,
}

impl Held {
    fn key(hash: u64, replica: u32) -> u64 {
        (hash ^ u64::from(replica)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn on(&self, replica: usize) -> u64 {
        self.blocks.get(replica).copied().unwrap_or(0)
    }

    fn add(&mut self, hash: u64, replica: u32) {
        let is = |own: &((u64, u32), u32)| own.0 == (hash, replica);
        let key = Held::key(hash, replica);
        match self.holders.find_mut(key, is) {
            Some(own) => own.1 += 1,
            None => {
                self.holders.insert_unique(key, ((hash, replica), 1), |own| Held::key(own.0.0, own.0.1));
                self.index.add(hash, replica);
                self.blocks.resize(self.blocks.len().max(replica as usize + 1), 0);
                self.blocks[replica as usize] += 1;
            }
        }
    }

    fn remove(&mut self, hash: u64, replica: u32) {
        let is = |own: &((u64, u32), u32)| own.0 == (hash, replica);
        if let Ok(mut found) = self.holders.find_entry(Held::key(hash, replica), is) {
            found.get_mut().1 -= 1;
            if found.get().1 == 0 {
                found.remove();
                self.index.remove(hash, replica);
                self.blocks[replica as usize] -= 1;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    credit: f64,
    decay: f64,
    scale: f64,
    request_weight: f64,
    temperature: f64,
    events: bool,
    ttl: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::Dynamo);
        Knobs {
            credit: own.real("overlap_credit"),
            decay: own.real("credit_decay"),
            scale: own.real("prefill_scale"),
            request_weight: own.real("request_weight"),
            temperature: own.real("temperature"),
            events: own.is_on("events"),
            ttl: own.picos("ttl"),
        }
    }
}

impl Dynamo {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> Dynamo {
        Dynamo {
            dice: Dice::new(settings.seed),
            knobs: Knobs::new(settings),
            own: Own::default(),
            held: Held::default(),
            sent: BlockIndex::default(),
            lru: Vec::new(),
            hashes: Vec::new(),
            shared: Vec::new(),
            matched: Vec::new(),
        }
    }
}

impl Policy for Dynamo {
    fn name(&self) -> &'static str {
        "dynamo"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn reads_matches(&self) -> bool {
        self.knobs.events
    }

    fn follows(&self) -> bool {
        true
    }

    fn told(&mut self, told: Told) {
        if let Some(flight) = self.own.told(told) {
            flight.blocks.iter().for_each(|&hash| self.held.remove(hash, flight.replica));
        }
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, knobs, size) = (replicas.len(), self.knobs, f64::from(asked.block_size.max(1)));
        let block = asked.items_in(size);
        // An id of a trace without tokens may stand for several blocks.
        let blocks_each = (block as f64 * f64::from(asked.per_item) / size).max(1.0);
        chain(asked.items, block, true, &mut self.hashes);
        self.shared.resize(n, 0);
        self.held.index.leading(&self.hashes, &mut self.shared);
        self.matched.resize(n, 0);
        if knobs.events {
            for (matched, load) in self.matched.iter_mut().zip(replicas) {
                *matched = usable(load.matched_blocks, asked.block_size, asked.tokens);
            }
        } else {
            self.lru.resize(self.lru.len().max(n), Lru::default());
            for (replica, lru) in self.lru.iter_mut().enumerate() {
                while let Some(hash) = lru.pop(usize::MAX, asked.now.0.saturating_sub(knobs.ttl)) {
                    self.sent.remove(hash, replica as u32);
                }
            }
            self.sent.leading(&self.hashes, &mut self.matched);
            for matched in &mut self.matched {
                let tokens = asked.tokens_in(*matched as usize * block);
                *matched = usable(tokens / asked.block_size.max(1), asked.block_size, asked.tokens);
            }
        }
        let least_prefill = (0..n).map(|at| self.own.on(at).prefill).min().unwrap_or(0);
        let request_blocks = (f64::from(asked.tokens) / size).ceil().max(1.0);
        let score = |at: usize| {
            let there = self.own.on(at);
            let excess = (there.prefill - least_prefill) as f64 / size / request_blocks;
            let credit = knobs.credit / (1.0 + knobs.decay * excess) * f64::from(self.matched[at]) / size;
            let raw = (there.prefill + u64::from(asked.tokens)) as f64 / size;
            let new = self.hashes.len() as u64 - u64::from(self.shared[at]);
            knobs.scale * (raw - credit).max(0.0)
                + (self.held.on(at) + new) as f64 * blocks_each
                + knobs.request_weight * there.requests as f64
        };
        let scores: Vec<f64> = (0..n).map(score).collect();
        let best = all_least(scores.iter().enumerate().map(|(at, &score)| (at as u32, score)));
        let replica = match knobs.temperature > 0.0 {
            true => self.dice.by_cost(&scores, knobs.temperature) as u32,
            false => self.dice.one_of(&best),
        };
        let predicted = self.matched[replica as usize];
        let uncached = u64::from(asked.tokens - predicted);
        for &hash in &self.hashes {
            self.held.add(hash, replica);
            if !knobs.events {
                self.sent.add(hash, replica);
                self.lru[replica as usize].touch(hash, asked.now.0);
            }
        }
        let flight = Flight { replica, uncached, blocks: self.hashes.clone(), begun: false };
        self.own.sent(asked.request, flight);
        Decision {
            replica,
            reason: Reason::BestScore,
            tied: if knobs.temperature > 0.0 { 0 } else { best.len() as u32 },
            matched: if knobs.events {
                replicas.iter().map(|load| load.matched_blocks).collect()
            } else {
                Vec::new()
            },
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

    fn policy(knobs: &[(&str, f64)]) -> Dynamo {
        Dynamo::new(&tuned(PolicyKind::Dynamo, knobs))
    }

    fn fleet(matched: &[u32]) -> Vec<ReplicaLoad> {
        matched
            .iter()
            .map(|&matched_blocks| ReplicaLoad { matched_blocks, ..ReplicaLoad::default() })
            .collect()
    }

    fn prompt(own: u32) -> Vec<u32> {
        (0..160).map(|at| if at < 64 { 7 } else { 100 + own }).collect()
    }

    /// Ten blocks. With four cached: 10 − 4 + 10 = 16 against 10 + 10.
    #[test]
    fn blocks_to_compute_and_blocks_to_hold_are_added() {
        let mut policy = policy(&[]);
        let first = policy.route(&asked(&prompt(0), 0, 0.0), &fleet(&[0, 4, 0]));
        assert_eq!((first.replica, first.scores, first.predicted), (1, vec![20.0, 16.0, 20.0], Some(64)));
        // There are now 96 tokens to compute and ten blocks, four of which the next shares:
        // (96 + 160) ÷ 16 − 4 + 10 + 6 = 28.
        let second = policy.route(&asked(&prompt(1), 1, 0.0), &fleet(&[0, 4, 0]));
        assert_eq!(second.scores, [20.0, 28.0, 20.0]);
        assert!(second.replica != 1 && second.tied == 2, "a tie is drawn");
        policy.told(Told { request: 0, replica: 1, what: Happened::FirstToken });
        let third = policy.route(&asked(&prompt(2), 2, 0.0), &fleet(&[0, 4, 0]));
        assert_eq!(third.scores[1], 10.0 - 4.0 + 16.0, "its prompt is computed, its blocks are held");
        policy.told(Told { request: 0, replica: 1, what: Happened::Finished });
        let fourth = policy.route(&asked(&prompt(3), 3, 0.0), &fleet(&[0, 4, 0]));
        assert!(fourth.scores[1] <= 16.0 + 16.0, "{:?}", fourth.scores);
    }

    /// 96 tokens of excess are 6 of 10 blocks: a decay of 1 leaves 4 ÷ 1.6 of the credit.
    #[test]
    fn credit_decays_with_the_prefill_that_waits() {
        let mut policy = policy(&[("credit_decay", 1.0), ("request_weight", 0.5)]);
        policy.route(&asked(&prompt(0), 0, 0.0), &fleet(&[0, 4]));
        let next = policy.route(&asked(&prompt(1), 1, 0.0), &fleet(&[0, 4]));
        assert!((next.scores[1] - (16.0 - 4.0 / 1.6 + 16.0 + 0.5)).abs() < 1e-12, "{:?}", next.scores);
    }

    #[test]
    fn without_events_what_was_sent_is_kept_for_two_minutes() {
        let mut policy = policy(&[("events", 0.0)]);
        let mut at = |request, seconds| {
            let decision = policy.route(&asked(&prompt(0), request, seconds), &fleet(&[0]));
            policy.told(Told { request, replica: 0, what: Happened::Finished });
            decision.predicted
        };
        assert_eq!([at(0, 0.0), at(1, 119.0), at(2, 239.5)], [Some(0), Some(144), Some(0)]);
    }

    #[test]
    fn a_block_of_one_token_works() {
        let mut policy = policy(&[]);
        let decision = policy.route(&Asked { block_size: 1, ..Asked::of(&[1, 2, 3]) }, &fleet(&[2, 0]));
        assert_eq!((decision.replica, decision.scores), (0, vec![1.0 + 3.0, 3.0 + 3.0]));
    }
}
