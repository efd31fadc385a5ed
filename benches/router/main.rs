//! What a decision costs under each policy, in nanoseconds of this thread's processor time.
//!
//! `cargo run --release --example router -- [REPLICAS …]` (4, 64 and 1,024 without any). 2,000 prompts are
//! sent first; every decision is of a prompt that was never sent. What a cache has of a prompt is
//! given, not looked up: that is the engines' work. `benches/router_peer` runs the indexes beside
//! kv-index, the crate of SMG's router.

use warmroute::policy::{Asked, Happened, Policy, PolicyKind, PolicySettings, ReplicaLoad, Told};
use warmroute::units::Time;

#[path = "../simulate/host.rs"]
#[allow(dead_code, reason = "shared with the simulator's benchmark")]
mod host;
mod workload;

use workload::Workload;

const WARM: usize = 2000;
const BATCH: usize = 64;
const ROUNDS: usize = 9;

/// Decides on prompts, and has everything of them finished at once.
fn decide(policy: &mut dyn Policy, prompts: &[Vec<u32>], loads: &[ReplicaLoad], from: usize) {
    for (at, prompt) in prompts.iter().enumerate() {
        let request = (from + at) as u32;
        let now = Time(u64::from(request) * 1_000_000_000);
        let session = Some(request);
        let asked = Asked { request, now, session, max_tokens: 100, ..Asked::of(prompt) };
        let replica = policy.route(&asked, loads).replica;
        if policy.follows() {
            policy.told(Told { request, replica, what: Happened::Finished });
        }
    }
}

fn nanoseconds(kind: PolicyKind, replicas: usize, tokens: usize) -> f64 {
    let mut workload = Workload::new(tokens);
    let loads: Vec<ReplicaLoad> = Workload::loads(replicas)
        .into_iter()
        .enumerate()
        .map(|(at, running)| ReplicaLoad {
            running: running as u32,
            outstanding_tokens: 500 * running,
            matched_blocks: (tokens / 64 + at % 3) as u32,
            held_blocks: 100 + at as u32 % 50,
            pool_blocks: 1000,
            ..ReplicaLoad::default()
        })
        .collect();
    let mut policy = kind.build(&PolicySettings::default());
    decide(policy.as_mut(), &workload.prompts(WARM), &loads, 0);
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let prompts = workload.prompts(BATCH);
            let start = host::processor_seconds();
            decide(policy.as_mut(), &prompts, &loads, WARM + round * BATCH);
            1e9 * (host::processor_seconds() - start) / BATCH as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn main() {
    let mut fleets: Vec<usize> = host::arguments().iter().filter_map(|arg| arg.parse().ok()).collect();
    if fleets.is_empty() {
        fleets = vec![4, 64, 1024];
    }
    host::print("ns a decision; prompts of 200 and of 4,000 tokens");
    for &replicas in &fleets {
        host::print(&format!("| {replicas} replicas         |    200 |  4,000 |"));
        for kind in PolicyKind::every() {
            let [short, long] = [200, 4000].map(|tokens| nanoseconds(kind, replicas, tokens));
            host::print(&format!("| {:<20} | {short:>6.0} | {long:>6.0} |", kind.name()));
        }
    }
}
