//! What arrives and where it is sent, with everything that led to the decision.
//!
//! # Format
//!
//! The low four bits of an entry's first byte are its kind.
//!
//! | kind | entry | after the first byte and the time |
//! |---|---|---|
//! | 0 | who decides from now on | the policy's name (its length, then its bytes); the guard (8 bytes, infinite for none); active replicas |
//! | 1 | rejected | the request; why (a byte); what was found; what there is |
//! | 2 | sent, where there was no router | the request; the replica |
//! | 3 | sent by a decision | the request; the decision |
//!
//! A request is its prompt's tokens, its budget and, if `HAS_TENANT`, its tenant; its number is that of
//! those before it. A decision is
//!
//! - a byte: the reason (three bits), and which of these there are: matches, preferred replica, router,
//!   refresh; and whether the router's own requests are added;
//! - a byte: how the mean (low four bits) and the guard's limit (high) are told: not at all; by what they
//!   are computed from, the loads and the guard; or, if that gave others, in 8 bytes;
//! - the replica; how many tied; the preferred replica; the router; the refresh (as a change since the
//!   last one that was told);
//! - how many loads there are, and each as a change since the same router's last decision;
//! - where there are matches: how many, and each candidate's blocks;
//! - if the second byte says that there is more (`HAS_MORE`): the reason, where its three bits are all set;
//!   the tokens that are expected to be cached and one, or 0; how many scores there are, and each in 8
//!   bytes; how many candidates, and each.

use serde::{Deserialize, Serialize};

use super::stream::Fold;
use super::varint::{Reader, put, put_bits, put_change};
use crate::engine::{Rejection, RequestId};
use crate::policy::{Decision, PolicyKind, Reason, View};
use crate::sim::Arrival;

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// By which policy.
    pub policy: PolicyKind,
    /// The guard, as a factor of the mean load; `None`: there is none.
    pub guard: Option<f64>,
    /// How many replicas requests are sent to, from the first on.
    pub replicas: u32,
}

/// Something that happened in front of the replicas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalEntry {
    /// Who decides from now on.
    Setting(Setting),
    /// A request arrived that can never be served.
    Rejected {
        /// The request.
        arrival: Arrival,
        /// Why not.
        rejection: Rejection,
    },
    /// A request arrived and was sent to a replica.
    Routed {
        /// The request.
        arrival: Arrival,
        /// Where to.
        replica: u32,
        /// Why; `None` where there was no router.
        decision: Option<Decision>,
    },
}

impl ArrivalEntry {
    /// The request that arrived.
    pub fn arrival(&self) -> Option<&Arrival> {
        match self {
            ArrivalEntry::Setting(_) => None,
            ArrivalEntry::Rejected { arrival, .. } | ArrivalEntry::Routed { arrival, .. } => Some(arrival),
        }
    }
}

/// Where arrivals have led to.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    pub setting: Option<Setting>,
    /// The most replicas that there have been.
    pub replicas: u32,
    pub arrived: u32,
    pub rejected: u32,
    /// The last request that was sent anywhere.
    pub routed: Option<(u64, ArrivalEntry)>,
    /// Each router's latest loads.
    loads: Vec<Vec<u64>>,
    /// The latest refresh that was told.
    refreshed: u64,
}

const HAS_TENANT: u8 = 0x10;

const HAS_PREFERRED: u8 = 0x10;
const HAS_ROUTER: u8 = 0x20;
const HAS_REFRESH: u8 = 0x40;
const OWN: u8 = 0x80;

/// How a number is told.
const NONE: u8 = 0;
const COMPUTED: u8 = 1;
const TOLD: u8 = 2;

/// In the head: the reason is told further on.
const LATER: u8 = 0x07;

/// In the byte of mean and limit: there is more at the end.
const HAS_MORE: u8 = 0x08;

/// Beside the reason's number: whether there are matches.
const HAS_MATCHES: u8 = 0x08;

impl Arrivals {
    /// Before anything.
    pub fn new() -> Arrivals {
        Arrivals {
            setting: None,
            replicas: 0,
            arrived: 0,
            rejected: 0,
            routed: None,
            loads: Vec::new(),
            refreshed: 0,
        }
    }

    /// The loads that a router decided on last.
    fn loads(&self, router: Option<u32>) -> &[u64] {
        self.loads.get(router.unwrap_or(0) as usize).map_or(&[], |loads| loads)
    }

    /// A guard's limit over a mean, as the policies compute it.
    fn limit(&self, mean: Option<f64>) -> Option<f64> {
        let guard = self.setting?.guard?;
        mean.filter(|&mean| mean > 0.0).map(|mean| guard * mean)
    }

