//! The life of a request under one policy, up to the moment shown: what it did when, and what every
//! candidate had to offer when it was decided where it goes.

use super::playback::{Fold, Log};
use super::words::{tenant_name, time};
use crate::engine::RequestId;
use crate::policy::{Decision, PolicyKind, grouped};
use crate::sim::{Outcome, Record, What};
use crate::units::Time;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It waits to be admitted, at first or after a preemption.
    Waiting,
    /// Its prompt is computed.
    Prefill,
    /// It has its tokens, one a step.
    Decode,
}

impl Doing {
    /// Its name, also that of its class.
    pub fn name(self) -> &'static str {
        match self {
            Doing::Waiting => "waiting",
            Doing::Prefill => "prefill",
            Doing::Decode => "decode",
        }
    }
}

/// A life.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// Its times and counts.
    pub record: Record,
    /// What it did, from when to when, in picoseconds; one right after the other.
    pub parts: Vec<(Doing, u64, u64)>,
    /// When its tokens came out.
    pub tokens: Vec<u64>,
}

impl Life {
    /// A request's life in a run up to a moment; `None`: it has not arrived.
    pub fn of(request: RequestId, fold: &Fold, log: &Log, until: u64) -> Option<Life> {
        let record = fold.recorder.record(request)?.clone();
        let mut life = Life { parts: Vec::new(), tokens: Vec::new(), record };
        let Outcome::Served { finished, .. } = life.record.outcome else { return Some(life) };
        let mut now = Some((Doing::Waiting, life.record.arrival));
        let to = |life: &mut Life, at: u64, from: &mut Option<(Doing, u64)>, next: Option<Doing>| {
            if let Some((doing, since)) = from.take() {
                life.parts.push((doing, since, at));
            }
            *from = next.map(|next| (next, at));
        };
        let end = finished.unwrap_or(until).min(until);
        for event in log.from(log.before(life.record.arrival)).take_while(|event| event.at <= end) {
            match &event.what {
                What::StepStarted { start, .. } => {
                    if start.preempted.contains(&request) {
                        to(&mut life, event.at, &mut now, Some(Doing::Waiting));
                    }
                    if start.admitted.iter().any(|one| one.request == request) {
                        to(&mut life, event.at, &mut now, Some(Doing::Prefill));
                    }
                }
                What::StepEnded { end, .. } => {
                    let Some(token) = end.emitted.iter().find(|token| token.request == request) else {
                        continue;
                    };
                    life.tokens.push(event.at);
                    if token.last {
                        to(&mut life, event.at, &mut now, None);
                    } else if now.is_some_and(|(doing, _)| doing == Doing::Prefill) {
                        to(&mut life, event.at, &mut now, Some(Doing::Decode));
                    }
                }
                _ => {}
            }
        }
        to(&mut life, end, &mut now, None);
        Some(life)
    }

    /// When the last that is known of it happened.
    pub fn end(&self) -> u64 {
        self.parts.last().map_or(self.record.arrival, |(_, _, to)| *to)
    }

    /// The cells of its row: where it went, how long it waited, what was cached, TTFT, tokens, end and
    /// preemptions, as far as they are known.
    pub fn cells(&self) -> [String; 7] {
        let unknown = || "…".to_owned();
        let since = |at: u64| time(Time(at).since(Time(self.record.arrival)).0);
        let Outcome::Served {
            replica, admitted, cached, first_token, finished, generated, preemptions, ..
        } = self.record.outcome
        else {
            return [
                "rejected".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
                "–".into(),
            ];
        };
        [
            format!("replica {replica}"),
            admitted.map_or_else(unknown, since),
            admitted.map_or_else(unknown, |_| {
                format!("{} of {}", grouped(cached.into()), grouped(self.record.prompt.into()))
            }),
            first_token.map_or_else(unknown, since),
            format!("{generated} of {}", grouped(self.record.max_tokens)),
            finished.map_or_else(unknown, time),
            preemptions.to_string(),
        ]
    }

