//! A decision in words, with its numbers: what the page and the command line say of it. It reads the
//! [`Decision`] and nothing else, so it cannot tell another story than the policy acted on.

use super::{Decision, PolicyKind, Reason};
use crate::units::Time;

/// Why a request went where it went, in a few sentences.
pub fn explain(policy: PolicyKind, decision: &Decision) -> String {
    view(decision) + &reason(policy, decision)
}

/// Who decided and on how old a view, where that needs saying.
fn view(decision: &Decision) -> String {
    let mut text = String::new();
    if let Some(router) = decision.view.router {
        text += &format!("Router {router} decided");
        text += if decision.loads.is_empty() { ". " } else { ", which knows only its own requests. " };
    }
    if let Some(at) = decision.view.refreshed {
        let since = if decision.view.own { ", with what it sent since" } else { "" };
        text += &format!("Loads are as they were shown at {}{since}. ", Time(at));
    }
    text
}

fn reason(policy: PolicyKind, decision: &Decision) -> String {
    let to = decision.replica;
    match decision.reason {
        Reason::NextInTurn => {
            format!("It was replica {to}'s turn. Neither the prompt nor anybody's load was looked at.")
        }
        Reason::LeastLoaded => least_loaded(policy, decision),
        Reason::Preferred => preferred(policy, decision),
        Reason::LongestMatch if decision.matched.is_empty() => sent_before(policy, decision),
        Reason::LongestMatch => longest_match(policy, decision),
        Reason::GuardFired => guard_fired(policy, decision),
        Reason::Drawn => drawn(decision),
        Reason::BestScore => best_score(policy, decision),
        Reason::ShortMatch => short_match(policy, decision),
        Reason::Session => format!("The request's conversation belongs to replica {to}, whatever its load."),
        Reason::NextOnRing => next_on_ring(decision),
    }
}

/// Whether the rule broke its tie by a draw.
fn draws(policy: PolicyKind, reason: Reason) -> bool {
    use PolicyKind::*;
    match policy {
        // Who has the match is drawn; who has the fewest requests is the first.
        SmgCacheAware | StackPrefixAware => reason == Reason::LongestMatch,
        SmgLeastLoad | AibrixPrefixCache | LlmD | Dynamo => true,
        _ => false,
    }
}

/// What became of a tie, if there was one.
fn tie(policy: PolicyKind, decision: &Decision) -> String {
    match (decision.tied, draws(policy, decision.reason)) {
        (0 | 1, _) => String::new(),
        (n, true) => format!(", drawn from {n} that were equal"),
        (n, false) => format!(", the first of {n} that were equal"),
    }
}

/// Replica numbers in a row; of many only how many.
fn names(of: &[u32]) -> String {
    match of {
        [one] => format!("replica {one}"),
        of if of.len() <= 8 => {
            let names: Vec<String> = of.iter().map(u32::to_string).collect();
            format!("replicas {}", names.join(", "))
        }
        of => format!("{} replicas", of.len()),
    }
}

/// What the policy expects there.
fn expected(decision: &Decision) -> String {
    match decision.predicted {
        None => String::new(),
        Some(0) => " Nothing of the prompt is expected to be cached there.".to_owned(),
        Some(n) => format!(" {} tokens of the prompt are expected to be cached there.", grouped(n.into())),
    }
}

fn drawn(decision: &Decision) -> String {
    let (to, from) = (decision.replica, names(&decision.candidates));
    let from = if decision.candidates.is_empty() { "all replicas".to_owned() } else { from };
    format!("Replica {to} was drawn from {from}; no load was looked at.{}", expected(decision))
}

fn best_score(policy: PolicyKind, decision: &Decision) -> String {
    use PolicyKind::*;
    let to = decision.replica;
    let (what, unit) = match policy {
        SmgLeastLoad => ("the least expected wait", " s"),
        VllmKvAware => ("the least of tokens to compute × requests", ""),
        Dynamo => ("the lowest cost", " blocks"),
        AibrixPreble | Preble => ("the lowest cost", " s"),
        _ => ("the best score", ""),
    };
    let score = |at: u32| decision.scores.get(at as usize).copied().unwrap_or_default();
    let all = if decision.scores.len() <= 8 {
        let all: Vec<String> = decision.scores.iter().map(|&score| short(score)).collect();
        format!("{}{unit}", all.join(" / "))
    } else {
        format!("{}{unit}", short(score(to)))
    };
    let among = match &decision.candidates[..] {
        [] => String::new(),
        of => format!(" Only {} passed the filter.", names(of)),
    };
    let had = if decision.tied == 0 { "was drawn by its share of" } else { "had" };
    format!("Replica {to} {had} {what}{}: {all}.{among}{}", tie(policy, decision), expected(decision))
}

