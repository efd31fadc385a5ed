//! A trace with its sessions, and what one does to it before a run: cut, thin, stretch, join.

use super::import::intern::{Chain, Interner};
use super::{BlockIds, Prompt, Trace};
use crate::units::{Span, Time};

/// The session of a request that is of none.
pub const NO_SESSION: u32 = u32::MAX;

/// Leading tokens beyond those that all share by which sessions are told apart where nothing names them.
const TELLING_TOKENS: usize = 64;

/// Requests and the session that each belongs to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// The requests.
    pub trace: Trace,
    /// By request: its session, or [`NO_SESSION`].
    pub sessions: Vec<u32>,
}

impl From<Trace> for Log {
    fn from(trace: Trace) -> Log {
        let sessions = vec![NO_SESSION; trace.requests.len()];
        Log { trace, sessions }
    }
}

impl Log {
    /// Whether the file says which requests belong together.
    pub fn names_sessions(&self) -> bool {
        self.sessions.iter().any(|&session| session != NO_SESSION)
    }

    /// The session of each request, and how many there are: as the file names them; where it names none, prompts that
    /// go on alike after what all share (by one block id, or 64 tokens). Of a prompt of which
    /// nothing is known, as of one that no session is named of, each is its own.
    pub fn all_sessions(&self) -> (Vec<u32>, u32) {
        let mut ids = Interner::default();
        let named = self.names_sessions();
        let common = if named { 0 } else { self.trace.common_items() };
        let telling = if self.trace.tokens_per_item() > 1 { 1 } else { TELLING_TOKENS };
        let mut session = |(at, (request, &own)): (usize, (&super::RequestSpec, &u32))| {
            let items = request.prompt.items();
            let chain = if own != NO_SESSION {
                Chain::default().then(1).then(own.into())
            } else if named || items.is_empty() {
                Chain::default().then(2).then(at as u64)
            } else {
                let end = items.len().min(common + telling);
                items[..end].iter().fold(Chain::default().then(3), |chain, &item| chain.then(item.into()))
            };
            ids.id(chain).expect("there are fewer requests than ids")
        };
        let all = self.trace.requests.iter().zip(&self.sessions).enumerate().map(&mut session).collect();
        (all, ids.len() as u32)
    }

    /// Sees to it that all prompts are told by the same: tokens, or ids of blocks of one size. Or says what is not.
    pub(super) fn one_kind_of_prompt(&mut self) -> Option<String> {
        let prompts = || self.trace.requests.iter().map(|request| &request.prompt);
        let block = prompts().find_map(|prompt| match prompt {
            Prompt::Blocks(BlockIds { block, ids, .. }) if !ids.is_empty() => Some(*block),
            _ => None,
        });
        let Some(block) = block else {
            for request in &mut self.trace.requests {
                if let Prompt::Blocks(blocks) = &mut request.prompt {
                    blocks.block = 1;
                }
            }
            return None;
        };
        if prompts().any(|prompt| matches!(prompt, Prompt::Tokens(_))) {
            return Some(
                "some prompts are tokens and some are ids of blocks; they are all of one kind".into(),
            );
        }
        for request in &mut self.trace.requests {
            if let Prompt::Blocks(blocks) = &mut request.prompt {
                if blocks.ids.is_empty() {
                    blocks.block = block;
                } else if blocks.block != block {
                    return Some(format!(
                        "ids stand for {block} tokens in some prompts and for {} in others; they stand for the same in all",
                        blocks.block
                    ));
                }
            }
        }
        None
    }

    fn keep(&mut self, keep: impl Fn(usize, Time) -> bool) {
        let kept: Vec<bool> =
            self.trace.requests.iter().enumerate().map(|(at, request)| keep(at, request.arrival)).collect();
        let (mut requests, mut sessions) = (kept.iter(), kept.iter());
        self.trace.requests.retain(|_| *requests.next().expect("one each"));
        self.sessions.retain(|_| *sessions.next().expect("one each"));
    }