    /// The headings of [`cells`](Life::cells).
    pub const CELLS: [&'static str; 7] = [
        "went to",
        "waited",
        "cached prompt tokens",
        "first token after",
        "tokens",
        "finished at",
        "preempted",
    ];

    /// What it is the life of.
    pub fn title(&self) -> String {
        format!(
            "Request {} of tenant {}: {} prompt tokens, at most {} to generate, arrived at {}",
            self.record.request,
            tenant_name(self.record.tenant),
            grouped(self.record.prompt.into()),
            grouped(self.record.max_tokens),
            time(self.record.arrival)
        )
    }
}

/// The most candidates of a decision that are listed.
const MOST_CANDIDATES: usize = 64;

/// What a decision looked at: a heading a term, and a row a candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The terms' names; empty where nothing was looked at.
    pub headings: Vec<&'static str>,
    /// The candidates: number, what each term was, and what is to be said of it.
    pub rows: Vec<(u32, Vec<String>, String)>,
    /// Candidates that are not listed.
    pub more: usize,
}

/// Every candidate's terms in a decision.
pub fn terms(policy: PolicyKind, decision: &Decision) -> Terms {
    let Decision { loads, matched, mean, guard_limit, preferred, .. } = decision;
    let all = loads.len().max(matched.len());
    let mut headings = Vec::new();
    if !matched.is_empty() {
        headings.push("cached blocks");
    }
    if !loads.is_empty() {
        headings.push(if policy == PolicyKind::LeastRequests {
            "requests in flight"
        } else {
            "outstanding tokens"
        });
    }
    let mean = mean.filter(|mean| *mean > 0.0 && guard_limit.is_some());
    if mean.is_some() {
        headings.push("of the mean");
    }
    // Whoever mattered is listed however many there are.
    let matters = |at: usize| at as u32 == decision.replica || Some(at as u32) == *preferred;
    let mut left = MOST_CANDIDATES;
    let rows: Vec<_> = (0..all)
        .filter(|&at| {
            let listed = matters(at) || left > 0;
            left = left.saturating_sub(1);
            listed
        })
        .map(|at| {
            let mut cells = Vec::new();
            cells.extend(matched.get(at).map(|blocks| grouped((*blocks).into())));
            cells.extend(loads.get(at).map(|load| grouped(*load)));
            let load = loads.get(at).map_or(0.0, |load| *load as f64);
            cells.extend(mean.map(|mean| format!("{:.2} ×", load / mean)));
            let mut said = Vec::new();
            if at as u32 == decision.replica {
                said.push("chosen");
            }
            if Some(at as u32) == *preferred {
                said.push("preferred");
            }
            if guard_limit.is_some_and(|limit| load > limit) {
                said.push("over the guard");
            }
            (at as u32, cells, said.join(", "))
        })
        .collect();
    Terms { headings, more: all - rows.len(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Blocks, Config};
    use crate::policy::{PolicySettings, ReplicaLoad};
    use crate::ui::playback::tests::log;

    /// Parts follow on each other from the arrival to the end, and say what the record says.
    fn checked(life: &Life) {
        let Outcome::Served { admitted, first_token, finished, generated, preemptions, .. } =
            life.record.outcome
        else {
            panic!("it was served: {life:?}");
        };
        assert_eq!(life.parts[0].1, life.record.arrival);
        assert!(life.parts.windows(2).all(|pair| pair[0].2 == pair[1].1), "{life:?}");
        let begins = |doing| life.parts.iter().find(|part| part.0 == doing).map(|part| part.1);
        assert_eq!(begins(Doing::Prefill), admitted);
        assert_eq!(life.tokens.first().copied(), first_token);
        assert_eq!(life.tokens.len(), generated as usize);
        assert_eq!(finished, Some(life.end()));
        let waits = life.parts.iter().filter(|part| part.0 == Doing::Waiting).count();
        assert_eq!(waits, 1 + preemptions as usize);
    }

    #[test]
    fn a_life_goes_from_arrival_to_finish_without_a_gap() {
        let tight = Config {
            blocks: Blocks::Number(70),
            requests: 60,
            rate: 20.0,
            output_min: 100,
            output_max: 200,
            ..Config::default()
        };
        for (config, blocks) in [(Config::default(), 384), (tight, 70)] {
            let (log, _) = log(&config, PolicyKind::LeastTokens, 40);
            let mut fold = Fold::new(4, blocks);
            fold.seek(&log, log.end());
            for request in 0..config.requests {
                checked(&Life::of(request, &fold, &log, log.end()).expect("it arrived"));
            }
        }
    }

    #[test]
    fn before_its_end_a_life_is_as_far_as_it_is() {
        let (log, _) = log(&Config::default(), PolicyKind::RoundRobin, 40);
        let mut whole = Fold::new(4, 384);
        whole.seek(&log, log.end());
        let life = Life::of(5, &whole, &log, log.end()).expect("it arrived");
        let mut fold = Fold::new(4, 384);
        fold.seek(&log, life.record.arrival - 1);
        assert_eq!(Life::of(5, &fold, &log, life.record.arrival - 1), None);
        let (_, _, admitted) = life.parts[0];
        fold.seek(&log, admitted + 1);
        let young = Life::of(5, &fold, &log, admitted + 1).expect("it arrived");
        assert_eq!(young.parts.last(), Some(&(Doing::Prefill, admitted, admitted + 1)));
        assert_eq!((young.cells()[3].as_str(), young.cells()[5].as_str()), ("…", "…"));
        assert!(life.cells().iter().all(|cell| cell != "…"), "{:?}", life.cells());
        assert!(life.title().starts_with("Request 5 of tenant "), "{}", life.title());
    }

    #[test]
    fn a_refused_request_has_no_life() {
        let config = Config { blocks: Blocks::Number(4), ..Config::default() };
        let (log, _) = log(&config, PolicyKind::RoundRobin, 40);
        let mut fold = Fold::new(4, 4);
        fold.seek(&log, log.end());
        assert_eq!((fold.refused.len(), fold.refusal(3).map(|r| r.arrival.request)), (24, Some(3)));
        let life = Life::of(3, &fold, &log, log.end()).expect("it arrived");
        assert_eq!((life.cells()[0].as_str(), life.parts.len()), ("rejected", 0));
    }

    #[test]
    fn every_candidate_is_listed_with_its_terms() {
        let of = |policy: PolicyKind, tokens: &[u64]| {
            let loads: Vec<ReplicaLoad> = tokens
                .iter()
                .map(|&outstanding_tokens| ReplicaLoad { outstanding_tokens, ..ReplicaLoad::default() })
                .collect();
            terms(policy, &policy.build(&PolicySettings::default()).select(&[1, 2, 3], &loads))
        };
        assert_eq!(of(PolicyKind::RoundRobin, &[1, 2]), Terms::default());
        let least = of(PolicyKind::LeastTokens, &[1812, 433]);
        assert_eq!(least.headings, ["outstanding tokens"]);
        assert_eq!(least.rows[0], (0, vec!["1,812".into()], String::new()));
        assert_eq!(least.rows[1], (1, vec!["433".into()], "chosen".into()));
        // The tokens 1, 2, 3 hash to replica 3 of 4.
        let guarded = of(PolicyKind::PrefixAffinity, &[500, 100, 300, 1900]);
        assert_eq!(guarded.headings, ["outstanding tokens", "of the mean"]);
        assert_eq!(guarded.rows[3].1, ["1,900", "2.71 ×"]);
        assert_eq!(guarded.rows[3].2, "preferred, over the guard");
        assert_eq!(guarded.rows[1].2, "chosen");
        let longest = of(PolicyKind::LongestPrefix, &[5, 0]);
        assert_eq!(longest.headings, ["cached blocks", "outstanding tokens"]);
        let many = of(PolicyKind::LeastTokens, &[vec![7; 200], vec![1]].concat());
        assert_eq!((many.rows.len(), many.more, many.rows[64].0), (65, 136, 200));
    }
}