fn short_match(policy: PolicyKind, decision: &Decision) -> String {
    let to = decision.replica;
    let by = match policy {
        PolicyKind::RayPrefix => "the one with least in the tree",
        PolicyKind::StackPrefixAware => "the one with the fewest requests over the last while",
        _ => "the one with the fewest requests",
    };
    let loads = match decision.loads.is_empty() {
        true => String::new(),
        false => format!(" (requests: {})", list(&decision.loads, to)),
    };
    format!(
        "Nobody was sent enough of the prompt before. It went to replica {to}, {by}{}{loads}.{}",
        tie(policy, decision),
        expected(decision)
    )
}

fn next_on_ring(decision: &Decision) -> String {
    let (to, owner) = (decision.replica, decision.preferred.unwrap_or(decision.replica));
    let load = |at: u32| grouped(decision.loads.get(at as usize).copied().unwrap_or_default());
    let limit =
        decision.guard_limit.map_or_else(String::new, |limit| format!(" (room up to {})", short(limit)));
    format!(
        "The prompt's beginning hashes to replica {owner}, which has no room: {} requests{limit}. Replica {to} is the first after it on the ring that has: {} requests.",
        load(owner),
        load(to)
    )
}

/// A match in what was sent, instead of in what is cached.
fn sent_before(policy: PolicyKind, decision: &Decision) -> String {
    let to = decision.replica;
    let among = match &decision.candidates[..] {
        [] | [_] => String::new(),
        of => format!(", of {}", names(of)),
    };
    let loads = match decision.loads.is_empty() {
        true => String::new(),
        false => format!(" Requests: {}.", list(&decision.loads, to)),
    };
    let limit = match decision.guard_limit {
        Some(limit) if !decision.loads.is_empty() => format!(" The gate is at {}.", short(limit)),
        _ => String::new(),
    };
    format!(
        "Replica {to} was sent the longest part of the prompt before{among}{}.{loads}{limit}{}",
        tie(policy, decision),
        expected(decision)
    )
}

/// A gate of one of the routers people run.
fn gate(policy: PolicyKind, decision: &Decision) -> String {
    let to = decision.replica;
    let limit = decision.guard_limit.map_or_else(String::new, |limit| format!(" (limit {})", short(limit)));
    let loads = list(&decision.loads, to);
    let of_fleet = matches!(policy, PolicyKind::SglangCacheAware | PolicyKind::RayPrefix);
    let why = match decision.preferred {
        _ if of_fleet => format!("the fleet is out of balance{limit}"),
        Some(own) => format!("the prompt would belong to replica {own}, which is too busy{limit}"),
        None => format!("whoever has the prompt is too busy{limit}"),
    };
    let from = match policy {
        PolicyKind::RayPrefix => format!("the shorter queue of {}", names(&decision.candidates)),
        _ => "the fewest requests".to_owned(),
    };
    format!(
        "The gate closed: {why}. It went to replica {to}, {from}{}: {loads}.{}",
        tie(policy, decision),
        expected(decision)
    )
}

/// A number with as many digits as one reads.
fn short(x: f64) -> String {
    if x == x.trunc() && x.abs() < 1e15 {
        return if x < 0.0 { format!("-{}", grouped(-x as u64)) } else { grouped(x as u64) };
    }
    format!("{x:.3}")
}

fn unit(policy: PolicyKind) -> &'static str {
    if policy == PolicyKind::LeastTokens { "outstanding tokens" } else { "requests in flight" }
}

fn least_loaded(policy: PolicyKind, decision: &Decision) -> String {
    let (to, unit) = (decision.replica, unit(policy));
    let loads = list(&decision.loads, to);
    if policy == PolicyKind::PowerOfTwo {
        let tie = if decision.tied > 1 { ", the first drawn of a tie" } else { "" };
        return format!(
            "Of {}, which were drawn, replica {to} had less to do{tie}: {loads}.",
            names(&decision.candidates)
        );
    }
    match decision.tied {
        0 | 1 => format!("Replica {to} had the fewest {unit}: {loads}."),
        n if n as usize == decision.loads.len() => {
            format!("All {n} replicas had the same {unit} ({loads}); a tie goes to the lowest number.")
        }
        n => format!(
            "{n} replicas tied for the fewest {unit} ({loads}); a tie goes to the lowest number, replica {to}."
        ),
    }
}

