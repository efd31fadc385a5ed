//! What the routers people run can be tuned by: one table, each row with its unit, its default as
//! published, its range and where it comes from. The parameters, their flags, their checks and their help
//! are made from it; a policy reads its own rows by name.

use core::fmt;

use super::PolicyKind;

/// What values a knob takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// A whole number.
    Whole(u64, u64),
    /// A number.
    Real(f64, f64),
    /// A number, or infinity.
    RealOrInf(f64, f64),
    /// One of some names, each with what it means: its value is its place.
    Choice(&'static [(&'static str, &'static str)]),
}

/// One parameter of one policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knob {
    /// Whose.
    pub policy: PolicyKind,
    /// The policy's name and its own, with underscores and a dot between: its key among all parameters.
    pub key: &'static str,
    /// Its name on the page.
    pub label: &'static str,
    /// Its unit; empty where it has none.
    pub unit: &'static str,
    /// As published, unless `source` says otherwise.
    pub default: f64,
    /// What values it takes.
    pub range: Range,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// Where name and default come from.
    pub source: &'static str,
}

impl Knob {
    /// Its own name, without the policy's.
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, name)| name)
    }
}

/// How many knobs there are.
const COUNT: usize = KNOBS.len();

/// A value for each of [`KNOBS`], in their order.
#[derive(Clone, Copy, PartialEq)]
pub struct Tuning([f64; COUNT]);

impl Default for Tuning {
    fn default() -> Tuning {
        let mut values = [0.0; COUNT];
        for (value, knob) in values.iter_mut().zip(&KNOBS) {
            *value = knob.default;
        }
        Tuning(values)
    }
}

impl fmt::Debug for Tuning {
    /// What differs from the defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changed = KNOBS.iter().zip(&self.0).filter(|(knob, value)| knob.default != **value);
        f.debug_map().entries(changed.map(|(knob, value)| (knob.key, value))).finish()
    }
}

impl Tuning {
    /// The value of the knob at a place in the table.
    pub fn at(&self, index: usize) -> f64 {
        self.0[index]
    }

    /// Gives the knob at a place in the table a value, which is in its range.
    pub fn set_at(&mut self, index: usize, value: f64) {
        self.0[index] = value;
    }

    /// The same with another value of a knob, by its key.
    ///
    /// # Panics
    ///
    /// If there is no such knob.
    #[must_use]
    pub fn with(mut self, key: &str, value: f64) -> Tuning {
        let index = KNOBS.iter().position(|knob| knob.key == key);
        self.0[index.unwrap_or_else(|| panic!("there is no {key}"))] = value;
        self
    }

    /// A policy's own values.
    pub fn of(&self, policy: PolicyKind) -> Tuned<'_> {
        let first = KNOBS.iter().position(|knob| knob.policy == policy).unwrap_or(0);
        Tuned { first, values: &self.0[first..] }
    }
}

/// The values of one policy's knobs.
#[derive(Clone, Copy, Debug)]
pub struct Tuned<'a> {
    first: usize,
    values: &'a [f64],
}

impl Tuned<'_> {
    /// A number.
    pub fn real(&self, name: &str) -> f64 {
        let policy = KNOBS[self.first].policy;
        let own = KNOBS[self.first..].iter().take_while(|knob| knob.policy == policy);
        let place = own.map(|knob| knob.name()).position(|own| own == name);
        self.values[place.unwrap_or_else(|| panic!("{} has no {name}", policy.name()))]
    }

    /// A whole number, or the place of a choice.
    pub fn whole(&self, name: &str) -> usize {
        self.real(name) as usize
    }

    /// Whether the second of two choices is made.
    pub fn is_on(&self, name: &str) -> bool {
        self.real(name) != 0.0
    }

    /// A time of so many seconds, in picoseconds.
    pub fn picos(&self, name: &str) -> u64 {
        (self.real(name) * 1e12) as u64
    }
}

const ON: Range = Range::Choice(&[("off", "no"), ("on", "yes")]);

