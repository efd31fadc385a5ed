//! What an autoscaled run was worth.
//!
//! Two figures need to know what is *needed*: in each stretch of ten seconds, ceil(arrivals a second ÷ what a
//! replica serves within the objectives). A stretch is *short* where arrivals are more than the replicas
//! that served in it (on the average over the stretch) can take.

use serde::Serialize;

use super::lab::{BUCKET, Lab};
use super::life::{Change, End, Phase};
use super::moved::{FirstMoves, first_moves};
use super::run::Run;
use super::scaler::ScalerKind;
use crate::policy::PolicyKind;
use crate::sim::{Quantiles, Record};
use crate::units::{Span, Time};

/// The figures of one run. Times are in seconds, fractions 0–1; what is undefined is null.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Who decided.
    pub scaler: ScalerKind,
    /// Who routed.
    pub policy: &'static str,
    /// Requests that arrived.
    pub arrived: usize,
    /// Finished.
    pub completed: usize,
    /// Could never be served.
    pub rejected: usize,
    /// Not finished when the run was given up.
    pub unfinished: usize,
    /// Met both objectives.
    pub good: usize,
    /// Those ÷ all that arrived.
    pub goodput_fraction: Option<f64>,
    /// Time to first token.
    pub ttft: Quantiles,
    /// Inter-token latency.
    pub itl: Quantiles,
    /// Prompt tokens found in a cache ÷ prompt tokens.
    pub reuse: Option<f64>,
    /// When the run ended.
    pub ended: f64,
    /// Requests a second that one replica serves, with 95 % within the objectives.
    pub capacity: f64,
    /// From an order to a replica that serves.
    pub cold_start: f64,
    /// What being late cost.
    pub overload: Overload,
    /// What it was provided with, and for how much.
    pub spent: Spent,
    /// What the scaler did.
    pub scaling: Scaling,
    /// What removing replicas cost.
    pub removal: Removal,
    /// Capacity to spare that would have been enough.
    pub headroom: Headroom,
    /// Which signal moved first.
    pub first_moves: FirstMoves,
}

/// What being late cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overload {
    /// Requests outside an objective.
    pub bad: usize,
    /// Of those, the ones that arrived while replicas were on their way or too few served.
    pub bad_while_waiting: usize,
    /// The area of overload: requests that arrived beyond what the replicas that served could take.
    pub area: f64,
    /// Seconds in which too few served.
    pub short: f64,
    /// The longest of them in a row: how late capacity came.
    pub late_by: f64,
}

/// What a run was provided with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spent {
    /// From order to end, of all replicas together, in replica-seconds.
    pub replica_seconds: f64,
    /// The part in which they served.
    pub serving_seconds: f64,
    /// The first, at the price.
    pub cost: f64,
    /// That for a thousand requests that met both objectives.
    pub cost_per_thousand_good: Option<f64>,
    /// What those needed by the arrivals would have spent serving.
    pub needed_seconds: f64,
}

/// What the scaler did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// Decisions that changed the number.
    pub changes: usize,
    /// Changes of direction: up after down, or down after up.
    pub oscillations: usize,
    /// The most that it asked for.
    pub most_desired: u32,
    /// The most that were needed.
    pub most_needed: u32,
    /// Replicas that were ordered.
    pub ordered: usize,
    /// Of those, ordered for nothing: cancelled before they served.
    pub cancelled: usize,
}

/// What removing replicas cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Removal {
    /// Replicas that had served and are gone.
    pub removed: usize,
    /// Of those, by failure or because their machine was taken away.
    pub failed: usize,
    /// Tokens in their caches when they went.
    pub cached_tokens_lost: u64,
    /// Prompt tokens that later requests had to compute because of it.
    pub extra_prefill_tokens: u64,
    /// Requests that had to begin anew elsewhere, or wait at the gateway.
    pub rerouted: usize,
    /// Tokens that were computed of them and lost.
    pub rerouted_tokens: u64,
    /// Tokens computed again after a preemption or a re-routing.
    pub recomputed_tokens: u64,
    /// Times a running request lost its blocks.
    pub preemptions: u64,
}

/// Capacity to spare that would have been enough: rise × cold start ÷ capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headroom {
    /// The steepest rise of arrivals over a cold start, in requests a second, each second.
    pub rise: f64,
    /// rise × cold start ÷ capacity, in replicas.
    pub replicas: f64,
    /// The most replicas that were missing at any time of the run, on top of those that it had.
    pub missing: u32,
}

