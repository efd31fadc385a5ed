//! The policies by name: which there are, what each does in a line, and how one is made.

use serde::{Deserialize, Serialize};

use super::*;

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
    /// Drawn.
    Random,
    /// The lesser of two that are drawn.
    PowerOfTwo,
    /// A conversation's own replica.
    SessionHash,
    /// Consistent hashing with bounded loads, as KubeAI has it.
    Chwbl,
    /// SMG's cache-aware rule, with a gate for each candidate.
    SmgCacheAware,
    /// SGLang's original and vLLM router's, with one gate for the fleet.
    SglangCacheAware,
    /// SMG's hash of a prompt's beginning.
    SmgPrefixHash,
    /// SMG's expected wait.
    SmgLeastLoad,
    /// vLLM production-stack's trie of chunks.
    StackPrefixAware,
    /// vLLM router's costs from KV events.
    VllmKvAware,
    /// AIBrix's prefix cache.
    AibrixPrefixCache,
    /// AIBrix's variant of Preble.
    AibrixPreble,
    /// llm-d's weighted scorers.
    LlmD,
    /// NVIDIA Dynamo's cost.
    Dynamo,
    /// Ray's prefix-cache affinity.
    RayPrefix,
    /// Preble's window of costs.
    Preble,
    /// The longest match that Mooncake's Conductor reports.
    Mooncake,
    /// LiteLLM's defaults.
    #[serde(rename = "litellm")]
    LiteLlm,
}

impl PolicyKind {
    /// The page's own five, which `all` stands for.
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

    /// The rules of the routers that people run, which `production` stands for.
    pub const PRODUCTION: [PolicyKind; 18] = [
        PolicyKind::Random,
        PolicyKind::PowerOfTwo,
        PolicyKind::SessionHash,
        PolicyKind::Chwbl,
        PolicyKind::SmgCacheAware,
        PolicyKind::SglangCacheAware,
        PolicyKind::SmgPrefixHash,
        PolicyKind::SmgLeastLoad,
        PolicyKind::StackPrefixAware,
        PolicyKind::VllmKvAware,
        PolicyKind::AibrixPrefixCache,
        PolicyKind::AibrixPreble,
        PolicyKind::LlmD,
        PolicyKind::Dynamo,
        PolicyKind::RayPrefix,
        PolicyKind::Preble,
        PolicyKind::Mooncake,
        PolicyKind::LiteLlm,
    ];

    /// The three columns of the race, as in the chapter.
    pub const RACE: [PolicyKind; 3] =
        [PolicyKind::RoundRobin, PolicyKind::LeastTokens, PolicyKind::PrefixAffinity];

    /// Those that know a replica by its id, so that others may come and go; the rest count on a fixed fleet.
    pub fn of_changing_fleets() -> impl Iterator<Item = PolicyKind> + Clone {
        PolicyKind::ALL.into_iter().chain(PolicyKind::HASHES)
    }

