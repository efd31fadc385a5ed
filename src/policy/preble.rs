//! `preble`: Preble's global scheduler (`preble/global_scheduler_with_time.py` @8e7906a3).
//!
//! A radix tree of prompts; each node is owned by the replicas that its requests were sent to. If a prompt
//! is matched by more than it adds, its owners are those of its deepest node that has any, and the one
//! with the least cost gets it. If it adds at least as much, the least cost of all decides, first index
//! first. A replica's cost is the sum, over the large nodes where requests of the last three minutes end
//! (large: longer than all before it), of `miss rate × requests × prefill time ÷ owners`, and of
//! `requests that run there × 45 × 0.15 s`. Prefill times are Mistral-7B's on an A6000, as Preble fitted
//! them.
//!
//! Once 50 requests a replica were sent, and the dearest costs 1.5 times the cheapest, large nodes with
//! more than one request move from one to the other, the cheapest first, until that would turn the
//! balance; if there is only one, it is both's. The source asks for that last step that the time to its
//! first tokens has doubled, which nobody measures here, and picks among several owners by the place in
//! their list as though it were a number of a replica; here the owner itself is meant.

use std::collections::BTreeMap;

use super::aibrix_preble::{Window, context, prefill_cost};
use super::index::RadixIndex;
use super::tools::all_least;
use super::{Asked, Decision, Happened, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, Told};

/// The tree, the window, and what runs.
#[derive(Clone, Debug)]
pub struct Preble {
    knobs: Knobs,
    tree: RadixIndex,
    window: Window,
    /// By request: the large node that it ends at.
    running: BTreeMap<u32, u32>,
    /// Requests that run, by node and replica.
    active: BTreeMap<(u32, u32), u64>,
    sent: u64,
    per_item: u32,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    window: u64,
    decode: f64,
    steal_ratio: f64,
    steal_after: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::Preble);
        Knobs {
            window: own.picos("window"),
            decode: own.real("decode_tokens") * own.real("time_per_token"),
            steal_ratio: own.real("steal_ratio"),
            steal_after: own.whole("steal_after") as u64,
        }
    }
}

impl Preble {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> Preble {
        Preble {
            knobs: Knobs::new(settings),
            tree: RadixIndex::new(1),
            window: Window::default(),
            running: BTreeMap::new(),
            active: BTreeMap::new(),
            sent: 0,
            per_item: 1,
        }
    }

    fn is_large(&self, node: u32) -> bool {
        let own = self.tree.edge_len(node);
        2 * own > context(&self.tree, node)
    }

    /// What runs of a node on a replica costs it.
    fn active_cost(&self, node: u32, replica: u32) -> f64 {
        self.active.get(&(node, replica)).copied().unwrap_or(0) as f64 * self.knobs.decode
    }

    fn costs(&self, replicas: usize) -> Vec<f64> {
        let mut costs = vec![0.0; replicas];
        for (&node, &ended) in &self.window.nodes {
            let prefill = prefill_cost(&self.tree, node, ended, self.per_item, false);
            for owner in self.tree.holders(node).filter(|&owner| (owner as usize) < replicas) {
                costs[owner as usize] += prefill + self.active_cost(node, owner);
            }
        }
        costs
    }

    /// Moves prefixes from the dearest replica to the cheapest, where they are far apart.
    fn steal(&mut self, replicas: usize, now: u64) {
        if replicas < 2 || self.sent < self.knobs.steal_after * replicas as u64 {
            return;
        }
        let costs = self.costs(replicas);
        let by = |a: &usize, b: &usize| costs[*a].total_cmp(&costs[*b]);
        let dear = (0..replicas).max_by(by).expect("there are two");
        let cheap = (0..replicas).min_by(by).expect("there are two");
        let (mut high, mut low) = (costs[dear], costs[cheap]);
        if dear == cheap || high < self.knobs.steal_ratio * low || high == 0.0 {
            return;
        }
        let (from, to) = (dear as u32, cheap as u32);
        let movable = self.window.nodes.iter().filter(|(node, ended)| {
            ended.requests > 1 && self.tree.holds(**node, from) && self.is_large(**node)
        });
        let cost = |(&node, &ended)| {
            let prefill = prefill_cost(&self.tree, node, ended, self.per_item, false);
            (prefill + self.active_cost(node, from), node)
        };
        let mut nodes: Vec<(f64, u32)> = movable.map(cost).collect();
        nodes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if let [(_, only)] = nodes[..] {
            self.tree.share(only, to, now);
            return;
        }
        for (cost, node) in nodes {
            if high < low + cost {
                break;
            }
            (high, low) = (high - cost, low + cost);
            self.tree.hand_over(node, to, now);
        }
    }
}

impl Policy for Preble {
    fn name(&self) -> &'static str {
        "preble"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn follows(&self) -> bool {
        true
    }