macro_rules! knobs {
    ($($policy:ident { $($key:literal, $label:literal, $unit:literal, $default:expr, $range:expr, $help:literal, $source:expr;)* })*) => {
        /// Every knob; those of one policy follow each other.
        pub static KNOBS: [Knob; 0 $($( + { let _ = $key; 1 } )*)*] = [
            $($(Knob {
                policy: PolicyKind::$policy,
                key: $key,
                label: $label,
                unit: $unit,
                default: $default,
                range: $range,
                help: $help,
                source: $source,
            },)*)*
        ];
    };
}

/// What a character is, for the rules that count them.
const CHARS: &str =
    "characters that a token stands for; not published: a token of the generated trace is one byte";
const SMG: &str =
    "SMG, model_gateway/src/policies/cache_aware.rs @f8daa883, values of its Python command line";
const SGL: &str = "SGLang, sgl-model-gateway/src/policies/cache_aware.rs @053b63ff, and vLLM router 0.1.17, values of its command line";
const SMG_HASH: &str = "SMG, model_gateway/src/policies/prefix_hash.rs";
const SMG_LOAD: &str = "SMG, model_gateway/src/policies/least_load.rs";
const STACK: &str = "vLLM production-stack, routing_logic.py and prefix/hashtrie.py @a6c01db0";
const AIBRIX: &str = "AIBrix, pkg/plugins/gateway/algorithms/prefix_cache.go @e3e10f9e";
const AIBRIX_PREBLE: &str = "AIBrix, pkg/plugins/gateway/algorithms/prefix_cache_preble.go";
const LLM_D: &str = "llm-d router, config/charts/routerlib/templates/_config.yaml @ebab6879";
const LLM_D_FILTER: &str = "llm-d router, pkg/epp/framework/plugins/scheduling/filter/prefixcacheaffinity";
const DYNAMO: &str = "NVIDIA Dynamo 1.6.1, lib/kv-router/src/scheduling/selector/reference.rs and config.rs";
const RAY: &str = "Ray 2.60.0, PrefixCacheAffinityRouter";
const PREBLE: &str = "Preble, preble/global_scheduler_with_time.py @8e7906a3";
const LITELLM: &str = "LiteLLM 1.110.2";
const KUBEAI: &str = "KubeAI, internal/loadbalancer/balance_chwbl.go @2f32ef49";

