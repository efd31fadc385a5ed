//! Our indexes and kv-index's (2.0.0, what SMG's router keeps), asked the same in turns in one process:
//! nanoseconds of this thread's processor time a decision, and bytes for each distinct token.
//!
//! Two kinds: a tree of what was sent (the match, the choice among holders or of the fewest requests,
//! and the insertion), and an index of blocks by hash (hashing the prompt and counting each replica's
//! leading blocks; what engines tell is put in before). Every prompt is new. Rounds are taken in turns, who
//! goes first changing; a ratio is of one round, and the table has the median.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use kv_index::{
    ChainBlockMap, ChainIndex, ContentHash, StoredBlock, TokenTree, compute_request_content_hashes,
    request_prefix_hashes,
};
use warmroute::policy::index::{BlockIndex, RadixIndex, chain};
use warmroute::policy::{Asked, Policy, PolicySettings, ReplicaLoad, SmgCacheAware};

#[path = "../../router/workload.rs"]
mod workload;

use workload::Workload;

/// Counts what is allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Seconds that this thread has run.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number comes first") / 1e9
}

/// One that decides on prompts.
trait Side {
    fn decide(&mut self, prompt: &[u32]);
}

/// The replica with the fewest requests.
fn idlest(loads: &[u64]) -> usize {
    (0..loads.len()).min_by_key(|&at| loads[at]).expect("there are replicas")
}

struct OurTree {
    tree: RadixIndex,
    loads: Vec<u64>,
    at: u64,
}

impl Side for OurTree {
    fn decide(&mut self, prompt: &[u32]) {
        let found = self.tree.find(prompt);
        let pick = if 10 * found.items > 3 * prompt.len() {
            let holders = self.tree.holders(found.node).take(8);
            holders.min_by_key(|&holder| self.loads[holder as usize]).expect("somebody holds it")
        } else {
            idlest(&self.loads) as u32
        };
        self.at += 1;
        self.tree.insert(found, prompt, pick, self.at);
    }
}

struct OurPolicy {
    policy: SmgCacheAware,
    loads: Vec<ReplicaLoad>,
}

impl Side for OurPolicy {
    fn decide(&mut self, prompt: &[u32]) {
        std::hint::black_box(self.policy.route(&Asked::of(prompt), &self.loads));
    }
}

struct TheirTree {
    tree: TokenTree,
    names: Vec<String>,
    by_name: std::collections::HashMap<String, usize>,
    loads: Vec<u64>,
}

impl Side for TheirTree {
    fn decide(&mut self, prompt: &[u32]) {
        let (loads, names, by_name) = (&self.loads, &self.names, &self.by_name);
        self.tree.match_and_insert_with(prompt, |found| {
            let pick = if 10 * found.matched_token_count > 3 * found.input_token_count {
                let holders = found.matched_tenants.iter().filter_map(|name| by_name.get(&**name).copied());
                holders.min_by_key(|&holder| loads[holder]).unwrap_or_else(|| idlest(loads))
            } else {
                idlest(loads)
            };
            Some(&names[pick])
        });
    }
}

struct OurBlocks {
    index: BlockIndex,
    hashes: Vec<u64>,
    counts: Vec<u32>,
}

impl Side for OurBlocks {
    fn decide(&mut self, prompt: &[u32]) {
        chain(prompt, 16, false, &mut self.hashes);
        self.index.leading(&self.hashes, &mut self.counts);
        std::hint::black_box(self.counts.iter().max());
    }
}

struct TheirBlocks {
    index: ChainIndex,
}

impl Side for TheirBlocks {
    fn decide(&mut self, prompt: &[u32]) {
        let contents = compute_request_content_hashes(prompt, 16);
        let scores = self.index.find_matches(&contents, false);
        std::hint::black_box(scores.scores.values().max());
    }
}

fn names(replicas: usize) -> Vec<String> {
    (0..replicas).map(|at| format!("http://worker-{at:04}.inference.svc.cluster.local:8000")).collect()
}

