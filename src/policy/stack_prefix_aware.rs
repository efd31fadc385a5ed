//! `stack-prefix-aware`: vLLM production-stack's prefixaware routing (`routing_logic.py` and
//! `prefix/hashtrie.py` @a6c01db0).
//!
//! A trie of 128-character chunks (the last may be shorter) says to whom each prefix was sent. Candidates
//! narrow as long as anybody is left who was sent the next chunk too, and one of those who are left is
//! drawn. No load is looked at, and nothing is ever forgotten. A match below `min_match` goes to the
//! fewest requests over the last minute instead, and is then not put into the trie; with the default of 0
//! that never happens.

use std::collections::VecDeque;

use super::index::{BlockIndex, chain};
use super::tools::{Dice, all_least};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad};

/// The trie, and when each replica was sent something.
#[derive(Clone, Debug)]
pub struct StackPrefixAware {
    dice: Dice,
    knobs: Knobs,
    trie: BlockIndex,
    /// When requests were sent, over the window.
    sent: Vec<VecDeque<u64>>,
    hashes: Vec<u64>,
    matched: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    chunk: f64,
    min_match: f64,
    insert_on_fallback: bool,
    window: u64,
    chars_per_token: f64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::StackPrefixAware);
        Knobs {
            chunk: own.real("chunk_chars"),
            min_match: own.real("min_match"),
            insert_on_fallback: own.is_on("insert_on_fallback"),
            window: own.picos("qps_window"),
            chars_per_token: own.real("chars_per_token"),
        }
    }
}

impl StackPrefixAware {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> StackPrefixAware {
        StackPrefixAware {
            dice: Dice::new(settings.seed),
            knobs: Knobs::new(settings),
            trie: BlockIndex::default(),
            sent: Vec::new(),
            hashes: Vec::new(),
            matched: Vec::new(),
        }
    }
}

impl Policy for StackPrefixAware {
    fn name(&self) -> &'static str {
        "stack-prefix-aware"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, knobs) = (replicas.len(), self.knobs);
        let chunk = asked.items_in(knobs.chunk / knobs.chars_per_token);
        chain(asked.items, chunk, true, &mut self.hashes);
        self.matched.resize(n, 0);
        self.trie.leading(&self.hashes, &mut self.matched);
        let most = self.matched.iter().copied().max().expect("a fleet has at least one replica");
        let survivors: Vec<u32> =
            (0..n as u32).filter(|&replica| self.matched[replica as usize] == most).collect();
        // A chunk counts whole, the last one too.
        let fallback = f64::from(most) * knobs.chunk < knobs.min_match;
        self.sent.resize(self.sent.len().max(n), VecDeque::new());
        for sent in &mut self.sent {
            while sent.front().is_some_and(|at| asked.now.0 - at > knobs.window) {
                sent.pop_front();
            }
        }
        let (replica, reason, tied, loads) = if fallback {
            let rates: Vec<u64> = self.sent[..n].iter().map(|sent| sent.len() as u64).collect();
            let slowest = all_least(rates.iter().enumerate().map(|(replica, &rate)| (replica as u32, rate)));
            (slowest[0], Reason::ShortMatch, slowest.len(), rates)
        } else {
            let reason = if most == 0 { Reason::Drawn } else { Reason::LongestMatch };
            (self.dice.one_of(&survivors), reason, survivors.len(), Vec::new())
        };
        self.sent[replica as usize].push_back(asked.now.0);
        let predicted = asked.tokens_in(self.matched[replica as usize] as usize * chunk);
        if !fallback || knobs.insert_on_fallback {
            self.hashes.iter().for_each(|&hash| self.trie.add(hash, replica));
        }
        Decision {
            replica,
            reason,
            tied: tied as u32,
            candidates: if fallback || survivors.len() == n { Vec::new() } else { survivors },
            predicted: Some(predicted),
            loads,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::{asked, in_flight, tuned};

    fn policy(knobs: &[(&str, f64)]) -> StackPrefixAware {
        StackPrefixAware::new(&tuned(PolicyKind::StackPrefixAware, knobs))
    }

    fn prompt(shared: usize, own: u32) -> Vec<u32> {
        (0..600).map(|at| if at < shared { 7 } else { 100 + own }).collect()
    }

    /// Two shared chunks of 128 are enough: from the second request on everybody goes where the first
    /// went, however busy it is.
    #[test]
    fn a_shared_chunk_holds_everybody_together() {
        let mut policy = policy(&[]);
        let fleet = in_flight(&[900, 900, 900, 900]);
        let mut pick = |own| policy.route(&asked(&prompt(300, own), own, 0.0), &fleet);
        let first = pick(0);
        assert_eq!((first.reason, first.tied, first.predicted), (Reason::Drawn, 4, Some(0)));
        for own in 1..50 {
            let next = pick(own);
            assert_eq!(
                (next.replica, next.reason, next.predicted),
                (first.replica, Reason::LongestMatch, Some(256))
            );
        }
    }

    #[test]
    fn a_least_match_is_never_reached_unless_fallbacks_are_remembered() {
        for (insert, reached) in [(0.0, false), (1.0, true)] {
            let mut policy = policy(&[("min_match", 256.0), ("insert_on_fallback", insert)]);
            let fleet = in_flight(&[0; 3]);
            let picks: Vec<Decision> = (0..6)
                .map(|own| policy.route(&asked(&prompt(300, own), own, 0.1 * f64::from(own)), &fleet))
                .collect();
            let followed = picks.iter().filter(|decision| decision.reason == Reason::LongestMatch).count();
            assert_eq!(followed, if reached { 5 } else { 0 });
            if !reached {
                let replicas: Vec<u32> = picks.iter().map(|decision| decision.replica).collect();
                assert_eq!(replicas, [0, 1, 2, 0, 1, 2], "the fewest requests a minute");
            }
        }
    }

    #[test]
    fn the_rate_is_of_the_last_minute() {
        let mut policy = policy(&[("min_match", 1e6)]);
        let fleet = in_flight(&[0; 2]);
        let mut at = |seconds| policy.route(&asked(&[1], 0, seconds), &fleet).replica;
        assert_eq!([at(0.0), at(50.0), at(55.0)], [0, 1, 0]);
        assert_eq!(at(61.0), 0, "of two requests to replica 0 one is older than a minute: a tie");
    }
}