    fn write_decision(&self, decision: &Decision, out: &mut Vec<u8>) {
        // Named one by one, so that none is forgotten when another is added.
        let Decision {
            replica,
            reason,
            loads,
            mean,
            preferred,
            guard_limit,
            tied,
            matched,
            scores,
            candidates,
            predicted,
            view,
        } = decision;
        let View { router, refreshed, own } = *view;
        let reason = Reason::ALL.iter().position(|r| r == reason).expect("every reason is listed") as u8;
        let more = reason >= LATER || !scores.is_empty() || !candidates.is_empty() || predicted.is_some();
        let mut head = reason.min(LATER);
        for (flag, set) in [
            (HAS_MATCHES, !matched.is_empty()),
            (HAS_PREFERRED, preferred.is_some()),
            (HAS_ROUTER, router.is_some()),
            (HAS_REFRESH, refreshed.is_some()),
            (OWN, own),
        ] {
            head |= if set { flag } else { 0 };
        }
        let how = |told: Option<f64>, computed: Option<f64>| match told {
            None => NONE,
            told if told.map(f64::to_bits) == computed.map(f64::to_bits) => COMPUTED,
            Some(_) => TOLD,
        };
        let (of_mean, of_limit) = (how(*mean, mean_of(loads)), how(*guard_limit, self.limit(*mean)));
        out.extend([head, of_mean | of_limit << 4 | if more { HAS_MORE } else { 0 }]);
        for (number, how) in [(mean, of_mean), (guard_limit, of_limit)] {
            if let (Some(number), TOLD) = (number, how) {
                put_bits(out, *number);
            }
        }
        put(out, (*replica).into());
        put(out, (*tied).into());
        preferred.iter().chain(&router).for_each(|&number| put(out, number.into()));
        refreshed.iter().for_each(|&at| put_change(out, self.refreshed, at));
        put(out, loads.len() as u64);
        let before = self.loads(router).iter().copied().chain(core::iter::repeat(0));
        for (&load, before) in loads.iter().zip(before) {
            put_change(out, before, load);
        }
        if !matched.is_empty() {
            put(out, matched.len() as u64);
            matched.iter().for_each(|&blocks| put(out, blocks.into()));
        }
        if more {
            put(out, reason.into());
            put(out, predicted.map_or(0, |tokens| u64::from(tokens) + 1));
            put(out, scores.len() as u64);
            scores.iter().for_each(|&score| put_bits(out, score));
            put(out, candidates.len() as u64);
            candidates.iter().for_each(|&replica| put(out, replica.into()));
        }
    }

    fn read_decision(&self, from: &mut Reader<'_>) -> Option<Decision> {
        let (head, how) = (from.byte()?, from.byte()?);
        let (more, how) = (how & HAS_MORE != 0, how & !HAS_MORE);
        let told = |from: &mut Reader<'_>, how| if how == TOLD { from.bits().map(Some) } else { Some(None) };
        let (mean, limit) = (told(from, how & 0x0f)?, told(from, how >> 4)?);
        let (replica, tied) = (from.small()?, from.small()?);
        let small = |from: &mut Reader<'_>, flag| {
            if head & flag != 0 { from.small().map(Some) } else { Some(None) }
        };
        let (preferred, router) = (small(from, HAS_PREFERRED)?, small(from, HAS_ROUTER)?);
        let refreshed = if head & HAS_REFRESH != 0 { Some(from.change(self.refreshed)?) } else { None };
        let mut before = self.loads(router).iter().copied();
        let loads: Option<Vec<u64>> =
            (0..from.small()?).map(|_| from.change(before.next().unwrap_or(0))).collect();
        let loads = loads?;
        let matched = match head & HAS_MATCHES {
            0 => Vec::new(),
            _ => (0..from.small()?).map(|_| from.small()).collect::<Option<_>>()?,
        };
        let mut decision = Decision::default();
        let mut reason = usize::from(head & LATER);
        if more {
            reason = from.small()? as usize;
            decision.predicted = match from.number()? {
                0 => None,
                tokens => Some(u32::try_from(tokens - 1).ok()?),
            };
            decision.scores = (0..from.small()?).map(|_| from.bits()).collect::<Option<_>>()?;
            decision.candidates = (0..from.small()?).map(|_| from.small()).collect::<Option<_>>()?;
        }
        let mean = if how & 0x0f == COMPUTED { mean_of(&loads) } else { mean };
        Some(Decision {
            replica,
            reason: *Reason::ALL.get(reason)?,
            guard_limit: if how >> 4 == COMPUTED { self.limit(mean) } else { limit },
            mean,
            loads,
            preferred,
            tied,
            matched,
            view: View { router, refreshed, own: head & OWN != 0 },
            ..decision
        })
    }

    fn read_arrival(&self, head: u8, from: &mut Reader<'_>) -> Option<Arrival> {
        let (prompt, max_tokens) = (from.small()?, from.number()?);
        let tenant = if head & HAS_TENANT != 0 { Some(from.small()?) } else { None };
        Some(Arrival { request: self.arrived as RequestId, tenant, prompt, max_tokens })
    }
}

