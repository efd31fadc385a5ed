//! What prompts have in common: how much of them one infinite cache would have, how long it has to keep it, and how
//! the prompts' beginnings are shared out.
//!
//! A block can be reused where it and all before it were there before (so only whole blocks, and only where they are
//! known). Its *distance* is how many different tokens went through the cache since: an LRU cache of that size still
//! has it (Mattson, Gecsei, Slutz, Traiger 1970). A prompt's blocks are used deepest first, as the pool evicts them.

use serde::Serialize;

use super::BLOCK;
use crate::trace::import::intern::{Chain, Interner};
use crate::trace::{Content, Prompt, Trace};

/// Steps of a histogram's scale in each doubling.
const STEPS: f64 = 4.0;

/// Ids of the blocks that all share, at most so many of which are named.
const NAMED: usize = 8;

/// What prompts have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reuse {
    /// Tokens of a block.
    pub block: usize,
    /// Whether anything but lengths is known of the prompts.
    pub known: bool,
    /// Whole blocks of all prompts.
    pub blocks: u64,
    /// Those of them that are different.
    pub distinct: u64,
    /// The part of all prompt tokens that one infinite cache would have; null without tokens.
    pub ideal: Option<f64>,
    /// Leading tokens that all prompts share, in whole blocks.
    pub shared_tokens: u64,
    /// The ids of those blocks, the first few, where the trace has ids.
    pub shared_ids: Vec<u32>,
    /// Tokens that went through since a reused block's last use: half of them fewer, nine tenths fewer, 99 % fewer.
    pub distance_tokens: Option<[f64; 3]>,
    /// Seconds since then, the same.
    pub distance_seconds: Option<[f64; 3]>,
    /// What one LRU cache of some size would have.
    pub curve: Vec<CurvePoint>,
    /// How the prompts' beginnings are shared out.
    pub skew: Skew,
}

/// One size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Tokens that it holds.
    pub tokens: f64,
    /// The part of all prompt tokens that it would have had.
    pub hit: f64,
}

/// How many prompts begin alike, after what all share.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Skew {
    /// Different beginnings (a block each).
    pub beginnings: usize,
    /// As many equal ones would be as uneven: 1 ÷ the sum of squared shares; null without any.
    pub effective: Option<f64>,
    /// The largest shares of the requests, up to ten.
    pub largest: Vec<f64>,
}

/// Counts on a scale of quarters of a doubling.
#[derive(Default)]
struct Histogram(Vec<u64>);

impl Histogram {
    fn add(&mut self, value: f64) {
        let at = (STEPS * libm::log2(value + 1.0)) as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += 1;
    }

    /// The upper end of a step.
    fn end(at: usize) -> f64 {
        libm::exp2((at + 1) as f64 / STEPS) - 1.0
    }

    /// The end of the step below which this part lies.
    fn below(&self, part: f64) -> Option<f64> {
        let all: u64 = self.0.iter().sum();
        let mut sum = 0;
        let reached = self.0.iter().position(|&count| {
            sum += count;
            sum as f64 >= part * all as f64
        });
        reached.filter(|_| all > 0).map(Histogram::end)
    }

    fn three(&self) -> Option<[f64; 3]> {
        Some([self.below(0.5)?, self.below(0.9)?, self.below(0.99)?])
    }
}

/// How many different blocks were used since a block's last use: a tree of counts over time (Fenwick 1994), in
/// which each block is where it was used last.
struct Recency {
    tree: Vec<u32>,
    /// By block: when it was used last, from 1 on; 0: never.
    last: Vec<u32>,
    now: usize,
}

impl Recency {
    fn new() -> Recency {
        Recency { tree: vec![0; 1 << 12], last: Vec::new(), now: 0 }
    }

