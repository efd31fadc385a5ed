//! `aibrix-preble`: AIBrix's variant of Preble (`prefix_cache_preble.go`).
//!
//! If more than half of a prompt is in a tree of what was sent, the least loaded holder of the longest
//! match gets it, where load is the number of requests of the last three minutes whose node it holds.
//! Otherwise it is the least sum, over the nodes where those requests end, of
//! `miss rate × requests × prefill time ÷ holders + 45 × 0.15 s`; ties go to the first. Prefill times are
//! Mistral-7B's on an A6000 as Preble fitted them, by default scaled to a V100. All nodes from the end of
//! the prompt to the root become the chosen replica's too.
//!
//! A token of an answer takes its default of 0.15 s, where the source has a median of what it measured.
//! The tree forgets nothing here: the source evicts nodes by its replicas' memory, of which it knows none.

use std::collections::{BTreeMap, VecDeque};

use super::index::RadixIndex;
use super::tools::all_least;
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad};

/// What ended at a node within the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    pub requests: u64,
    pub prompt: u64,
    pub hit: u64,
}

/// One request of the window.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    node: u32,
    prompt: u64,
    hit: u64,
}

/// The nodes at which the requests of a while ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    entries: VecDeque<Entry>,
    pub nodes: BTreeMap<u32, Ended>,
}

impl Window {
    /// Forgets what is older; the nodes of which nothing is left are returned.
    pub fn expire(&mut self, now: u64, window: u64) -> Vec<u32> {
        let mut gone = Vec::new();
        while let Some(entry) = self.entries.front().copied().filter(|entry| now - entry.at > window) {
            self.entries.pop_front();
            let ended = self.nodes.get_mut(&entry.node).expect("an entry's node is there");
            ended.requests -= 1;
            ended.prompt -= entry.prompt;
            ended.hit -= entry.hit;
            if ended.requests == 0 {
                self.nodes.remove(&entry.node);
                gone.push(entry.node);
            }
        }
        gone
    }

    /// A request ends at a node.
    pub fn add(&mut self, at: u64, node: u32, prompt: u64, hit: u64) {
        self.entries.push_back(Entry { at, node, prompt, hit });
        let ended = self.nodes.entry(node).or_default();
        ended.requests += 1;
        ended.prompt += prompt;
        ended.hit += hit;
    }
}

/// Seconds of a prefill of so many new tokens at the end of a context: Mistral-7B on an A6000, as Preble's
/// `LP_mistral_7b_A6000` fits it, or scaled to a V100 as AIBrix does.
fn prefill_seconds(new: f64, context: f64, v100: bool) -> f64 {
    let (line, curve, flat) = match v100 {
        false => ((0.108_425_71, 4.209_777_054_806_409), (-118.0, 1.25, -2.56e-3), 22.0),
        true => ((0.271_064_28, 10.524_442_63), (-295.0, 3.125, -6.4e-3), 55.0),
    };
    let linear = if new >= 384.0 {
        line.0 * new + line.1
    } else if new >= 192.0 {
        curve.0 + curve.1 * new + curve.2 * new * new
    } else {
        flat
    };
    let (short, slope, base) = if v100 { (0.80, 4.65e-4, 0.398) } else { (0.32, 1.86e-4, 0.159) };
    let attention = if context <= 1024.0 {
        short
    } else {
        let long = slope * context + base;
        if new <= 1024.0 { long / 2.0 } else { long }
    };
    let (a, b, c) = if v100 { (-18.425, 9.65e-3, 5.4e-6) } else { (-7.37, 3.86e-3, 2.16e-6) };
    let quadratic = if new >= 4096.0 { a + b * new + c * new * new } else { 0.0 };
    (linear + attention + quadratic) / 1000.0 / 0.9
}

/// Tokens from the root to a node, in items.
pub(super) fn context(tree: &RadixIndex, node: u32) -> usize {
    core::iter::successors(Some(node), |&node| tree.parent(node)).map(|node| tree.edge_len(node)).sum()
}

/// What the prefills that ended at a node cost each of its holders, in seconds.
pub(super) fn prefill_cost(tree: &RadixIndex, node: u32, ended: Ended, per_item: u32, v100: bool) -> f64 {
    let holders = tree.holders(node).count().max(1) as f64;
    let miss = 1.0 - ended.hit as f64 / ended.prompt.max(1) as f64;
    let tokens = |items: usize| items as f64 * f64::from(per_item);
    let prefill = prefill_seconds(tokens(tree.edge_len(node)), tokens(context(tree, node)), v100);
    miss * ended.requests as f64 * prefill / holders
}

/// The tree and the window.
#[derive(Clone, Debug)]
pub struct AibrixPreble {
    knobs: Knobs,
    tree: RadixIndex,
    window: Window,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    threshold: f64,
    v100: bool,
    decode: f64,
    window: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::AibrixPreble);
        Knobs {
            threshold: own.real("match_threshold"),
            v100: !own.is_on("gpu"),
            decode: own.real("decode_tokens") * own.real("time_per_token"),
            window: own.picos("window"),
        }
    }
}