impl Report {
    /// Of a run of a lab.
    pub fn new(lab: &Lab, scaler: ScalerKind, policy: PolicyKind, run: &Run) -> Report {
        let objectives = lab.config.objectives();
        let summary = run.recorder.summary(&objectives, &lab.trace.tenants);
        let cold_start = lab.settings.lifecycle(&lab.config).start.total();
        let stretches = stretches(lab, run);
        let hours = run.paid.seconds() / 3600.0;
        let cost = hours * lab.settings.price;
        let seconds = BUCKET.seconds();
        let removed = run.bills.len();
        Report {
            scaler,
            policy: policy.name(),
            arrived: summary.arrived,
            completed: summary.completed,
            rejected: summary.rejected,
            unfinished: run.unfinished,
            good: summary.good,
            goodput_fraction: summary.goodput_fraction,
            ttft: summary.ttft,
            itl: summary.itl,
            reuse: summary.reuse,
            ended: run.ended.seconds(),
            capacity: lab.capacity,
            cold_start: cold_start.seconds(),
            overload: overload(lab, run, &stretches),
            spent: Spent {
                replica_seconds: run.paid.seconds(),
                serving_seconds: run.served.seconds(),
                cost,
                cost_per_thousand_good: (summary.good > 0).then(|| 1000.0 * cost / summary.good as f64),
                needed_seconds: stretches.iter().map(|s| f64::from(s.needed) * seconds).sum(),
            },
            scaling: scaling(run, &stretches),
            removal: Removal {
                removed,
                failed: run.bills.iter().filter(|b| matches!(b.end, End::Failed | End::Preempted)).count(),
                cached_tokens_lost: run.bills.iter().map(|b| b.cached_tokens).sum(),
                extra_prefill_tokens: run.bills.iter().map(|b| b.extra_tokens).sum(),
                rerouted: run.reroutes.len(),
                rerouted_tokens: run.reroutes.iter().map(|r| u64::from(r.lost_tokens)).sum(),
                recomputed_tokens: summary.recomputed_tokens,
                preemptions: summary.preemptions,
            },
            headroom: headroom(lab, &stretches, cold_start),
            first_moves: first_moves(&run.samples, &objectives, lab.capacity),
        }
    }
}

/// Ten seconds of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Arrivals a second.
    pub rate: f64,
    /// Replicas that they need.
    pub needed: u32,
    /// Replicas that served, on the average.
    pub served: f64,
}

/// The stretches of a run, one after the other.
pub fn stretches(lab: &Lab, run: &Run) -> Vec<Stretch> {
    let arrivals = lab.arrivals();
    let served = serving(&run.changes, arrivals.len());
    arrivals
        .iter()
        .zip(served)
        .map(|(&count, served)| {
            let rate = f64::from(count) / BUCKET.seconds();
            Stretch { rate, needed: (rate / lab.capacity).ceil() as u32, served }
        })
        .collect()
}

/// How many replicas served in each stretch, on the average.
fn serving(changes: &[Change], stretches: usize) -> Vec<f64> {
    let mut served = vec![0u64; stretches];
    let end = stretches as u64 * BUCKET.0;
    let mut count = |from: u64, until: u64| {
        let until = until.min(end);
        let mut at = from;
        while at < until {
            let next = ((at / BUCKET.0 + 1) * BUCKET.0).min(until);
            served[(at / BUCKET.0) as usize] += next - at;
            at = next;
        }
    };
    let mut open: Vec<(u32, u64)> = Vec::new();
    for change in changes {
        if change.to == Phase::Serving {
            open.push((change.replica, change.at));
        } else if let Some(at) = open.iter().position(|(id, _)| *id == change.replica) {
            count(open.remove(at).1, change.at);
        }
    }
    open.iter().for_each(|(_, from)| count(*from, end));
    served.into_iter().map(|picos| picos as f64 / BUCKET.0 as f64).collect()
}

