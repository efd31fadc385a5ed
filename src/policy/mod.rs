//! Which replica gets a request, and why: the [`Policy`] trait, one file per policy, the registry.

use serde::{Deserialize, Serialize};

use crate::trace::Token;
use crate::units::Time;

mod aibrix;
mod aibrix_preble;
mod chwbl;
mod consistent_hash;
mod dynamo;
mod explain;
pub mod index;
mod knobs;
mod least_requests;
mod least_tokens;
mod litellm;
mod llm_d;
mod longest_prefix;
mod modulo_hash;
mod mooncake;
mod power_of_two;
mod preble;
mod prefix_affinity;
mod random;
mod ray_prefix;
mod registry;
mod rendezvous_hash;
mod round_robin;
mod session_hash;
mod sglang_cache_aware;
mod smg_cache_aware;
mod smg_least_load;
mod smg_prefix_hash;
mod stack_prefix_aware;
mod tools;
mod vllm_kv_aware;

pub use aibrix::AibrixPrefixCache;
pub use aibrix_preble::AibrixPreble;
pub use chwbl::Chwbl;
pub use consistent_hash::ConsistentHash;
pub use dynamo::Dynamo;
pub use explain::{explain, grouped};
pub use knobs::{KNOBS, Knob, Range, Tuned, Tuning};
pub use least_requests::LeastRequests;
pub use least_tokens::LeastTokens;
pub use litellm::LiteLlm;
pub use llm_d::LlmD;
pub use longest_prefix::LongestPrefix;
pub use modulo_hash::ModuloHash;
pub use mooncake::Mooncake;
pub use power_of_two::PowerOfTwo;
pub use preble::Preble;
pub use prefix_affinity::{PrefixAffinity, tuple_hash};
pub use random::Random;
pub use ray_prefix::RayPrefix;
pub use registry::{PolicyKind, PolicySettings};
pub use rendezvous_hash::RendezvousHash;
pub use round_robin::RoundRobin;
pub use session_hash::SessionHash;
pub use sglang_cache_aware::SglangCacheAware;
pub use smg_cache_aware::SmgCacheAware;
pub use smg_least_load::SmgLeastLoad;
pub use smg_prefix_hash::SmgPrefixHash;
pub use stack_prefix_aware::StackPrefixAware;
pub use vllm_kv_aware::VllmKvAware;

/// What a router can see of a replica when it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaLoad {
    /// Requests not yet admitted.
    pub waiting: u32,
    /// Requests admitted and unfinished.
    pub running: u32,
    /// Prompt plus remaining budget over everything waiting and running, in tokens.
    pub outstanding_tokens: u64,
    /// Leading blocks of the prompt at hand that its prefix cache has now. Looked up only for a policy
    /// that [reads it](Policy::reads_matches); 0 for others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub matched_blocks: u32,
    /// Prompt tokens that wait to be computed: of requests that wait, and what is left of a prompt that
    /// is computed in pieces. Looked up, like the next two, only for a policy that
    /// [scrapes](Policy::scrapes) its replicas.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting_tokens: u64,
    /// KV blocks that running requests hold.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_blocks: u32,
    /// KV blocks of its pool.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pool_blocks: u32,
}

impl ReplicaLoad {
    /// Requests in flight.
    pub fn requests(&self) -> u64 {
        u64::from(self.waiting) + u64::from(self.running)
    }

    /// The part of its pool that running requests hold; 0 where that is not known.
    pub fn kv_usage(&self) -> f64 {
        if self.pool_blocks == 0 { 0.0 } else { f64::from(self.held_blocks) / f64::from(self.pool_blocks) }
    }
}

/// A request as a router sees it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its number in the trace.
    pub request: u32,
    /// What tells its prompt's beginning from another's: its tokens or, where they are not known, the
    /// ids of its blocks.
    pub items: &'a [Token],
    /// Tokens that each of them stands for.
    pub per_item: u32,
    /// The prompt's length in tokens.
    pub tokens: u32,
    /// Its budget.
    pub max_tokens: u64,
    /// Whose conversation it is: the tenant stands in for a session's id.
    pub session: Option<u32>,
    /// When it is decided.
    pub now: Time,
    /// Tokens of a replica's KV block.
    pub block_size: u32,
}