fn preferred(policy: PolicyKind, decision: &Decision) -> String {
    let to = decision.replica;
    match policy {
        PolicyKind::Chwbl | PolicyKind::SmgPrefixHash => {
            let limit = decision.guard_limit.map_or_else(
                || "nothing is in flight".to_owned(),
                |limit| format!("the limit is {}", short(limit)),
            );
            let load = decision.loads.get(to as usize).copied().unwrap_or_default();
            return format!(
                "The prompt's beginning hashes to replica {to}, which got it: {} requests, {limit}.",
                grouped(load)
            );
        }
        PolicyKind::LiteLlm => {
            return format!(
                "The prompt was sent to replica {to} not long ago and is pinned there.{}",
                expected(decision)
            );
        }
        _ => {}
    }
    let own = decision.loads.get(to as usize).copied().unwrap_or_default();
    let hashed = format!("The prompt's prefix hashes to replica {to}");
    match (decision.guard_limit, decision.mean) {
        (Some(limit), Some(mean)) => format!(
            "{hashed}, and its load of {} outstanding tokens is within the guard: {} × the mean {} = {}. So it went there.",
            grouped(own),
            factor(limit / mean),
            tokens(mean),
            tokens(limit)
        ),
        (None, Some(0.0)) => {
            format!(
                "{hashed}, and with nothing in flight anywhere there is no mean to be above. So it went there."
            )
        }
        _ => format!(
            "{hashed}, and there is no guard: whatever its load ({} tokens), it goes there.",
            grouped(own)
        ),
    }
}

fn longest_match(policy: PolicyKind, decision: &Decision) -> String {
    let to = decision.replica;
    let all = decision.matched.len();
    let own = decision.matched.get(to as usize).copied().unwrap_or_default();
    let matched: Vec<u64> = decision.matched.iter().map(|&m| m.into()).collect();
    let matched = list(&matched, to);
    let found = match (own, decision.tied) {
        (0, _) => format!(
            "No replica had a block of the prompt cached; a tie goes to the lowest number, replica {to}"
        ),
        (_, 0 | 1) => format!("Replica {to} had the most leading blocks of the prompt cached ({matched})"),
        (_, n) if n as usize == all => {
            format!(
                "All {n} replicas had as many leading blocks of the prompt cached ({matched}); a tie goes to the lowest number, replica {to}"
            )
        }
        (_, n) => format!(
            "{n} replicas tied for the most leading blocks of the prompt cached ({matched}); a tie goes to the lowest number, replica {to}"
        ),
    };
    let load = decision.loads.get(to as usize).copied().unwrap_or_default();
    if policy == PolicyKind::Mooncake {
        let tied = if decision.tied > 1 { "lowest number of a tie" } else { "least busy" };
        return format!(
            "Replica {to} had the most leading blocks of the prompt cached ({matched}), the {tied}: {} requests.{}",
            grouped(load),
            expected(decision)
        );
    }
    match (decision.guard_limit, decision.mean) {
        (Some(limit), Some(mean)) => format!(
            "{found}. Its load of {} outstanding tokens is within the guard: {} × the mean {} = {}.",
            grouped(load),
            factor(limit / mean),
            tokens(mean),
            tokens(limit)
        ),
        _ => format!("{found}, whatever its load ({} tokens).", grouped(load)),
    }
}

fn guard_fired(policy: PolicyKind, decision: &Decision) -> String {
    if !PolicyKind::ALL.contains(&policy) {
        return gate(policy, decision);
    }
    let to = decision.replica;
    let preferred = decision.preferred.unwrap_or(to);
    let load = |replica: u32| grouped(decision.loads.get(replica as usize).copied().unwrap_or_default());
    let limit = match (decision.guard_limit, decision.mean) {
        (Some(limit), Some(mean)) => {
            format!(" > {} × the mean {} = {}", factor(limit / mean), tokens(mean), tokens(limit))
        }
        _ => String::new(),
    };
    let tie = if decision.tied > 1 { ", the lowest number of a tie" } else { "" };
    let cold = if to == preferred {
        format!("It is itself the least loaded{tie}, so it went there all the same.")
    } else {
        format!("It went to the least loaded, replica {to} ({} tokens{tie}).", load(to))
    };
    let belongs = if policy == PolicyKind::LongestPrefix {
        let blocks = decision.matched.get(preferred as usize).copied().unwrap_or_default();
        let s = if blocks == 1 { "" } else { "s" };
        format!("the longest match is replica {preferred}'s ({} block{s})", grouped(blocks.into()))
    } else {
        format!("the prefix hashes to replica {preferred}")
    };
    format!("The guard fired: {belongs}, but its load is {} tokens{limit}. {cold}", load(preferred))
}