knobs! {
    PowerOfTwo {
        "power_of_two.by", "Load", "", 0.0, Range::Choice(&[("requests", "requests in flight"), ("tokens", "outstanding tokens")]),
        "What of the two drawn replicas is compared.", "requests, as in Envoy and Ray";
    }
    SessionHash {
        "session_hash.vnodes", "Points", "points a replica", 160.0, Range::Whole(1, 4096),
        "Points that each replica has on the ring.", "uhashring, which vLLM production-stack's session routing uses";
    }
    Chwbl {
        "chwbl.load_factor", "Load factor", "× mean", 1.25, Range::Real(1.0, 1000.0),
        "A replica has room while its requests and this one are at most so many times the mean.", KUBEAI;
        "chwbl.vnodes", "Points", "points a replica", 256.0, Range::Whole(1, 4096), "Points that each replica has on the ring.", KUBEAI;
        "chwbl.prefix_chars", "Prefix", "characters", 100.0, Range::Whole(1, 1_000_000), "Leading characters that are hashed.", KUBEAI;
        "chwbl.chars_per_token", "Characters a token", "characters", 1.0, Range::Real(0.1, 100.0), "How many characters a token stands for.", CHARS;
    }
    SmgCacheAware {
        "smg_cache_aware.cache_threshold", "Match threshold", "of the prompt", 0.3, Range::Real(0.0, 1.0),
        "A match must be more of the prompt than this to count.", SMG;
        "smg_cache_aware.balance_abs_threshold", "Gate, requests", "requests", 64.0, Range::Whole(0, 1_000_000),
        "A holder is left if it has more requests than the mean and so many, and the other gate agrees.", SMG;
        "smg_cache_aware.balance_rel_threshold", "Gate, times", "× mean", 1.5, Range::RealOrInf(0.0, 1000.0),
        "A holder is left if it has more than so many times the mean, and the other gate agrees.", SMG;
        "smg_cache_aware.page_size", "Page", "tokens", 16.0, Range::Whole(1, 4096),
        "Tokens of a page of the tree; 1: every token, as its character tree for HTTP does.", "kv-index 2.0.0, src/token_tree.rs";
        "smg_cache_aware.holders", "Holders", "replicas", 8.0, Range::Whole(1, 1024),
        "Of the deepest node's holders so many are looked at; which is a hash map's order there, the lowest numbers here.", "kv-index 2.0.0, src/common.rs";
        "smg_cache_aware.eviction_interval", "Eviction every", "s", 60.0, Range::Real(0.0, 86_400.0),
        "How often the tree is cut to size, at the first decision after; 0: never.", SMG;
        "smg_cache_aware.max_tree_size", "Tree", "tokens a replica", 67_108_864.0, Range::Whole(1, 1 << 40),
        "To what the tree is cut for each replica, least recently used first.", SMG;
    }
    SglangCacheAware {
        "sglang_cache_aware.cache_threshold", "Match threshold", "of the prompt", 0.3, Range::Real(0.0, 1.0),
        "A match must be more of the prompt than this to count.", SGL;
        "sglang_cache_aware.balance_abs_threshold", "Gate, requests", "requests", 64.0, Range::Whole(0, 1_000_000),
        "The fleet is out of balance if the most and the fewest requests differ by more, and the other gate agrees.", SGL;
        "sglang_cache_aware.balance_rel_threshold", "Gate, times", "× fewest", 1.5, Range::RealOrInf(0.0, 1000.0),
        "The fleet is out of balance if the most is over so many times the fewest, and the other gate agrees.", SGL;
        "sglang_cache_aware.miss", "On a miss", "", 0.0, Range::Choice(&[
            ("least-load", "fewest requests, since gh:sgl-project/sglang/pull/14305"),
            ("smallest-tree", "whoever has least in the tree, as before"),
        ]), "Where a prompt goes whose match is too short.", SGL;
        "sglang_cache_aware.page_size", "Page", "tokens", 1.0, Range::Whole(1, 4096), "Tokens of a page of the tree; a character each in the source.", SGL;
        "sglang_cache_aware.eviction_interval", "Eviction every", "s", 120.0, Range::Real(0.0, 86_400.0),
        "How often the tree is cut to size, at the first decision after; 0: never.", SGL;
        "sglang_cache_aware.max_tree_size", "Tree", "tokens a replica", 33_554_432.0, Range::Whole(1, 1 << 40),
        "To what the tree is cut for each replica, least recently used first.", SGL;
        "sglang_cache_aware.session_ttl", "Session kept", "s", 0.0, Range::Real(0.0, 86_400.0),
        "How long a conversation stays where it was last sent, before anything else is asked; 0: it does not. 3600 in vLLM's router.", SGL;
    }
    SmgPrefixHash {
        "smg_prefix_hash.prefix_tokens", "Prefix", "tokens", 256.0, Range::Whole(1, 1_000_000), "Leading tokens that are hashed.", SMG_HASH;
        "smg_prefix_hash.load_factor", "Load factor", "× mean", 1.25, Range::Real(0.0, 1000.0),
        "A replica is too busy above so many times the mean, if the other gate agrees.", SMG_HASH;
        "smg_prefix_hash.balance_abs_threshold", "Gate, requests", "requests", 10.0, Range::Whole(0, 1_000_000),
        "A replica is too busy above the mean and so many, if the other gate agrees.", SMG_HASH;
        "smg_prefix_hash.vnodes", "Points", "points a replica", 160.0, Range::Whole(1, 4096), "Points that each replica has on the ring.", "not read; 160 is usual";
    }
    SmgLeastLoad {
        "smg_least_load.kv_pressure_weight", "KV pressure", "s", 0.15, Range::Real(0.0, 1000.0), "Weight of k ÷ (1 − k), where k is the KV cache in use.", SMG_LOAD;
        "smg_least_load.throughput", "Throughput", "tokens/s", 2000.0, Range::Real(1.0, 1e9),
        "What a replica is taken to work off a second: the source's fallback stands in for the rate that engines report.", SMG_LOAD;
        "smg_least_load.mean_prefill_tokens", "Unknown prompt", "tokens", 1024.0, Range::Whole(1, 1_000_000), "What a waiting request counts where its tokens are not reported.", SMG_LOAD;
        "smg_least_load.poll", "Poll every", "s", 10.0, Range::Real(0.0, 3600.0), "How often the engines' loads are read; in between, what was sent is added.", SMG_LOAD;
        "smg_least_load.max_waiting_requests", "Queue limit", "requests", 0.0, Range::Whole(0, 1_000_000),
        "A replica with so many waiting is passed over, unless all have; 0: never.", SMG_LOAD;
    }
    StackPrefixAware {
        "stack_prefix_aware.chunk_chars", "Chunk", "characters", 128.0, Range::Whole(1, 1_000_000), "Characters of a chunk, which is hashed as one.", STACK;
        "stack_prefix_aware.min_match", "Least match", "characters", 0.0, Range::Whole(0, 100_000_000),
        "A shorter match is ignored, and the request goes to the fewest requests a second.", STACK;
        "stack_prefix_aware.insert_on_fallback", "Insert on fallback", "", 0.0, ON,
        "Whether a request that went by rate is put into the trie; without it a least match above 0 is never reached (gh:vllm-project/production-stack/pull/990).", STACK;
        "stack_prefix_aware.qps_window", "Rate over", "s", 60.0, Range::Real(0.001, 86_400.0), "The window over which requests a second are counted.", STACK;
        "stack_prefix_aware.chars_per_token", "Characters a token", "characters", 1.0, Range::Real(0.1, 100.0), "How many characters a token stands for.", CHARS;
    }
    VllmKvAware {
        "vllm_kv_aware.temperature", "Temperature", "", 0.0, Range::Real(0.0, 1000.0), "0: the least cost; above, drawn by a softmax over costs.", "vLLM router 0.1.17, kv_aware.rs";
    }
    AibrixPrefixCache {
        "aibrix_prefix_cache.imbalance_gap", "Gate", "requests", 8.0, Range::Whole(0, 1_000_000),
        "If the most and the fewest requests differ by more, only replicas with the fewest are looked at.", AIBRIX;
        "aibrix_prefix_cache.deviations", "Deviations", "σ", 1.0, Range::RealOrInf(0.0, 1000.0), "A match may have the mean and so many standard deviations of requests.", AIBRIX;
        "aibrix_prefix_cache.block_chars", "Block", "characters", 4.0, Range::Whole(1, 1_000_000), "Characters of a block, which is hashed as one.", AIBRIX;
        "aibrix_prefix_cache.capacity", "Index", "blocks", 200_000.0, Range::Whole(1, 100_000_000), "Blocks that the index keeps, least recently used go first.", AIBRIX;
        "aibrix_prefix_cache.ttl", "Kept", "s", 1200.0, Range::Real(0.001, 864_000.0), "How long a block is kept without being used.", AIBRIX;
        "aibrix_prefix_cache.chars_per_token", "Characters a token", "characters", 1.0, Range::Real(0.1, 100.0), "How many characters a token stands for.", CHARS;
    }
    AibrixPreble {
        "aibrix_preble.match_threshold", "Match threshold", "of the prompt", 0.5, Range::Real(0.0, 1.0), "A match must be more of the prompt than this to count.", AIBRIX_PREBLE;
        "aibrix_preble.gpu", "GPU", "", 0.0, Range::Choice(&[("v100", "the default"), ("a6000", "as Preble fitted it")]), "Whose prefill times of Mistral-7B are used.", AIBRIX_PREBLE;
        "aibrix_preble.decode_tokens", "Output", "tokens", 45.0, Range::Whole(0, 1_000_000), "Tokens that an answer is taken to have.", AIBRIX_PREBLE;
        "aibrix_preble.time_per_token", "Time a token", "s", 0.15, Range::Real(0.0, 60.0), "What a token of an answer takes; its default stands in for the median that the source measures.", AIBRIX_PREBLE;
        "aibrix_preble.window", "Window", "s", 180.0, Range::Real(0.001, 86_400.0), "How long a request counts.", AIBRIX_PREBLE;
    }
    LlmD {
        "llm_d.queue_weight", "Weight of queues", "", 2.0, Range::Real(0.0, 1000.0), "Weight of (most − own) ÷ (most − fewest) waiting.", LLM_D;
        "llm_d.kv_weight", "Weight of KV use", "", 2.0, Range::Real(0.0, 1000.0), "Weight of the part of the KV cache that is not in use.", LLM_D;
        "llm_d.prefix_weight", "Weight of prefixes", "", 3.0, Range::Real(0.0, 1000.0), "Weight of the part of the prompt's blocks that match.", LLM_D;
        "llm_d.block_tokens", "Block", "tokens", 64.0, Range::Whole(1, 1_000_000), "Tokens of a block of the prefix index, if a replica's have no more.", LLM_D;
        "llm_d.capacity", "Index", "blocks a replica", 31_250.0, Range::Whole(1, 100_000_000), "Blocks that the index keeps of each replica, least recently used go first.", LLM_D;
        "llm_d.max_prefix_tokens", "Longest prefix", "tokens", 131_072.0, Range::Whole(1, 100_000_000), "Tokens of a prompt that are looked at.", LLM_D;
        "llm_d.precise", "Precise", "", 0.0, ON, "Whether matches come from the engines' events instead of what was sent.", LLM_D;
        "llm_d.hashes_agree", "Hashes agree", "", 1.0, ON, "Whether the router hashes as the engines do; if not, precise matches are never found (gh:llm-d-incubation/llm-d-infra/issues/86).", LLM_D;
        "llm_d.picker", "Picker", "", 0.0, Range::Choice(&[("max-score", "the best score, ties drawn"), ("weighted-random", "drawn by score")]), "How a replica is picked from the scores.", LLM_D;
        "llm_d.affinity_filter", "Affinity filter", "", 0.0, ON, "Whether only replicas with enough of the prompt are scored at all.", LLM_D_FILTER;
        "llm_d.affinity_threshold", "Enough", "of the prompt", 0.8, Range::Real(0.0, 1.0), "What is enough for the filter.", LLM_D_FILTER;
        "llm_d.max_ttft_penalty", "TTFT penalty", "s", 18.0, Range::Real(0.0, 86_400.0), "The filter lets all pass if it would cost more time to the first token than this; 0: never.", LLM_D_FILTER;
        "llm_d.prefill_throughput", "Prefill", "tokens/s", 15_928.0, Range::Real(1.0, 1e9), "What tokens in flight are divided by, for that.", LLM_D_FILTER;
    }
    Dynamo {
        "dynamo.overlap_credit", "Overlap credit", "", 1.0, Range::Real(0.0, 1000.0), "What a cached block is worth, in blocks to compute.", DYNAMO;
        "dynamo.credit_decay", "Credit decay", "", 0.0, Range::Real(0.0, 1000.0), "How fast that falls with the prefill that waits there.", DYNAMO;
        "dynamo.prefill_scale", "Prefill scale", "", 1.0, Range::Real(0.0, 1000.0), "Weight of blocks to compute beside blocks held.", DYNAMO;
        "dynamo.request_weight", "Weight of requests", "blocks", 0.0, Range::Real(0.0, 1e6), "What an active request counts besides.", DYNAMO;
        "dynamo.temperature", "Temperature", "", 0.0, Range::Real(0.0, 1000.0), "0: the least cost; above, drawn by a softmax over costs.", DYNAMO;
        "dynamo.events", "KV events", "", 1.0, ON, "Whether engines tell what they cache; if not, what was sent is kept for a while.", DYNAMO;
        "dynamo.ttl", "Kept", "s", 120.0, Range::Real(0.001, 864_000.0), "For how long, then.", DYNAMO;
    }
    RayPrefix {
        "ray_prefix.imbalanced_threshold", "Guard", "requests", f64::INFINITY, Range::RealOrInf(0.0, 1e6), "If queues differ by more, the shorter of two drawn gets the request.", RAY;
        "ray_prefix.match_rate_threshold", "Match threshold", "of the prompt", 0.1, Range::Real(0.0, 1.0), "With a smaller match the request goes to the smallest in the tree.", RAY;
        "ray_prefix.do_eviction", "Eviction", "", 0.0, ON, "Whether the tree is cut to size.", RAY;
        "ray_prefix.eviction_threshold", "Tree, most", "characters", 400_000.0, Range::Whole(1, 1 << 40), "Above what, for each replica.", RAY;
        "ray_prefix.eviction_target", "Tree, target", "characters", 360_000.0, Range::Whole(1, 1 << 40), "To what, for each replica.", RAY;
        "ray_prefix.eviction_interval", "Eviction every", "s", 10.0, Range::Real(0.001, 86_400.0), "How often, at the first decision after.", RAY;
    }
    Preble {
        "preble.window", "Window", "s", 180.0, Range::Real(0.001, 86_400.0), "How long a request counts.", PREBLE;
        "preble.decode_tokens", "Output", "tokens", 45.0, Range::Whole(0, 1_000_000), "Tokens that an answer is taken to have.", PREBLE;
        "preble.time_per_token", "Time a token", "s", 0.15, Range::Real(0.0, 60.0), "What a token of an answer takes; its first value there stands in for the median that the source measures.", PREBLE;
        "preble.steal_ratio", "Steal at", "× least", 1.5, Range::RealOrInf(1.0, 1000.0), "Prefixes move from the busiest to the idlest if their costs differ by this factor; inf: never.", PREBLE;
        "preble.steal_after", "Steal after", "requests a replica", 50.0, Range::Whole(0, 1_000_000), "Not before so many requests.", PREBLE;
    }
    Mooncake {
        "mooncake.load_weight", "Weight of load", "of the prompt", 0.0, Range::Real(0.0, 1000.0),
        "What is taken off a match for a replica's share of the busiest's requests; 0: the longest match, as the Conductor returns it. gh:vllm-project/production-stack/pull/1035 adds such a term.", "Mooncake Conductor, docs @3b5a5941";
    }
    LiteLlm {
        "litellm.strategy", "Strategy", "", 0.0, Range::Choice(&[("simple-shuffle", "drawn"), ("least-busy", "fewest requests in flight")]), "Who gets a request that is not pinned.", LITELLM;
        "litellm.prompt_cache_pin", "Pin prompts", "", 0.0, ON, "Whether a long prompt that was sent before goes where it went (the optional check prompt_caching).", LITELLM;
        "litellm.pin_tokens", "Long", "tokens", 1024.0, Range::Whole(1, 1_000_000), "What is long; so many leading tokens stand in for the messages that are marked to be cached.", LITELLM;
        "litellm.pin_ttl", "Pinned", "s", 300.0, Range::Real(0.001, 864_000.0), "For how long.", LITELLM;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knobs_of_a_policy_follow_each_other_and_carry_its_name() {
        let mut seen: Vec<PolicyKind> = Vec::new();
        for (at, knob) in KNOBS.iter().enumerate() {
            let (policy, name) = knob.key.split_once('.').expect("a policy and a name");
            assert_eq!(policy, knob.policy.name().replace('-', "_"), "{}", knob.key);
            assert!(!name.is_empty() && !knob.help.is_empty() && !knob.source.is_empty());
            assert!(KNOBS[at + 1..].iter().all(|other| other.key != knob.key));
            if seen.last() != Some(&knob.policy) {
                assert!(!seen.contains(&knob.policy), "{}", knob.key);
                seen.push(knob.policy);
            }
            let (low, high) = match knob.range {
                Range::Whole(low, high) => (low as f64, high as f64),
                Range::Real(low, high) => (low, high),
                Range::RealOrInf(low, _) => (low, f64::INFINITY),
                Range::Choice(names) => (0.0, names.len() as f64 - 1.0),
            };
            assert!((low..=high).contains(&knob.default), "{}", knob.key);
        }
    }

    #[test]
    fn a_value_is_found_by_its_name_and_shown_where_it_differs() {
        let tuning = Tuning::default().with("dynamo.ttl", 7.0);
        assert_eq!(
            (tuning.of(PolicyKind::Dynamo).real("ttl"), tuning.of(PolicyKind::Dynamo).whole("events")),
            (7.0, 1)
        );
        assert_eq!(format!("{tuning:?}"), "{\"dynamo.ttl\": 7.0}");
        assert_eq!(tuning.of(PolicyKind::Dynamo).picos("ttl"), 7_000_000_000_000);
    }
}