impl AibrixPreble {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> AibrixPreble {
        AibrixPreble { knobs: Knobs::new(settings), tree: RadixIndex::new(1), window: Window::default() }
    }

    /// What each replica's nodes cost.
    fn costs(&self, replicas: usize, per_item: u32) -> Vec<f64> {
        let mut costs = vec![0.0; replicas];
        for (&node, &ended) in &self.window.nodes {
            let cost = prefill_cost(&self.tree, node, ended, per_item, self.knobs.v100) + self.knobs.decode;
            for holder in self.tree.holders(node).filter(|&holder| (holder as usize) < replicas) {
                costs[holder as usize] += cost;
            }
        }
        costs
    }
}

impl Policy for AibrixPreble {
    fn name(&self) -> &'static str {
        "aibrix-preble"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, now) = (replicas.len(), asked.now.0);
        self.window.expire(now, self.knobs.window);
        let found = self.tree.find(asked.items);
        let held = self.tree.among(found, |replica| (replica as usize) < n);
        let rate = found.items as f64 / asked.items.len().max(1) as f64;
        let holders: Vec<u32> = self.tree.holders(held.node).filter(|&r| (r as usize) < n).collect();
        let mut decision = if rate > self.knobs.threshold && !holders.is_empty() {
            let load = |replica: u32| -> u64 {
                let nodes = self.window.nodes.iter().filter(|(node, _)| self.tree.holds(**node, replica));
                nodes.map(|(_, ended)| ended.requests).sum()
            };
            let loads: Vec<u64> = (0..n as u32).map(load).collect();
            let best = all_least(holders.iter().map(|&replica| (replica, loads[replica as usize])));
            let (replica, tied) = (best[0], best.len() as u32);
            Decision {
                replica,
                reason: Reason::LongestMatch,
                tied,
                loads,
                candidates: holders,
                ..Decision::default()
            }
        } else {
            let scores = self.costs(n, asked.per_item);
            let best = all_least(scores.iter().enumerate().map(|(at, &cost)| (at as u32, cost)));
            let (replica, tied) = (best[0], best.len() as u32);
            Decision { replica, reason: Reason::BestScore, tied, scores, ..Decision::default() }
        };
        let own = self.tree.among(found, |replica| replica == decision.replica);
        decision.predicted = Some(asked.tokens_in(own.items));
        let node = self.tree.insert(found, asked.items, decision.replica, now);
        let prompt = context(&self.tree, node) as u64;
        self.window.add(now, node, prompt, prompt - self.tree.edge_len(node) as u64);
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::{asked, in_flight};

    fn prompt(shared: usize, own: u32) -> Vec<u32> {
        (0..400).map(|at| if at < shared { at as u32 } else { 1000 * own + at as u32 }).collect()
    }

    fn ask(policy: &mut AibrixPreble, prompt: &[u32], seconds: f64) -> Decision {
        policy.route(&asked(prompt, 0, seconds), &in_flight(&[0, 0, 0]))
    }

    /// 400 new tokens on a V100: (0.27106428 × 400 + 10.52444263 + 0.80) ÷ 1000 ÷ 0.9 s.
    #[test]
    fn a_request_costs_its_prefill_and_an_answer() {
        let mut policy = AibrixPreble::new(&PolicySettings::default());
        let first = ask(&mut policy, &prompt(0, 1), 0.0);
        assert_eq!((first.replica, first.reason, first.tied), (0, Reason::BestScore, 3));
        let second = ask(&mut policy, &prompt(0, 2), 1.0);
        let by_hand = (0.271_064_28 * 400.0 + 10.524_442_63 + 0.80) / 900.0 + 45.0 * 0.15;
        assert!((second.scores[0] - by_hand).abs() < 1e-12, "{:?}", second.scores);
        assert_eq!((second.replica, second.scores[1]), (1, 0.0));
        assert_eq!(ask(&mut policy, &prompt(0, 3), 2.0).replica, 2);
        let later = ask(&mut policy, &prompt(0, 4), 181.5);
        assert_eq!((later.replica, later.scores[0], later.scores[1]), (0, 0.0, 0.0), "three minutes later");
    }

    #[test]
    fn more_than_half_follows_the_match() {
        let mut policy = AibrixPreble::new(&PolicySettings::default());
        ask(&mut policy, &prompt(400, 0), 0.0);
        let half = ask(&mut policy, &prompt(200, 1), 1.0);
        assert_eq!((half.replica, half.reason), (1, Reason::BestScore), "half is not more than half");
        let more = ask(&mut policy, &prompt(201, 2), 2.0);
        assert_eq!((more.replica, more.reason, more.predicted), (0, Reason::LongestMatch, Some(201)));
        // Of those who have the first 200, replica 1 holds one node that ended there, replica 0 two.
        let shared = ask(&mut policy, &prompt(200, 1), 3.0);
        assert_eq!((shared.replica, shared.reason), (1, Reason::LongestMatch));
    }
}