fn overload(lab: &Lab, run: &Run, stretches: &[Stretch]) -> Overload {
    let objectives = lab.config.objectives();
    let short = |s: &Stretch| s.rate > lab.capacity * s.served;
    let waits = waiting(&run.changes, run.ended);
    let awaited = |record: &&Record| {
        let at = record.arrival;
        stretches.get((at / BUCKET.0) as usize).is_some_and(short)
            || waits.iter().any(|(from, until)| (*from..*until).contains(&at))
    };
    let bad: Vec<&Record> = run.recorder.records().filter(|record| !objectives.met_by(record)).collect();
    let seconds = BUCKET.seconds();
    let longest =
        stretches.chunk_by(|a, b| short(a) == short(b)).filter(|run| short(&run[0])).map(<[_]>::len).max();
    Overload {
        bad_while_waiting: bad.iter().filter(|record| awaited(record)).count(),
        bad: bad.len(),
        area: stretches.iter().map(|s| (s.rate - lab.capacity * s.served).max(0.0) * seconds).sum(),
        short: stretches.iter().filter(|s| short(s)).count() as f64 * seconds,
        late_by: longest.unwrap_or(0) as f64 * seconds,
    }
}

/// The times in which a replica was on its way that came to serve.
fn waiting(changes: &[Change], ended: Time) -> Vec<(u64, u64)> {
    let mut waits: Vec<(u64, u64)> = Vec::new();
    let mut open: Vec<(u32, u64)> = Vec::new();
    for change in changes {
        let known = open.iter().position(|(id, _)| *id == change.replica);
        match (change.to, known) {
            (Phase::Serving | Phase::Warm, Some(at)) => waits.push((open.remove(at).1, change.at)),
            (Phase::Gone, Some(at)) => drop(open.remove(at)),
            (phase, None) if phase.starts() => open.push((change.replica, change.at)),
            _ => {}
        }
    }
    waits.extend(open.iter().map(|(_, from)| (*from, ended.0)));
    waits
}

fn scaling(run: &Run, stretches: &[Stretch]) -> Scaling {
    let steps: Vec<i64> = run
        .decisions
        .iter()
        .map(|d| i64::from(d.desired) - i64::from(d.counts.live()))
        .filter(|step| *step != 0)
        .collect();
    let turns = steps.windows(2).filter(|pair| pair[0].signum() != pair[1].signum()).count();
    let mut ordered: Vec<u32> = run.changes.iter().filter(|c| c.at > 0).map(|c| c.replica).collect();
    ordered.sort_unstable();
    ordered.dedup();
    let at_first: Vec<u32> = run.changes.iter().filter(|c| c.at == 0).map(|c| c.replica).collect();
    ordered.retain(|id| !at_first.contains(id));
    let cancelled =
        run.changes.iter().filter(|c| c.end == Some(End::Cancelled) && c.to == Phase::Gone).count();
    Scaling {
        changes: steps.len(),
        oscillations: turns,
        most_desired: run.decisions.iter().map(|d| d.desired).max().unwrap_or(0),
        most_needed: stretches.iter().map(|s| s.needed).max().unwrap_or(0),
        ordered: ordered.len(),
        cancelled,
    }
}

fn headroom(lab: &Lab, stretches: &[Stretch], cold_start: Span) -> Headroom {
    let lead = (cold_start.0.div_ceil(BUCKET.0) as usize).max(1);
    let pairs = stretches.iter().zip(stretches.iter().skip(lead));
    let most = pairs.map(|(now, then)| then.rate - now.rate).fold(0.0, f64::max);
    let rise = most / (lead as f64 * BUCKET.seconds());
    let missing = stretches.iter().map(|s| (f64::from(s.needed) - s.served).ceil().max(0.0) as u32).max();
    Headroom { rise, replicas: rise * cold_start.seconds() / lab.capacity, missing: missing.unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(second: u64, replica: u32, to: Phase) -> Change {
        Change { at: second * 1_000_000_000_000, replica, to, end: None }
    }

    #[test]
    fn who_served_when_is_counted_by_the_stretch() {
        let changes = [
            change(0, 0, Phase::Serving),
            change(3, 1, Phase::Image),
            change(15, 1, Phase::Serving),
            change(22, 0, Phase::Draining),
            change(24, 0, Phase::Gone),
        ];
        assert_eq!(serving(&changes, 4), [1.0, 1.5, 1.2, 1.0]);
        let end = Time(40_000_000_000_000);
        assert_eq!(waiting(&changes, end), [(3_000_000_000_000, 15_000_000_000_000)]);
        assert_eq!(waiting(&changes[..2], end), [(3_000_000_000_000, end.0)]);
    }
}