/// As the policies compute it.
fn mean_of(loads: &[u64]) -> Option<f64> {
    let sum = loads.iter().fold(0u64, |sum, &load| sum.wrapping_add(load));
    (!loads.is_empty()).then(|| sum as f64 / loads.len() as f64)
}

fn write_arrival(kind: u8, arrival: &Arrival, out: &mut Vec<u8>) {
    out.push(kind | if arrival.tenant.is_some() { HAS_TENANT } else { 0 });
    put(out, arrival.prompt.into());
    put(out, arrival.max_tokens);
    arrival.tenant.iter().for_each(|&tenant| put(out, tenant.into()));
}

fn write_rejection(rejection: &Rejection, out: &mut Vec<u8>) {
    let (why, found, there_is) = match *rejection {
        Rejection::NoBudget => (0, 0, 0),
        Rejection::EmptyPrompt => (1, 0, 0),
        Rejection::TooLongForModel { tokens, positions } => (2, tokens, positions),
        Rejection::TooLongForPool { blocks, pool } => (3, blocks, pool),
    };
    out.push(why);
    put(out, found);
    put(out, there_is);
}

fn read_rejection(from: &mut Reader<'_>) -> Option<Rejection> {
    let (why, found, there_is) = (from.byte()?, from.number()?, from.number()?);
    Some(match why {
        0 => Rejection::NoBudget,
        1 => Rejection::EmptyPrompt,
        2 => Rejection::TooLongForModel { tokens: found, positions: there_is },
        3 => Rejection::TooLongForPool { blocks: found, pool: there_is },
        _ => return None,
    })
}

impl Fold for Arrivals {
    type Entry = ArrivalEntry;

    fn write(&self, entry: &ArrivalEntry, out: &mut Vec<u8>) {
        match entry {
            ArrivalEntry::Setting(Setting { policy, guard, replicas }) => {
                out.push(0);
                put(out, policy.name().len() as u64);
                out.extend_from_slice(policy.name().as_bytes());
                put_bits(out, guard.unwrap_or(f64::INFINITY));
                put(out, (*replicas).into());
            }
            ArrivalEntry::Rejected { arrival, rejection } => {
                write_arrival(1, arrival, out);
                write_rejection(rejection, out);
            }
            ArrivalEntry::Routed { arrival, replica, decision: None } => {
                write_arrival(2, arrival, out);
                put(out, (*replica).into());
            }
            ArrivalEntry::Routed { arrival, decision: Some(decision), .. } => {
                write_arrival(3, arrival, out);
                self.write_decision(decision, out);
            }
        }
    }

    fn read(&self, head: u8, from: &mut Reader<'_>) -> Option<ArrivalEntry> {
        Some(match head & 0x0f {
            0 => {
                let len = usize::try_from(from.number()?).ok()?;
                let policy = PolicyKind::from_name(core::str::from_utf8(from.slice(len)?).ok()?)?;
                let guard = Some(from.bits()?).filter(|&guard| guard != f64::INFINITY);
                ArrivalEntry::Setting(Setting { policy, guard, replicas: from.small()? })
            }
            1 => {
                let arrival = self.read_arrival(head, from)?;
                ArrivalEntry::Rejected { arrival, rejection: read_rejection(from)? }
            }
            2 => {
                let arrival = self.read_arrival(head, from)?;
                ArrivalEntry::Routed { arrival, replica: from.small()?, decision: None }
            }
            3 => {
                let arrival = self.read_arrival(head, from)?;
                let decision = self.read_decision(from)?;
                ArrivalEntry::Routed { arrival, replica: decision.replica, decision: Some(decision) }
            }
            _ => return None,
        })
    }

    fn apply(&mut self, at: u64, entry: &ArrivalEntry) -> Option<()> {
        match entry {
            ArrivalEntry::Setting(setting) => {
                self.setting = Some(*setting);
                self.replicas = self.replicas.max(setting.replicas);
                return Some(());
            }
            ArrivalEntry::Rejected { .. } => self.rejected += 1,
            ArrivalEntry::Routed { replica, decision, .. } => {
                if *replica >= self.replicas {
                    return None;
                }
                self.routed = Some((at, entry.clone()));
                if let Some(decision) = decision {
                    let router = decision.view.router.unwrap_or(0) as usize;
                    // Routers take turns, from the first on.
                    if router > self.loads.len() {
                        return None;
                    }
                    self.loads.resize(self.loads.len().max(router + 1), Vec::new());
                    self.loads[router].clone_from(&decision.loads);
                    self.refreshed = decision.view.refreshed.unwrap_or(self.refreshed);
                }
            }
        }
        self.arrived = self.arrived.checked_add(1)?;
        Some(())
    }

    fn size(&self) -> usize {
        let loads: usize = self.loads.iter().map(|loads| size_of_val(&loads[..])).sum();
        size_of::<Arrivals>() + loads + size_of_val(&self.loads[..]) + 8 * self.replicas as usize
    }
}

#[cfg(test)]
mod tests;