    /// Every policy.
    pub fn every() -> impl Iterator<Item = PolicyKind> + Clone {
        PolicyKind::of_changing_fleets().chain(PolicyKind::PRODUCTION)
    }

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
            PolicyKind::Random => "random",
            PolicyKind::PowerOfTwo => "power-of-two",
            PolicyKind::SessionHash => "session-hash",
            PolicyKind::Chwbl => "chwbl",
            PolicyKind::SmgCacheAware => "smg-cache-aware",
            PolicyKind::SglangCacheAware => "sglang-cache-aware",
            PolicyKind::SmgPrefixHash => "smg-prefix-hash",
            PolicyKind::SmgLeastLoad => "smg-least-load",
            PolicyKind::StackPrefixAware => "stack-prefix-aware",
            PolicyKind::VllmKvAware => "vllm-kv-aware",
            PolicyKind::AibrixPrefixCache => "aibrix-prefix-cache",
            PolicyKind::AibrixPreble => "aibrix-preble",
            PolicyKind::LlmD => "llm-d",
            PolicyKind::Dynamo => "dynamo",
            PolicyKind::RayPrefix => "ray-prefix",
            PolicyKind::Preble => "preble",
            PolicyKind::Mooncake => "mooncake",
            PolicyKind::LiteLlm => "litellm",
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
            PolicyKind::Random => "drawn, whatever it costs",
            PolicyKind::PowerOfTwo => "the one with fewer requests of two that are drawn",
            PolicyKind::SessionHash => "a conversation's own replica, on a ring of hashes",
            PolicyKind::Chwbl => {
                "KubeAI: the first on a ring of hashes, from the prompt's beginning, that has room"
            }
            PolicyKind::SmgCacheAware => {
                "SMG: the least busy holder of the longest match that was sent, unless it is too busy itself"
            }
            PolicyKind::SglangCacheAware => {
                "SGLang and vLLM router: a holder of the longest match that was sent, unless the fleet is out of balance"
            }
            PolicyKind::SmgPrefixHash => {
                "SMG: a ring of hashes of the prompt's beginning, with a limit on load"
            }
            PolicyKind::SmgLeastLoad => {
                "SMG: the least expected wait, from polled loads and what was sent since"
            }
            PolicyKind::StackPrefixAware => {
                "vLLM production-stack: drawn among those with the longest match that was sent, whatever their load"
            }
            PolicyKind::VllmKvAware => {
                "vLLM router: the least of tokens to compute there, times requests there"
            }
            PolicyKind::AibrixPrefixCache => {
                "AIBrix: the longest match that was sent, among those not too far above the mean"
            }
            PolicyKind::AibrixPreble => "AIBrix: Preble's costs, with a threshold on the match",
            PolicyKind::LlmD => "llm-d: the best sum of queue, KV use and prefix match",
            PolicyKind::Dynamo => "NVIDIA Dynamo: the fewest blocks to compute and to hold",
            PolicyKind::RayPrefix => "Ray: the longest match that was sent, or the smallest in the tree",
            PolicyKind::Preble => {
                "Preble: the prefix's owners if most of a prompt matches, else the least cost of a window"
            }
            PolicyKind::Mooncake => "Mooncake: the longest match, ties to the fewest requests",
            PolicyKind::LiteLlm => "LiteLLM: drawn, or the fewest requests",
        }
    }

    /// The policy of a name.
    pub fn from_name(name: &str) -> Option<PolicyKind> {
        PolicyKind::every().find(|k| k.name() == name)
    }

    /// What of it is its own threshold on load or match, whose curve is worth drawing: its key, and values
    /// from one end to the other.
    pub fn threshold(self) -> Option<(&'static str, &'static [f64])> {
        const INF: f64 = f64::INFINITY;
        const FACTORS: &[f64] = &[1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 1000.0];
        const REQUESTS: &[f64] = &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 1024.0];
        const WEIGHTS: &[f64] = &[0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0];
        Some(match self {
            PolicyKind::PrefixAffinity => {
                ("max_imbalance", &[0.0, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, INF])
            }
            PolicyKind::LongestPrefix => {
                ("longest_prefix_guard", &[0.0, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, INF])
            }
            PolicyKind::Chwbl => ("chwbl.load_factor", FACTORS),
            PolicyKind::SmgCacheAware => ("smg_cache_aware.balance_abs_threshold", REQUESTS),
            PolicyKind::SglangCacheAware => ("sglang_cache_aware.balance_abs_threshold", REQUESTS),
            PolicyKind::SmgPrefixHash => ("smg_prefix_hash.balance_abs_threshold", REQUESTS),
            PolicyKind::StackPrefixAware => {
                ("stack_prefix_aware.min_match", &[0.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0])
            }
            PolicyKind::VllmKvAware => ("vllm_kv_aware.temperature", WEIGHTS),
            PolicyKind::AibrixPrefixCache => ("aibrix_prefix_cache.imbalance_gap", REQUESTS),
            PolicyKind::AibrixPreble => {
                ("aibrix_preble.match_threshold", &[0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
            }
            PolicyKind::LlmD => ("llm_d.prefix_weight", WEIGHTS),
            PolicyKind::Dynamo => ("dynamo.overlap_credit", &[0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0]),
            PolicyKind::RayPrefix => {
                ("ray_prefix.imbalanced_threshold", &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, INF])
            }
            PolicyKind::Preble => ("preble.steal_ratio", &[1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, INF]),
            PolicyKind::Mooncake => ("mooncake.load_weight", &[0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0, 4.0]),
            _ => return None,
        })
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
            PolicyKind::Random => Box::new(Random::new(settings)),
            PolicyKind::PowerOfTwo => Box::new(PowerOfTwo::new(settings)),
            PolicyKind::SessionHash => Box::new(SessionHash::new(settings)),
            PolicyKind::Chwbl => Box::new(Chwbl::new(settings)),
            PolicyKind::SmgCacheAware => Box::new(SmgCacheAware::new(settings)),
            PolicyKind::SglangCacheAware => Box::new(SglangCacheAware::new(settings)),
            PolicyKind::SmgPrefixHash => Box::new(SmgPrefixHash::new(settings)),
            PolicyKind::SmgLeastLoad => Box::new(SmgLeastLoad::new(settings)),
            PolicyKind::StackPrefixAware => Box::new(StackPrefixAware::new(settings)),
            PolicyKind::VllmKvAware => Box::new(VllmKvAware::new(settings)),
            PolicyKind::AibrixPrefixCache => Box::new(AibrixPrefixCache::new(settings)),
            PolicyKind::AibrixPreble => Box::new(AibrixPreble::new(settings)),
            PolicyKind::LlmD => Box::new(LlmD::new(settings)),
            PolicyKind::Dynamo => Box::new(Dynamo::new(settings)),
            PolicyKind::RayPrefix => Box::new(RayPrefix::new(settings)),
            PolicyKind::Preble => Box::new(Preble::new(settings)),
            PolicyKind::Mooncake => Box::new(Mooncake::new(settings)),
            PolicyKind::LiteLlm => Box::new(LiteLlm::new(settings)),
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
    /// The knobs of the routers people run.
    pub tuning: Tuning,
    /// What draws are made from.
    pub seed: u64,
}

impl PolicySettings {
    /// The same for one of several routers, which draws otherwise than the others.
    #[must_use]
    pub fn of_router(&self, router: u32) -> PolicySettings {
        PolicySettings { seed: self.seed ^ u64::from(router).wrapping_mul(0xD6E8_FEB8_6659_FD93), ..*self }
    }
}

impl Default for PolicySettings {
    fn default() -> Self {
        PolicySettings {
            prefix_length: 64,
            max_imbalance: 2.0,
            longest_prefix_guard: f64::INFINITY,
            tuning: Tuning::default(),
            seed: 0,
        }
    }
}