impl<'a> Asked<'a> {
    /// A prompt of these tokens of which nothing else is known.
    pub fn of(items: &'a [Token]) -> Asked<'a> {
        Asked {
            request: 0,
            items,
            per_item: 1,
            tokens: items.len() as u32,
            max_tokens: 1,
            session: None,
            now: Time::ZERO,
            block_size: 16,
        }
    }

    /// How many items so many tokens are: rounded up, and at least one.
    pub fn items_in(&self, tokens: f64) -> usize {
        ((tokens / f64::from(self.per_item.max(1))).ceil() as usize).max(1)
    }

    /// How many of the prompt's tokens its first so many items stand for.
    pub fn tokens_in(&self, items: usize) -> u32 {
        (items as u64 * u64::from(self.per_item)).min(u64::from(self.tokens)) as u32
    }
}

/// What a router is told of a request that it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Which.
    pub request: u32,
    /// Where it was sent.
    pub replica: u32,
    /// What happened.
    pub what: Happened,
}

/// What happens to a request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Its first token is out: its prompt is computed. Once more after a preemption.
    FirstToken,
    /// Its last token is out.
    Finished,
}

fn is_zero<T: Default + PartialEq>(n: &T) -> bool {
    *n == T::default()
}

/// Why a replica was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Its turn.
    #[default]
    NextInTurn,
    /// It had the least load, of the kind that the policy looks at.
    LeastLoaded,
    /// The prompt's prefix belongs to it.
    Preferred,
    /// It has the most leading blocks of the prompt in its cache.
    LongestMatch,
    /// The prefix belongs elsewhere, to a replica too far above the mean; this is the least loaded.
    GuardFired,
    /// It was drawn.
    Drawn,
    /// Its score was the best, of all that the policy adds up.
    BestScore,
    /// Nobody's match is long enough for the rule to go by.
    ShortMatch,
    /// The request's conversation belongs to it.
    Session,
    /// It is the first on the ring, after the prefix's own, that has room.
    NextOnRing,
}

impl Reason {
    /// Every reason. The order is that of the run log's format.
    pub const ALL: [Reason; 10] = [
        Reason::NextInTurn,
        Reason::LeastLoaded,
        Reason::Preferred,
        Reason::GuardFired,
        Reason::LongestMatch,
        Reason::Drawn,
        Reason::BestScore,
        Reason::ShortMatch,
        Reason::Session,
        Reason::NextOnRing,
    ];
}

/// A choice, with everything that led to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The chosen replica's index.
    pub replica: u32,
    /// Why this one.
    pub reason: Reason,
    /// The load of each candidate as this policy sees it: requests or tokens (none: it looks at
    /// none).
    pub loads: Vec<u64>,
    /// The mean of `loads`; `None` without loads.
    pub mean: Option<f64>,
    /// The replica that the prefix belongs to, where the policy has such a notion.
    pub preferred: Option<u32>,
    /// The load above which the guard sends a request away from its preferred replica; `None`
    /// without a guard (or where the mean is zero, when it cannot fire).
    pub guard_limit: Option<f64>,
    /// How many candidates had the same best load, this one included (1: no tie; 0: load played no
    /// part). Of a [longest match](Reason::LongestMatch): how many had as many blocks.
    pub tied: u32,
    /// The leading blocks of the prompt that each candidate has in its cache, where the policy looks at
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<u32>,
    /// What each candidate scores, where the policy adds something up: the most or the least of it is
    /// best, as the policy has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<f64>,
    /// Among whom the last choice was made, where that was not everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<u32>,
    /// Tokens of the prompt that the policy expects in the chosen replica's cache, where it keeps or is
    /// told what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<u32>,
    /// Through whose eyes, and as of when. Whoever asked the policy fills it in.
    #[serde(default, skip_serializing_if = "View::is_plain")]
    pub view: View,
}

/// Who made a decision and how old its loads were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The router that decided, where there are several: its loads are its own requests'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<u32>,
    /// The refresh that its loads come from, in picoseconds since the start; `None`: the decision's
    /// own moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refreshed: Option<u64>,
    /// Whether what the router itself sent since then is added to them.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub own: bool,
}