    /// Keeps what arrives from `from` on and before `to`, counted from `from`.
    pub fn slice(mut self, from: Time, to: Option<Time>) -> Log {
        self.keep(|_, arrival| arrival >= from && to.is_none_or(|to| arrival < to));
        for request in &mut self.trace.requests {
            request.arrival = Time(request.arrival.since(from).0);
        }
        self
    }

    /// Keeps about this share of the sessions, drawn from a seed, each whole.
    pub fn sample(mut self, share: f64, seed: u64) -> Log {
        let (sessions, _) = self.all_sessions();
        let drawn = |session: u32| {
            let bits = Chain::default().then(seed).then(session.into()).low();
            ((bits >> 11) as f64) / ((1u64 << 53) as f64) < share
        };
        self.keep(|at, _| drawn(sessions[at]));
        self
    }

    /// Every time is so many times as late; `None` where that is too late for the clock.
    pub fn scaled(mut self, factor: f64) -> Option<Log> {
        self.trace = self.trace.scaled(factor)?;
        Some(self)
    }

    /// One log of several, each from its own zero, in order of arrival (of a tie, in the order given). Tenants of
    /// one name are one; sessions and ids of blocks are each log's own.
    pub fn merge(logs: Vec<Log>) -> Result<Log, String> {
        if logs.len() == 1 {
            return Ok(logs.into_iter().next().expect("there is one"));
        }
        let mut merged = Log::default();
        let (mut ids, mut first_session) = (Interner::default(), 0);
        let mut all = Vec::new();
        for (file, log) in logs.into_iter().enumerate() {
            let tenants: Vec<u32> = log.trace.tenants.into_iter().map(|name| merged.tenant(name)).collect();
            let most = log.sessions.iter().filter(|&&s| s != NO_SESSION).max().map_or(0, |&most| most + 1);
            for (mut request, session) in log.trace.requests.into_iter().zip(log.sessions) {
                request.tenant = request.tenant.map(|tenant| tenants[tenant as usize]);
                if let Prompt::Blocks(blocks) = &mut request.prompt {
                    let own = |&id: &u32| ids.id(Chain::default().then(file as u64).then(id.into()));
                    blocks.ids = blocks
                        .ids
                        .iter()
                        .map(own)
                        .collect::<Option<_>>()
                        .ok_or("more than 2^32 different blocks")?;
                }
                all.push((request, if session == NO_SESSION { session } else { session + first_session }));
            }
            first_session += most;
        }
        all.sort_by_key(|(request, _)| request.arrival);
        (merged.trace.requests, merged.sessions) = all.into_iter().unzip();
        match merged.one_kind_of_prompt() {
            None => Ok(merged),
            Some(problem) => Err(problem),
        }
    }

    fn tenant(&mut self, name: super::TenantName) -> u32 {
        let tenants = &mut self.trace.tenants;
        let known = tenants.iter().position(|own| *own == name);
        known.unwrap_or_else(|| {
            tenants.push(name);
            tenants.len() - 1
        }) as u32
    }
}

impl Trace {
    /// How many of their leading [items](Prompt::items) all prompts have in common.
    pub fn common_items(&self) -> usize {
        let Some((first, rest)) = self.requests.split_first() else { return 0 };
        let first = first.prompt.items();
        rest.iter().fold(first.len(), |common, request| {
            first[..common].iter().zip(request.prompt.items()).take_while(|(a, b)| a == b).count()
        })
    }

    /// Every arrival so many times as late; `None` where that is too late for the clock.
    pub fn scaled(mut self, factor: f64) -> Option<Trace> {
        if factor != 1.0 {
            for request in &mut self.requests {
                request.arrival = Time::from_seconds(request.arrival.seconds() * factor)?;
            }
        }
        Some(self)
    }

