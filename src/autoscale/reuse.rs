//! What a change of n does to prefix reuse, by how prefixes are mapped to replicas.
//!
//! Modulo hashing moves almost every prefix, consistent and rendezvous hashing those that they must; what moves
//! is computed anew where it goes. [`moved`] counts prefixes; [`change`] runs a trace and shows reuse before,
//! and how it collapses and recovers.

use serde::Serialize;

use crate::experiment::priced_replica;
use crate::fleet::{Devices, Fleet};
use crate::params::Config;
use crate::policy::{PolicyKind, PolicySettings, ReplicaLoad, mix};
use crate::sim::{Outcome, Recorder, Simulation, TooLong};
use crate::trace::Trace;
use crate::units::Time;

/// The part of `prefixes` prefixes that belong to another replica with `to` replicas than with `from`.
pub fn moved(policy: PolicyKind, prefixes: u32, from: u32, to: u32) -> f64 {
    let settings = PolicySettings { prefix_length: 2, ..PolicySettings::default() };
    let owners = |n: u32| -> Vec<u32> {
        let mut policy = policy.build(&settings);
        let ids: Vec<u32> = (0..n).collect();
        policy.candidates(&ids);
        let fleet = vec![ReplicaLoad::default(); n as usize];
        let prefix = |p: u32| [(mix(p.into()) >> 33) as u32, p];
        (0..prefixes).map(|p| policy.select(&prefix(p), &fleet).replica).collect()
    };
    let (before, after) = (owners(from), owners(to));
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    moved as f64 / f64::from(prefixes.max(1))
}

/// Reuse around a change of n.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Around {
    /// The mapping.
    pub policy: &'static str,
    /// Replicas before.
    pub from: u32,
    /// Replicas after.
    pub to: u32,
    /// The part of the trace's prefixes that moved.
    pub moved: f64,
    /// Reuse of the requests that arrived in the stretch before the change, null where none did.
    pub before: Option<f64>,
    /// The lowest of any stretch after it.
    pub lowest: Option<f64>,
    /// Stretches until reuse was within a twentieth of what it was before; null: it never was.
    pub recovered_after: Option<usize>,
    /// Reuse by stretch, from the beginning of the run.
    pub stretches: Vec<Option<f64>>,
}

/// Runs a trace on `from` replicas, of which there are `to` from second `at` on: those beyond are drained, or new
/// ones join cold. Reuse is told by stretches of so many seconds.
pub fn change(
    config: &Config,
    trace: &Trace,
    policy: PolicyKind,
    (from, to): (u32, u32),
    at: f64,
    stretch: f64,
) -> Result<Around, TooLong> {
    let settings = config.policy_settings_for(trace);
    let replica = |id| priced_replica(config, id);
    let fleet = Fleet::new((0..from).map(replica).collect(), policy.build(&settings), Devices::Separate);
    let mut recorder = Recorder::new(from.max(to) as usize, config.pool_blocks() as usize);
    let clock = Box::new(crate::sim::Modelled(config.price()));
    let mut simulation = Simulation::new(fleet, trace, config.sampling(), clock);
    let when = Time::from_seconds(at).unwrap_or(Time(u64::MAX));
    let mut changed = false;
    while let Some(next) = simulation.next_instant() {
        if !changed && next >= when {
            simulation.alter(|fleet| fleet.scale(to as usize, replica));
            changed = true;
        }
        simulation.advance(|event| recorder.observe(&event))?;
    }
    let count = |last: usize| vec![(0u64, 0u64); last + 1];
    let place = |arrival: u64| (Time(arrival).seconds() / stretch) as usize;
    let mut sums = count(trace.requests.last().map_or(0, |r| place(r.arrival.0)));
    for record in recorder.records() {
        if let Outcome::Served { admitted: Some(_), cached, .. } = record.outcome {
            let sum = &mut sums[place(record.arrival)];
            *sum = (sum.0 + u64::from(record.prompt), sum.1 + u64::from(cached));
        }
    }
    let stretches: Vec<Option<f64>> = sums
        .into_iter()
        .map(|(prompt, cached)| (prompt > 0).then(|| cached as f64 / prompt as f64))
        .collect();
    let split = ((at / stretch) as usize).min(stretches.len());
    let before = split.checked_sub(1).and_then(|last| stretches[last]);
    let after = &stretches[split..];
    let near = |reuse: &Option<f64>| reuse.zip(before).is_some_and(|(now, then)| now >= 0.95 * then);
    Ok(Around {
        policy: policy.name(),
        from,
        to,
        moved: moved(policy, 10_000, from, to),
        before,
        lowest: after.iter().copied().flatten().reduce(f64::min),
        recovered_after: after.iter().position(near),
        stretches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modulo_moves_almost_all_and_the_others_what_they_must() {
        for (from, to) in [(4, 5), (8, 9), (16, 17)] {
            let must = f64::from(to - from) / f64::from(to);
            let modulo = moved(PolicyKind::ModuloHash, 20_000, from, to);
            // Of from · to residues, those below `from` stay: 1 of `to`.
            assert!((modulo - (1.0 - 1.0 / f64::from(to))).abs() < 0.02, "{modulo}");
            for policy in [PolicyKind::ConsistentHash, PolicyKind::RendezvousHash] {
                let moved = moved(policy, 20_000, from, to);
                assert!((moved - must).abs() < 0.35 * must, "{}: {moved}, not about {must}", policy.name());
            }
        }
        assert_eq!(moved(PolicyKind::RendezvousHash, 100, 6, 6), 0.0);
    }
}