/// Median nanoseconds of both, and the median of the rounds' ratios, theirs to ours.
fn race(ours: &mut dyn Side, theirs: &mut dyn Side, workload: &mut Workload) -> (f64, f64, f64) {
    const ROUNDS: usize = 15;
    const BATCH: usize = 128;
    let mut rows: Vec<(f64, f64)> = Vec::new();
    for round in 0..ROUNDS {
        let prompts = workload.prompts(BATCH);
        let time = |side: &mut dyn Side| {
            let start = seconds();
            prompts.iter().for_each(|prompt| side.decide(prompt));
            1e9 * (seconds() - start) / BATCH as f64
        };
        rows.push(if round % 2 == 0 {
            let first = time(ours);
            (first, time(theirs))
        } else {
            let first = time(theirs);
            (time(ours), first)
        });
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let of = |pick: fn(&(f64, f64)) -> f64| median(rows.iter().map(pick).collect());
    (of(|row| row.0), of(|row| row.1), of(|row| row.1 / row.0))
}

/// What is allocated while something is made.
fn bytes<T>(make: impl FnOnce() -> T) -> (T, f64) {
    let before = LIVE.load(Ordering::Relaxed);
    let made = make();
    let after = LIVE.load(Ordering::Relaxed);
    (made, after.saturating_sub(before) as f64)
}

fn main() {
    println!("| index | replicas | tokens | ours ns | theirs ns | theirs ÷ ours | ours B a token | theirs B a token |");
    println!("|---|---|---|---|---|---|---|---|");
    for tokens in [200, 4000] {
        for replicas in [4, 64, 1024] {
            let mut workload = Workload::new(tokens);
            let warm = workload.prompts(2000);
            let distinct = (tokens / 4 + 64 * (tokens / 2) + warm.len() * (tokens - tokens / 4 - tokens / 2)) as f64;
            let loads = Workload::loads(replicas);
            let row = |name: &str, (ours, theirs, ratio): (f64, f64, f64), own: f64, other: f64| {
                println!(
                    "| {name} | {replicas} | {tokens} | {ours:.0} | {theirs:.0} | {ratio:.2} | {:.2} | {:.2} |",
                    own / distinct,
                    other / distinct
                );
            };
            let their_names = names(replicas);
            let their_tree = || {
                let by_name = their_names.iter().cloned().zip(0..).collect();
                TheirTree { tree: TokenTree::new(), names: their_names.clone(), by_name, loads: loads.clone() }
            };
            let send = |side: &mut dyn Side| warm.iter().for_each(|prompt| side.decide(prompt));
            let mut ours = OurTree { tree: RadixIndex::new(16), loads: loads.clone(), at: 0 };
            let ((), own) = bytes(|| send(&mut ours));
            let mut theirs = their_tree();
            let ((), other) = bytes(|| send(&mut theirs));
            row("tree", race(&mut ours, &mut theirs, &mut workload), own, other);

            let fleet = loads.iter().map(|&n| ReplicaLoad { running: n as u32, ..ReplicaLoad::default() });
            let mut ours = OurPolicy {
                policy: SmgCacheAware::new(&PolicySettings::default()),
                loads: fleet.collect(),
            };
            let ((), own) = bytes(|| send(&mut ours));
            let mut theirs = their_tree();
            let ((), other) = bytes(|| send(&mut theirs));
            row("tree, our whole policy", race(&mut ours, &mut theirs, &mut workload), own, other);

            // Who was sent what: the fleet's part is everybody's, the rest one replica's.
            let mut ours =
                OurBlocks { index: BlockIndex::default(), hashes: Vec::new(), counts: vec![0; replicas] };
            let ((), own) = bytes(|| {
                let mut hashes = Vec::new();
                for (at, prompt) in warm.iter().enumerate() {
                    chain(prompt, 16, false, &mut hashes);
                    hashes.iter().for_each(|&hash| ours.index.add(hash, (at % replicas) as u32));
                }
            });
            let index = ChainIndex::with_max_workers(replicas.max(64));
            let ids: Vec<u32> =
                their_names.iter().map(|name| index.intern_worker(name).expect("there is room")).collect();
            let (maps, other) = bytes(|| {
                let mut maps: Vec<ChainBlockMap> = (0..replicas).map(|_| ChainBlockMap::default()).collect();
                for (at, prompt) in warm.iter().enumerate() {
                    let contents: Vec<ContentHash> = compute_request_content_hashes(prompt, 16);
                    let blocks: Vec<StoredBlock> = contents
                        .iter()
                        .zip(request_prefix_hashes(&contents))
                        .map(|(&content_hash, seq_hash)| StoredBlock { seq_hash, content_hash })
                        .collect();
                    let worker = at % replicas;
                    index.apply_stored(ids[worker], &blocks, None, &mut maps[worker]).expect("it is whole");
                }
                maps
            });
            let mut theirs = TheirBlocks { index };
            row("blocks", race(&mut ours, &mut theirs, &mut workload), own, other);
            drop(maps);
        }
    }
}