impl View {
    /// Whether one router saw the replicas as they were.
    fn is_plain(&self) -> bool {
        *self == View::default()
    }
}

/// A routing rule. It may keep state; it never looks at a clock and draws no random numbers that
/// its caller did not seed. A policy writes [`select`](Policy::select), if the prompt and the loads are
/// all that it goes by, or [`route`](Policy::route).
pub trait Policy {
    /// The name on the command line and in results.
    fn name(&self) -> &'static str;

    /// Whether it looks at the loads it is shown. For one that does not they need not be known.
    fn reads_loads(&self) -> bool {
        true
    }

    /// Whether it looks at what each replica's cache has of the prompt: a look-up in every replica,
    /// which is spared where nobody asks.
    fn reads_matches(&self) -> bool {
        false
    }

    /// Whether it reads its replicas' own metrics (queues in tokens, KV use) rather than counting what its
    /// router sent: several routers then see the same.
    fn scrapes(&self) -> bool {
        false
    }

    /// Whether it is to be [told](Policy::told) what becomes of what it sent.
    fn follows(&self) -> bool {
        false
    }

    /// What became of a request that its router sent, as soon as it happens.
    fn told(&mut self, _told: Told) {}

    /// Takes other settings and goes on with what it remembers; one that none of them concerns stays as it
    /// is.
    fn retune(&mut self, _settings: &PolicySettings) {}

    /// From now on it chooses among replicas with these ids, in this order, which is that of the loads it is
    /// shown; no two replicas of a run ever have the same. Until it is told, ids are 0, 1, 2 … For a policy
    /// by which a prompt belongs to a replica, whatever its place among the others.
    fn candidates(&mut self, _ids: &[u32]) {}

    /// Chooses a replica for a prompt: its tokens or, where they are not known, the ids of its blocks.
    /// `replicas` is never empty.
    fn select(&mut self, prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        self.route(&Asked::of(prompt), replicas)
    }

    /// The same for a request of which everything is known that a router can know.
    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        self.select(asked.items, replicas)
    }
}

/// The lowest index among the smallest loads, and how many share that load.
fn least(loads: &[u64]) -> (u32, u32) {
    let least = *loads.iter().min().expect("a fleet has at least one replica");
    let first = loads.iter().position(|&l| l == least).expect("the minimum is one of them");
    (first as u32, loads.iter().filter(|&&l| l == least).count() as u32)
}

/// The mean load.
fn mean(loads: &[u64]) -> f64 {
    loads.iter().sum::<u64>() as f64 / loads.len() as f64
}

/// Sends to the least loaded, ties to the lowest index.
fn least_loaded(loads: Vec<u64>) -> Decision {
    let (replica, tied) = least(&loads);
    Decision {
        replica,
        reason: Reason::LeastLoaded,
        mean: Some(mean(&loads)),
        loads,
        tied,
        ..Decision::default()
    }
}

/// Sends to a preferred replica, or where its load is over `max_imbalance` times the mean, to the least
/// loaded.
fn guarded(preferred: u32, replicas: &[ReplicaLoad], max_imbalance: f64) -> Decision {
    let loads: Vec<u64> = replicas.iter().map(|r| r.outstanding_tokens).collect();
    let mean = mean(&loads);
    let guard_limit = (mean > 0.0 && max_imbalance.is_finite()).then_some(max_imbalance * mean);
    let fired = guard_limit.is_some_and(|limit| loads[preferred as usize] as f64 > limit);
    let (replica, reason, tied) = if fired {
        let (replica, tied) = least(&loads);
        (replica, Reason::GuardFired, tied)
    } else {
        (preferred, Reason::Preferred, 0)
    };
    Decision {
        replica,
        reason,
        loads,
        mean: Some(mean),
        preferred: Some(preferred),
        guard_limit,
        tied,
        ..Decision::default()
    }
}

/// Sends to the replica that a prefix belongs to, whatever its load.
fn belongs(replica: u32) -> Decision {
    Decision { replica, reason: Reason::Preferred, preferred: Some(replica), ..Decision::default() }
}

/// Mixes the bits of a number: every bit of it changes about half of the result's. Source of the constants:
/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), its finaliser after one step.
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
