//! `mooncake`: the longest match, as Mooncake's Conductor reports it for each instance (docs @3b5a5941).
//!
//! The Conductor leaves the choice to whoever asked: here ties, and prompts that nobody has, go to the
//! fewest requests in flight, then to the lowest index. `load_weight` takes off a match what a replica has
//! of the busiest's requests, as gh:vllm-project/production-stack/pull/1035 does for kvaware routing.

use super::tools::{all_least, requests, usable};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, mean};

/// The longest match, with or without a load term.
#[derive(Clone, Copy, Debug)]
pub struct Mooncake {
    load_weight: f64,
}

impl Mooncake {
    /// With these settings.
    pub fn new(settings: &PolicySettings) -> Mooncake {
        Mooncake { load_weight: settings.tuning.of(PolicyKind::Mooncake).real("load_weight") }
    }
}

impl Policy for Mooncake {
    fn name(&self) -> &'static str {
        "mooncake"
    }

    fn reads_matches(&self) -> bool {
        true
    }

    fn retune(&mut self, settings: &PolicySettings) {
        *self = Mooncake::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let loads = requests(replicas);
        let most = loads.iter().copied().max().unwrap_or(0).max(1) as f64;
        let cached = |at: usize| usable(replicas[at].matched_blocks, asked.block_size, asked.tokens);
        let score = |at: usize| {
            let matched = f64::from(cached(at)) / f64::from(asked.tokens.max(1));
            matched - self.load_weight * loads[at] as f64 / most
        };
        let scores: Vec<f64> = (0..replicas.len()).map(score).collect();
        let best = all_least(scores.iter().enumerate().map(|(at, score)| (at as u32, (-score, loads[at]))));
        let replica = best[0];
        let predicted = cached(replica as usize);
        let plain = self.load_weight == 0.0;
        Decision {
            replica,
            reason: match (plain, predicted) {
                (true, 0) => Reason::LeastLoaded,
                (true, _) => Reason::LongestMatch,
                (false, _) => Reason::BestScore,
            },
            tied: best.len() as u32,
            mean: Some(mean(&loads)),
            matched: replicas.iter().map(|replica| replica.matched_blocks).collect(),
            scores: if plain { Vec::new() } else { scores },
            predicted: Some(predicted),
            loads,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(of: &[(u32, u32)]) -> Vec<ReplicaLoad> {
        let one =
            |&(matched_blocks, running)| ReplicaLoad { matched_blocks, running, ..ReplicaLoad::default() };
        of.iter().map(one).collect()
    }

    #[test]
    fn the_longest_match_wins_then_the_fewest_requests_then_the_lowest_index() {
        let mut policy = Mooncake::new(&PolicySettings::default());
        let mut pick = |of: &[(u32, u32)]| policy.route(&Asked::of(&[3; 100]), &fleet(of));
        let longest = pick(&[(2, 0), (5, 900), (0, 0)]);
        assert_eq!((longest.replica, longest.reason, longest.predicted), (1, Reason::LongestMatch, Some(80)));
        assert_eq!(pick(&[(5, 9), (5, 3), (5, 3)]).replica, 1);
        let none = pick(&[(0, 2), (0, 1), (0, 1)]);
        assert_eq!((none.replica, none.reason, none.tied), (1, Reason::LeastLoaded, 2));
    }

    /// 0.8 − 0.5 × 1 = 0.3 against 0.48 − 0.5 × 0.25 = 0.355.
    #[test]
    fn with_a_load_term_a_busy_holder_loses() {
        let tuning = PolicySettings::default().tuning.with("mooncake.load_weight", 0.5);
        let mut policy = Mooncake::new(&PolicySettings { tuning, ..PolicySettings::default() });
        let decision = policy.route(&Asked::of(&[3; 100]), &fleet(&[(5, 8), (3, 2)]));
        assert_eq!((decision.replica, decision.reason), (1, Reason::BestScore));
        assert!((decision.scores[0] - 0.3).abs() < 1e-12 && (decision.scores[1] - 0.355).abs() < 1e-12);
    }
}