    /// From the first arrival to the last.
    pub fn span(&self) -> Span {
        match (self.requests.first(), self.requests.last()) {
            (Some(first), Some(last)) => last.arrival.since(first.arrival),
            _ => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{RequestSpec, TenantName};

    fn log(rows: &[(u64, &[u32], u32)]) -> Log {
        let request = |&(seconds, ids, _): &(u64, &[u32], u32)| RequestSpec {
            arrival: Time(seconds * 1_000_000_000_000),
            prompt: Prompt::Blocks(BlockIds { tokens: 16 * ids.len() as u32, block: 16, ids: ids.into() }),
            max_tokens: 1,
            tenant: Some(0),
            output: None,
        };
        let trace = Trace {
            requests: rows.iter().map(request).collect(),
            tenants: vec![TenantName::Text("a".into())],
        };
        Log { trace, sessions: rows.iter().map(|row| row.2).collect() }
    }

    fn arrivals(log: &Log) -> Vec<u64> {
        log.trace.requests.iter().map(|r| r.arrival.0 / 1_000_000_000_000).collect()
    }

    #[test]
    fn a_slice_begins_at_its_own_zero() {
        let all = log(&[(0, &[1], 0), (5, &[2], 1), (9, &[3], 2), (10, &[4], 3)]);
        let part = all.slice(Time(5_000_000_000_000), Some(Time(10_000_000_000_000)));
        assert_eq!((arrivals(&part), &part.sessions[..]), (vec![0, 4], &[1, 2][..]));
    }

    #[test]
    fn sessions_are_those_that_go_on_alike_where_none_is_named() {
        let none = NO_SESSION;
        let all = log(&[(0, &[7, 1], none), (1, &[7, 2, 3], none), (2, &[7, 1, 5], none), (3, &[7], none)]);
        assert_eq!(all.trace.common_items(), 1);
        assert_eq!(all.all_sessions(), (vec![0, 1, 0, 2], 3));
        let named = log(&[(0, &[1], 4), (1, &[1], none), (2, &[1], 4)]);
        assert_eq!(named.all_sessions(), (vec![0, 1, 0], 2));
    }

    #[test]
    fn a_sample_keeps_sessions_whole() {
        let rows: Vec<(u64, &[u32], u32)> = (0..4000).map(|i| (i, &[1][..], i as u32 / 4)).collect();
        let sample = log(&rows).sample(0.25, 3);
        let kept = sample.sessions.len();
        assert!((850..1150).contains(&kept) && kept.is_multiple_of(4), "{kept}");
        assert_eq!(log(&rows).sample(0.25, 3), sample);
        assert_ne!(log(&rows).sample(0.25, 4), sample);
        assert_eq!(log(&rows).sample(1.0, 3), log(&rows));
    }

    #[test]
    fn merged_logs_share_tenants_and_neither_ids_nor_sessions() {
        let (one, other) =
            (log(&[(0, &[1, 2], 0), (4, &[1], 1)]), log(&[(2, &[1], 0), (4, &[9], NO_SESSION)]));
        let both = Log::merge(vec![one, other.clone()]).expect("one size of block");
        assert_eq!((arrivals(&both), both.trace.tenants.len()), (vec![0, 2, 4, 4], 1));
        assert_eq!(both.sessions, [0, 2, 1, NO_SESSION]);
        let firsts: Vec<u32> = both.trace.requests.iter().map(|r| r.prompt.items()[0]).collect();
        assert!(firsts[0] == firsts[2] && firsts[0] != firsts[1], "{firsts:?}");
        let mut odd = other;
        odd.trace.requests[0].prompt = Prompt::Blocks(BlockIds { tokens: 8, block: 8, ids: [1].into() });
        odd.trace.requests[1].prompt = Prompt::Blocks(BlockIds { tokens: 8, block: 8, ids: [1].into() });
        let problem = Log::merge(vec![log(&[(0, &[1], 0)]), odd]).expect_err("two sizes");
        assert!(problem.contains("16 tokens") && problem.contains("for 8"), "{problem}");
    }

    #[test]
    fn time_is_stretched_as_far_as_the_clock_goes() {
        let all = log(&[(0, &[1], 0), (6, &[2], 1)]);
        assert_eq!(arrivals(&all.clone().scaled(0.5).expect("shorter")), [0, 3]);
        assert_eq!(all.clone().scaled(1e9), None);
        assert_eq!(all.trace.span().seconds(), 6.0);
    }
}