/// Loads as `812 / 0 / 433`; of a large fleet only the chosen one's and the extremes.
fn list(loads: &[u64], chosen: u32) -> String {
    if loads.len() <= 8 {
        return loads.iter().map(|&l| grouped(l)).collect::<Vec<_>>().join(" / ");
    }
    let own = loads.get(chosen as usize).copied().unwrap_or_default();
    let most = loads.iter().copied().max().unwrap_or_default();
    format!("{}; the most is {}", grouped(own), grouped(most))
}

fn factor(x: f64) -> String {
    // The limit is the guard times the mean, so their ratio is the guard but for rounding.
    let rounded = (x * 1e6).round() / 1e6;
    format!("{rounded}")
}

fn tokens(x: f64) -> String {
    let whole = grouped(x as u64);
    let tenth = ((x - x.trunc()) * 10.0) as u64;
    if tenth == 0 { whole } else { format!("{whole}.{tenth}") }
}

/// Digits in groups of three.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{PolicySettings, ReplicaLoad, View};

    fn said(kind: PolicyKind, tokens: &[u64], settings: PolicySettings) -> String {
        let loads: Vec<ReplicaLoad> = tokens
            .iter()
            .map(|&t| ReplicaLoad { running: t.min(3) as u32, outstanding_tokens: t, ..Default::default() })
            .collect();
        explain(kind, &kind.build(&settings).select(&[1, 2, 3], &loads))
    }

    #[test]
    fn a_turn_is_a_turn() {
        let text = said(PolicyKind::RoundRobin, &[5, 5], PolicySettings::default());
        assert!(text.starts_with("It was replica 0's turn."), "{text}");
    }

    #[test]
    fn loads_and_ties_are_said() {
        let settings = PolicySettings::default();
        let text = said(PolicyKind::LeastTokens, &[1812, 433, 902], settings);
        assert_eq!(text, "Replica 1 had the fewest outstanding tokens: 1,812 / 433 / 902.");
        let text = said(PolicyKind::LeastTokens, &[0, 812, 433, 0], settings);
        assert_eq!(
            text,
            "2 replicas tied for the fewest outstanding tokens (0 / 812 / 433 / 0); a tie goes to the lowest number, replica 0."
        );
        let text = said(PolicyKind::LeastRequests, &[0, 0], settings);
        assert!(text.contains("All 2 replicas had the same requests in flight (0 / 0)"), "{text}");
    }

    /// The tokens 1, 2, 3 hash to replica 3 of 4.
    #[test]
    fn the_guard_is_said_with_its_numbers() {
        let settings = PolicySettings::default();
        let text = said(PolicyKind::PrefixAffinity, &[1000, 1000, 1000, 1933], settings);
        assert_eq!(
            text,
            "The prompt's prefix hashes to replica 3, and its load of 1,933 outstanding tokens is within the guard: 2 × the mean 1,233.2 = 2,466.5. So it went there."
        );
        let text = said(PolicyKind::PrefixAffinity, &[500, 100, 300, 1900], settings);
        assert_eq!(
            text,
            "The guard fired: the prefix hashes to replica 3, but its load is 1,900 tokens > 2 × the mean 700 = 1,400. It went to the least loaded, replica 1 (100 tokens)."
        );
        let text = said(PolicyKind::PrefixAffinity, &[0; 4], settings);
        assert!(text.contains("no mean to be above"), "{text}");
        let unguarded = PolicySettings { max_imbalance: f64::INFINITY, ..settings };
        let text = said(PolicyKind::PrefixAffinity, &[0, 0, 0, 9000], unguarded);
        assert!(text.contains("no guard") && text.contains("9,000"), "{text}");
    }

    #[test]
    fn who_decided_and_on_what_is_said() {
        let loads = [ReplicaLoad::default(); 2];
        let mut decision = PolicyKind::LeastTokens.build(&PolicySettings::default()).select(&[1], &loads);
        decision.view = View { router: Some(3), refreshed: Some(2_500_000_000_000), own: true };
        let text = explain(PolicyKind::LeastTokens, &decision);
        assert!(
            text.starts_with(
                "Router 3 decided, which knows only its own requests. Loads are as they were shown at 2.500 s, with what it sent since. All 2"
            ),
            "{text}"
        );
        let mut decision = PolicyKind::RoundRobin.build(&PolicySettings::default()).select(&[1], &loads);
        decision.view = View { router: Some(0), ..View::default() };
        let text = explain(PolicyKind::RoundRobin, &decision);
        assert!(text.starts_with("Router 0 decided. It was replica 0's turn."), "{text}");
    }

    #[test]
    fn a_match_is_said_with_every_candidates_blocks() {
        let said = |of: &[(u32, u64)], guard: f64| {
            let loads: Vec<ReplicaLoad> = of
                .iter()
                .map(|&(matched_blocks, outstanding_tokens)| ReplicaLoad {
                    matched_blocks,
                    outstanding_tokens,
                    ..Default::default()
                })
                .collect();
            let settings = PolicySettings { longest_prefix_guard: guard, ..Default::default() };
            explain(
                PolicyKind::LongestPrefix,
                &PolicyKind::LongestPrefix.build(&settings).select(&[1], &loads),
            )
        };
        assert_eq!(
            said(&[(2, 0), (7, 1900), (0, 0)], f64::INFINITY),
            "Replica 1 had the most leading blocks of the prompt cached (2 / 7 / 0), whatever its load (1,900 tokens)."
        );
        let text = said(&[(7, 500), (7, 0), (0, 100)], 3.0);
        assert!(text.starts_with("2 replicas tied for the most leading blocks"), "{text}");
        assert!(
            text.ends_with("500 outstanding tokens is within the guard: 3 × the mean 200 = 600."),
            "{text}"
        );
        assert!(
            said(&[(0, 9), (0, 0)], 9.0).starts_with("No replica had a block of the prompt cached; a tie")
        );
        assert!(said(&[(3, 9), (3, 0)], 9.0).starts_with("All 2 replicas had as many"));
        assert_eq!(
            said(&[(1, 1900), (0, 100), (0, 400)], 2.0),
            "The guard fired: the longest match is replica 0's (1 block), but its load is 1,900 tokens > 2 × the mean 800 = 1,600. It went to the least loaded, replica 1 (100 tokens)."
        );
    }

    #[test]
    fn the_routers_people_run_say_their_terms_and_gates() {
        use crate::policy::tools::in_flight;
        let mut policy = PolicyKind::SmgCacheAware.build(&PolicySettings::default());
        let prompt: Vec<u32> = (0..64).collect();
        let mut said =
            |loads: &[u32]| explain(PolicyKind::SmgCacheAware, &policy.select(&prompt, &in_flight(loads)));
        assert_eq!(
            said(&[0, 0]),
            "Nobody was sent enough of the prompt before. It went to replica 0, the one with the fewest requests, the first of 2 that were equal (requests: 0 / 0). Nothing of the prompt is expected to be cached there."
        );
        assert_eq!(
            said(&[9, 0]),
            "Replica 0 was sent the longest part of the prompt before. Requests: 9 / 0. The gate is at 68.500. 64 tokens of the prompt are expected to be cached there."
        );
        assert_eq!(
            said(&[140, 0]),
            "The gate closed: the prompt would belong to replica 0, which is too busy (limit 134). It went to replica 1, the fewest requests: 140 / 0. Nothing of the prompt is expected to be cached there."
        );
        let mut dynamo = PolicyKind::Dynamo.build(&PolicySettings::default());
        let warm = ReplicaLoad { matched_blocks: 3, ..ReplicaLoad::default() };
        assert_eq!(
            explain(PolicyKind::Dynamo, &dynamo.select(&prompt, &[ReplicaLoad::default(), warm])),
            "Replica 1 had the lowest cost: 8 / 5 blocks. 48 tokens of the prompt are expected to be cached there."
        );
    }

    #[test]
    fn a_large_fleet_is_not_listed() {
        let text = said(PolicyKind::LeastTokens, &[7; 64], PolicySettings::default());
        assert!(text.len() < 140, "{text}");
    }
}
