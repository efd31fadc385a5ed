//! Which replica gets a request, and why: the [`Policy`] trait, one file per policy, the registry.

use serde::{Deserialize, Serialize};

use crate::trace::Token;

mod consistent_hash;
mod explain;
mod least_requests;
mod least_tokens;
mod longest_prefix;
mod modulo_hash;
mod prefix_affinity;
mod rendezvous_hash;
mod round_robin;

pub use consistent_hash::ConsistentHash;
pub use explain::{explain, grouped};
pub use least_requests::LeastRequests;
pub use least_tokens::LeastTokens;
pub use longest_prefix::LongestPrefix;
pub use modulo_hash::ModuloHash;
pub use prefix_affinity::{PrefixAffinity, tuple_hash};
pub use rendezvous_hash::RendezvousHash;
pub use round_robin::RoundRobin;

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
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Why a replica was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Its turn.
    NextInTurn,
    /// It had the least load, of the kind that the policy looks at.
    LeastLoaded,
    /// The prompt's prefix belongs to it.
    Preferred,
    /// It has the most leading blocks of the prompt in its cache.
    LongestMatch,
    /// The prefix belongs elsewhere, to a replica too far above the mean; this is the least loaded.
    GuardFired,
}

/// A choice, with everything that led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
/// its caller did not seed.
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

    /// Takes other settings and goes on with what it remembers; one that none of them concerns stays as it
    /// is.
    fn retune(&mut self, _settings: &PolicySettings) {}

    /// From now on it chooses among replicas with these ids, in this order, which is that of the loads it is
    /// shown; no two replicas of a run ever have the same. Until it is told, ids are 0, 1, 2 … For a policy
    /// by which a prompt belongs to a replica, whatever its place among the others.
    fn candidates(&mut self, _ids: &[u32]) {}

    /// Chooses a replica for a prompt: its tokens or, where they are not known, the ids of its blocks.
    /// `replicas` is never empty.
    fn select(&mut self, prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision;
}

/// The policies by name, in the order in which people reach for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// Next in turn.
    RoundRobin,
    /// Fewest requests waiting and running.
    LeastRequests,
    /// Fewest outstanding tokens.
    LeastTokens,
    /// The prefix's own replica, unless it is too busy.
    PrefixAffinity,
    /// The replica that has most of the prompt cached, unless it is too busy.
    LongestPrefix,
    /// Prefix hash mod n.
    ModuloHash,
    /// The prefix's owner on a ring.
    ConsistentHash,
    /// Who draws the highest number for the prefix.
    RendezvousHash,
}

impl PolicyKind {
    /// The policies of the page, which `all` stands for.
    pub const ALL: [PolicyKind; 5] = [
        PolicyKind::RoundRobin,
        PolicyKind::LeastRequests,
        PolicyKind::LeastTokens,
        PolicyKind::PrefixAffinity,
        PolicyKind::LongestPrefix,
    ];

    /// Three ways to map prefixes to replicas, which differ in what moves when their number changes.
    pub const HASHES: [PolicyKind; 3] =
        [PolicyKind::ModuloHash, PolicyKind::ConsistentHash, PolicyKind::RendezvousHash];

    /// Every policy that there is.
    pub fn every() -> impl Iterator<Item = PolicyKind> + Clone {
        PolicyKind::ALL.into_iter().chain(PolicyKind::HASHES)
    }

    /// The three columns of the race, as in the chapter.
    pub const RACE: [PolicyKind; 3] =
        [PolicyKind::RoundRobin, PolicyKind::LeastTokens, PolicyKind::PrefixAffinity];

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            PolicyKind::RoundRobin => "round-robin",
            PolicyKind::LeastRequests => "least-requests",
            PolicyKind::LeastTokens => "least-tokens",
            PolicyKind::PrefixAffinity => "prefix-affinity",
            PolicyKind::LongestPrefix => "longest-prefix",
            PolicyKind::ModuloHash => "modulo-hash",
            PolicyKind::ConsistentHash => "consistent-hash",
            PolicyKind::RendezvousHash => "rendezvous-hash",
        }
    }

    /// What it does, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            PolicyKind::RoundRobin => "next in turn, whatever it costs",
            PolicyKind::LeastRequests => "fewest requests waiting and running",
            PolicyKind::LeastTokens => "fewest outstanding tokens, ties to the lowest index",
            PolicyKind::PrefixAffinity => {
                "the prompt prefix's own replica, unless it is too far above the mean"
            }
            PolicyKind::LongestPrefix => "whoever has most of the prompt cached, ties to the lowest index",
            PolicyKind::ModuloHash => "the prompt prefix's hash mod n, whatever the load",
            PolicyKind::ConsistentHash => "the prompt prefix's owner on a ring, whatever the load",
            PolicyKind::RendezvousHash => {
                "who draws the highest number for the prompt prefix, whatever the load"
            }
        }
    }

    /// The policy of a name.
    pub fn from_name(name: &str) -> Option<PolicyKind> {
        PolicyKind::every().find(|k| k.name() == name)
    }

    /// A fresh policy of this kind.
    pub fn build(self, settings: &PolicySettings) -> Box<dyn Policy> {
        match self {
            PolicyKind::RoundRobin => Box::new(RoundRobin::default()),
            PolicyKind::LeastRequests => Box::new(LeastRequests),
            PolicyKind::LeastTokens => Box::new(LeastTokens),
            PolicyKind::PrefixAffinity => Box::new(PrefixAffinity {
                prefix_length: settings.prefix_length,
                max_imbalance: settings.max_imbalance,
            }),
            PolicyKind::LongestPrefix => {
                Box::new(LongestPrefix { max_imbalance: settings.longest_prefix_guard })
            }
            PolicyKind::ModuloHash => Box::new(ModuloHash { prefix_length: settings.prefix_length }),
            PolicyKind::ConsistentHash => Box::new(ConsistentHash::new(settings.prefix_length)),
            PolicyKind::RendezvousHash => Box::new(RendezvousHash::new(settings.prefix_length)),
        }
    }
}

/// What the policies can be tuned by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicySettings {
    /// How many leading tokens make a prompt's prefix.
    pub prefix_length: usize,
    /// How far above the mean load a preferred replica may be, as a factor; infinite for no guard.
    pub max_imbalance: f64,
    /// The same for `longest-prefix`, whose rule in its plain form has no guard.
    pub longest_prefix_guard: f64,
}

impl Default for PolicySettings {
    fn default() -> Self {
        PolicySettings { prefix_length: 64, max_imbalance: 2.0, longest_prefix_guard: f64::INFINITY }
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
        preferred: None,
        guard_limit: None,
        tied,
        matched: Vec::new(),
        view: View::default(),
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
        matched: Vec::new(),
        view: View::default(),
    }
}

/// Sends to the replica that a prefix belongs to, whatever its load.
fn belongs(replica: u32) -> Decision {
    Decision {
        replica,
        reason: Reason::Preferred,
        loads: Vec::new(),
        mean: None,
        preferred: Some(replica),
        guard_limit: None,
        tied: 0,
        matched: Vec::new(),
        view: View::default(),
    }
}

/// Mixes the bits of a number: every bit of it changes about half of the result's. Source of the constants:
/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), its finaliser after one step.
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