    fn add(&mut self, mut at: usize, by: u32) {
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Blocks whose last use is at this time or before.
    fn until(&self, mut at: usize) -> u32 {
        let mut sum = 0u32;
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    /// Uses a block; how many others were used since it was last, if it ever was.
    fn use_block(&mut self, block: u32) -> Option<u32> {
        if self.now + 1 >= self.tree.len() {
            self.compact();
        }
        if self.last.len() <= block as usize {
            self.last.resize(block as usize + 1, 0);
        }
        let before = self.last[block as usize] as usize;
        let since = (before > 0).then(|| self.until(self.now) - self.until(before));
        if before > 0 {
            self.add(before, 1u32.wrapping_neg());
        }
        self.now += 1;
        self.last[block as usize] = self.now as u32;
        self.add(self.now, 1);
        since
    }

    /// Renumbers the times, leaving out those at which nothing was used last.
    fn compact(&mut self) {
        let mut used: Vec<u32> = (0..self.last.len() as u32).filter(|&b| self.last[b as usize] > 0).collect();
        used.sort_unstable_by_key(|&block| self.last[block as usize]);
        self.tree = vec![0; (2 * used.len() + 1).next_power_of_two().max(1 << 12) * 2];
        for (at, &block) in used.iter().enumerate() {
            self.last[block as usize] = at as u32 + 1;
            self.add(at + 1, 1);
        }
        self.now = used.len();
    }
}

/// A prompt's whole blocks, each as a chain with all before it.
fn chains(prompt: &Prompt) -> impl Iterator<Item = Chain> {
    let size = block_of(prompt);
    prompt.contents(0, size).scan(Chain::default(), |chain, content| {
        *chain = match content {
            Content::Part(part) => chain.then(part),
            Content::Tokens(tokens) => tokens.iter().fold(*chain, |chain, &token| chain.then(token.into())),
        };
        Some(*chain)
    })
}

fn block_of(prompt: &Prompt) -> usize {
    match prompt {
        Prompt::Tokens(_) => BLOCK,
        Prompt::Blocks(_) => prompt.tokens_per_item(),
    }
}

impl Reuse {
    /// Of a trace in order of arrival.
    pub fn of(trace: &Trace) -> Reuse {
        let block = trace.requests.first().map_or(BLOCK, |request| block_of(&request.prompt));
        let (mut ids, mut recency) = (Interner::default(), Recency::new());
        let (mut distances, mut pauses) = (Histogram::default(), Histogram::default());
        let mut last_time: Vec<u64> = Vec::new();
        let (mut blocks, mut hits, mut tokens) = (0u64, 0u64, 0u64);
        let mut own: Vec<u32> = Vec::new();
        let mut common: Option<Vec<u32>> = None;
        for request in &trace.requests {
            tokens += request.prompt.len() as u64;
            own.clear();
            // A trace that had more different blocks than ids would not fit in memory.
            own.extend(chains(&request.prompt).map_while(|chain| ids.id(chain)));
            blocks += own.len() as u64;
            for &block_id in own.iter().rev() {
                let now = request.arrival.0;
                if let Some(since) = recency.use_block(block_id) {
                    hits += 1;
                    // The block itself has to fit too.
                    distances.add((f64::from(since) + 1.0) * block as f64);
                    pauses.add((now - last_time[block_id as usize]) as f64 / 1e9);
                }
                if last_time.len() <= block_id as usize {
                    last_time.resize(block_id as usize + 1, 0);
                }
                last_time[block_id as usize] = now;
            }
            let same = |common: &Vec<u32>| common.iter().zip(&own).take_while(|(a, b)| a == b).count();
            match &mut common {
                None => common = Some(own.clone()),
                Some(common) => common.truncate(same(common)),
            }
        }
        let shared = common.map_or(0, |common| common.len());
        let part = |blocks: u64| blocks as f64 * block as f64 / tokens as f64;
        let mut sum = 0;
        let curve = distances.0.iter().enumerate().filter(|_| tokens > 0).map(|(at, &count)| {
            sum += count;
            CurvePoint { tokens: Histogram::end(at), hit: part(sum) }
        });
        let curve = curve.skip_while(|point| point.hit == 0.0).collect();
        let shared_ids = trace.requests.first().map_or(Vec::new(), |request| match &request.prompt {
            Prompt::Blocks(blocks) => blocks.ids.iter().copied().take(shared.min(NAMED)).collect(),
            Prompt::Tokens(_) => Vec::new(),
        });
        let milliseconds = |three: [f64; 3]| three.map(|ms| ms / 1e3);
        Reuse {
            block,
            known: trace.requests.iter().any(|request| !request.prompt.items().is_empty()),
            blocks,
            distinct: ids.len() as u64,
            ideal: (tokens > 0).then(|| part(hits)),
            shared_tokens: (shared * block) as u64,
            shared_ids,
            distance_tokens: distances.three(),
            distance_seconds: pauses.three().map(milliseconds),
            curve,
            skew: Skew::of(trace, shared),
        }
    }
}

impl Skew {
    /// By the block after the first `shared`.
    fn of(trace: &Trace, shared: usize) -> Skew {
        let mut ids = Interner::default();
        let mut counts: Vec<u64> = Vec::new();
        for request in &trace.requests {
            let Some(id) = chains(&request.prompt).nth(shared).and_then(|chain| ids.id(chain)) else {
                continue;
            };
            if counts.len() <= id as usize {
                counts.resize(id as usize + 1, 0);
            }
            counts[id as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all = counts.iter().sum::<u64>() as f64;
        let shares = || counts.iter().map(|&count| count as f64 / all);
        Skew {
            beginnings: counts.len(),
            effective: (!counts.is_empty()).then(|| 1.0 / shares().map(|share| share * share).sum::<f64>()),
            largest: shares().take(10).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{BlockIds, RequestSpec};
    use crate::units::Time;

    fn trace(rows: &[&[u32]]) -> Trace {
        let request = |(at, ids): (usize, &&[u32])| RequestSpec {
            arrival: Time(at as u64 * 1_000_000_000_000),
            prompt: Prompt::Blocks(BlockIds { tokens: 4 * ids.len() as u32, block: 4, ids: (*ids).into() }),
            max_tokens: 1,
            tenant: None,
            output: None,
        };
        Trace { requests: rows.iter().enumerate().map(request).collect(), tenants: Vec::new() }
    }

    #[test]
    fn what_was_there_before_is_reused_and_what_follows_another_beginning_is_not() {
        let reuse = Reuse::of(&trace(&[&[0, 1, 2], &[0, 2, 1], &[0, 1, 2, 3]]));
        assert_eq!((reuse.blocks, reuse.distinct), (10, 6));
        assert_eq!(reuse.ideal, Some(4.0 / 10.0));
        assert_eq!((reuse.shared_tokens, &reuse.shared_ids[..]), (4, &[0][..]));
        assert_eq!(reuse.skew.beginnings, 2);
        assert_eq!(reuse.skew.largest, [2.0 / 3.0, 1.0 / 3.0]);
        assert!(reuse.curve.last().is_some_and(|point| Some(point.hit) == reuse.ideal));
    }

    #[test]
    fn recency_counts_what_was_used_since() {
        let mut recency = Recency::new();
        // Against a list of the blocks in order of their last use.
        let (mut list, mut state) = (Vec::<u32>::new(), 7u64);
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let block = (state >> 33) as u32 % 50;
            let at = list.iter().position(|&b| b == block);
            let expected = at.map(|at| (list.len() - 1 - at) as u32);
            assert_eq!(recency.use_block(block), expected);
            list.retain(|&b| b != block);
            list.push(block);
        }
    }

    #[test]
    fn of_lengths_alone_nothing_is_known() {
        let mut trace = trace(&[&[], &[]]);
        for request in &mut trace.requests {
            request.prompt = Prompt::of_length(100);
        }
        let reuse = Reuse::of(&trace);
        assert_eq!((reuse.known, reuse.ideal, reuse.distinct), (false, Some(0.0), 0));
        assert_eq!((reuse.skew, reuse.curve.len()), (Skew::default(), 0));
    }
}