    fn told(&mut self, told: Told) {
        if told.what == Happened::Finished
            && let Some(node) = self.running.remove(&told.request)
            && let Some(active) = self.active.get_mut(&(node, told.replica))
        {
            *active -= 1;
            if *active == 0 {
                self.active.remove(&(node, told.replica));
            }
        }
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, now) = (replicas.len(), asked.now.0);
        self.per_item = asked.per_item;
        for node in self.window.expire(now, self.knobs.window) {
            self.tree.disown(node);
        }
        let found = self.tree.find(asked.items);
        let added = asked.items.len() - found.items;
        let held = self.tree.among(found, |replica| (replica as usize) < n);
        let owners: Vec<u32> = match added < found.items {
            true => self.tree.holders(held.node).filter(|&owner| (owner as usize) < n).collect(),
            false => Vec::new(),
        };
        let scores = self.costs(n);
        let score = |replica: u32| (replica, scores[replica as usize]);
        let best = if owners.is_empty() {
            all_least((0..n as u32).map(score))
        } else {
            all_least(owners.iter().map(|&owner| score(owner)))
        };
        let replica = best[0];
        let own = self.tree.among(found, |own| own == replica);
        let leaf = self.tree.insert(found, asked.items, replica, now);
        // All owners own what is new, not only the one that was picked.
        owners.iter().for_each(|&owner| self.tree.share(leaf, owner, now));
        let mut node = leaf;
        while !self.is_large(node)
            && let Some(parent) = self.tree.parent(node)
        {
            node = parent;
        }
        let prompt = asked.items.len() as u64;
        self.window.add(now, node, prompt, prompt - self.tree.edge_len(leaf) as u64);
        self.running.insert(asked.request, node);
        *self.active.entry((node, replica)).or_default() += 1;
        self.sent += 1;
        if self.knobs.steal_ratio.is_finite() {
            self.steal(n, now);
        }
        Decision {
            replica,
            reason: if owners.is_empty() { Reason::BestScore } else { Reason::LongestMatch },
            tied: best.len() as u32,
            candidates: owners,
            predicted: Some(asked.tokens_in(own.items)),
            scores,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::{asked, in_flight, tuned};

    fn prompt(shared: usize, own: u32) -> Vec<u32> {
        (0..400).map(|at| if at < shared { at as u32 } else { 1000 * own + at as u32 }).collect()
    }

    fn policy(knobs: &[(&str, f64)]) -> Preble {
        Preble::new(&tuned(PolicyKind::Preble, knobs))
    }

    fn ask(policy: &mut Preble, request: u32, prompt: &[u32], seconds: f64) -> Decision {
        policy.route(&asked(prompt, request, seconds), &in_flight(&[0, 0]))
    }

    /// 400 new tokens cost (0.10842571 × 400 + 4.2098 + 0.32) ÷ 900 s, and one that runs 6.75 s.
    #[test]
    fn a_prompt_that_is_mostly_new_goes_to_the_least_cost() {
        let mut policy = policy(&[]);
        assert_eq!(ask(&mut policy, 0, &prompt(0, 1), 0.0).replica, 0);
        let second = ask(&mut policy, 1, &prompt(0, 2), 1.0);
        let prefill = (0.108_425_71 * 400.0 + 4.209_777_054_806_409 + 0.32) / 900.0;
        assert!((second.scores[0] - prefill - 6.75).abs() < 1e-12, "{:?}", second.scores);
        assert_eq!((second.replica, second.reason), (1, Reason::BestScore));
        policy.told(Told { request: 0, replica: 0, what: Happened::Finished });
        let third = ask(&mut policy, 2, &prompt(0, 3), 2.0);
        assert!((third.scores[0] - prefill).abs() < 1e-12 && third.replica == 0, "{:?}", third.scores);
    }

    #[test]
    fn a_prompt_that_is_mostly_known_goes_to_its_owner_until_the_window_is_over() {
        let mut policy = policy(&[("steal_ratio", f64::INFINITY)]);
        ask(&mut policy, 0, &prompt(400, 0), 0.0);
        for request in 1..20 {
            let next = ask(&mut policy, request, &prompt(300, request), 1.0);
            assert_eq!((next.replica, next.reason, next.predicted), (0, Reason::LongestMatch, Some(300)));
        }
        let half = ask(&mut policy, 20, &prompt(200, 20), 2.0);
        assert_eq!((half.replica, half.reason), (1, Reason::BestScore), "200 new ones are as many");
    }

    #[test]
    fn a_hot_prefix_becomes_both_replicas() {
        let mut policy = policy(&[("steal_after", 5.0)]);
        let picks: Vec<u32> =
            (0..40).map(|own| ask(&mut policy, own, &prompt(300, own), 1.0).replica).collect();
        assert!(picks[..10].iter().all(|&replica| replica == 0), "{picks:?}");
        assert!(picks[20..].contains(&1), "{picks:?}");
    }
}
