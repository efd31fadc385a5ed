//! Kubernetes' Horizontal Pod Autoscaler on compute utilisation: the obvious signal, and the wrong one.
//!
//! desired = ceil(replicas × mean utilisation ÷ target), nothing where the ratio is within 10 % of 1.
//! Decoding is bound by memory: a replica whose queue and KV pool are full computes at a fraction of its peak.
//!
//! Source: the algorithm as documented (kubernetes.io, "Horizontal Pod Autoscaling"), with
//! `replica_calculator.go`'s treatment of pods that are not ready: counted as idle where the rest ask for more.

use super::behaviour::{Behaviour, Settle, span};
use super::{Bounds, Counts, Draft, Pending, ScaleDecision, ScaleReason, Scaler, ScalerKind, text, whole};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// The constants of [`Hpa`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HpaConfig {
    /// Mean operations ÷ peak that is aimed at. 0.8: KServe's default for an HPA (there of the CPU).
    pub target: f64,
    /// How far the ratio may be from 1. 0.1: `--horizontal-pod-autoscaler-tolerance`.
    pub tolerance: f64,
    /// The time between decisions. 15 s: `--horizontal-pod-autoscaler-sync-period`.
    pub interval: Span,
    /// Windows and rates.
    pub behaviour: Behaviour,
    /// What is done about replicas that do not serve yet.
    pub pending: Pending,
}

impl Default for HpaConfig {
    fn default() -> Self {
        HpaConfig {
            target: 0.8,
            tolerance: 0.1,
            interval: span(15),
            behaviour: Behaviour::default(),
            pending: Pending::Counted,
        }
    }
}

/// See the module.
pub struct Hpa {
    config: HpaConfig,
    settle: Settle,
    /// Mean compute utilisation at the latest scrape.
    compute: Option<f64>,
}

impl Hpa {
    /// With these constants.
    pub fn new(config: HpaConfig) -> Hpa {
        Hpa { config, settle: Settle::new(config.behaviour), compute: None }
    }

    fn draft(&self, counts: Counts) -> Draft {
        let (live, target) = (counts.live(), self.config.target);
        let Some(mean) = self.compute.filter(|_| counts.serving > 0) else {
            return Draft::stay(live, ScaleReason::NoSignal, "");
        };
        let tolerated = |ratio: f64| (ratio - 1.0).abs() <= self.config.tolerance;
        let ratio = mean / target;
        let terms = [("mean compute utilisation", mean), ("target", target), ("ratio", ratio)];
        let formula = |n: u32, mean: f64, wanted: u32| {
            format!("ceil({n} × {} ÷ {}) = {wanted}", text(mean), text(target))
        };
        if counts.starting == 0 || self.config.pending == Pending::Ignored {
            // Ignored: what those that serve need, times all that were asked for.
            let wanted = whole(f64::from(live) * ratio);
            let why = if tolerated(ratio) { ScaleReason::Tolerated } else { ScaleReason::Formula };
            let wanted = if tolerated(ratio) { live } else { wanted };
            return Draft { wanted, reason: why, formula: formula(live, mean, wanted), terms: vec![] }
                .with(&terms);
        }
        if ratio <= 1.0 {
            // Those that serve have too little to do: only they are counted.
            let wanted = whole(f64::from(counts.serving) * ratio);
            let why = if tolerated(ratio) { ScaleReason::Tolerated } else { ScaleReason::Formula };
            let wanted = if tolerated(ratio) { live } else { wanted };
            return Draft {
                wanted,
                reason: why,
                formula: formula(counts.serving, mean, wanted),
                terms: vec![],
            }
            .with(&terms);
        }
        let spread = mean * f64::from(counts.serving) / f64::from(live);
        let wanted = whole(f64::from(live) * spread / target);
        // A change of direction, or one within the tolerance, is no reason to act.
        if tolerated(spread / target) || spread < target || wanted < live {
            return Draft::stay(live, ScaleReason::Tolerated, formula(live, spread, wanted)).with(&terms);
        }
        Draft::of(wanted, formula(live, spread, wanted))
            .with(&terms)
            .with(&[("with those that start as idle", spread)])
    }
}

impl Scaler for Hpa {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Hpa
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn observe(&mut self, sample: &FleetSample) {
        self.compute = sample.mean.and_then(|mean| mean.compute);
    }

    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision {
        self.draft(counts).settled(now, self.kind(), counts, &mut self.settle, bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::{FREE, counts, sample, seconds};
    use crate::autoscale::signals::ReplicaSample;

    fn used(compute: f64) -> ReplicaSample {
        ReplicaSample { compute: Some(compute), ..ReplicaSample::default() }
    }

    /// What it comes to at each look, 15 s apart, where replicas that are asked for serve after `looks`.
    fn path(pending: Pending, series: &[f64], looks: usize) -> Vec<u32> {
        let mut hpa = Hpa::new(HpaConfig { pending, ..HpaConfig::default() });
        let (mut live, mut path) = (4, vec![]);
        for (at, &compute) in series.iter().enumerate() {
            let serving = if at >= looks { path[at - looks] } else { 4 };
            let now = 15 * (at as u64 + 1);
            hpa.observe(&sample(now, serving, used(compute)));
            live = hpa.decide(seconds(now), counts(serving, live - serving), FREE).desired;
            path.push(live);
        }
        path
    }

    #[test]
    fn by_hand() {
        // 4 × 0.84 ÷ 0.8 = 4.2, within a tenth of 4; 4 × 0.9 ÷ 0.8 = 4.5; 5 × 0.96 ÷ 0.8 = 6.
        assert_eq!(path(Pending::Counted, &[0.84, 0.9, 0.96], 1), [4, 5, 6]);
        // Less is wanted at once and done after five minutes: the most of the last 300 s.
        let mut series = vec![1.2];
        series.extend([0.2; 22]);
        let path = path(Pending::Counted, &series, 1);
        // 4 × 1.2 ÷ 0.8 = 6; then 6 × 0.2 ÷ 0.8 = 1.5 → 2 wanted, from second 30 on; the 6 is 300 s old at 315.
        assert_eq!((path[0], path[19], path[20], path[21]), (6, 6, 2, 2));
    }

    #[test]
    fn a_cold_start_of_four_looks_compounds_where_pending_replicas_are_forgotten() {
        // Those that serve stay at 1.2 of their target of 0.8 as long as nobody helps them.
        let asked = path(Pending::Counted, &[1.2; 4], 9);
        assert_eq!(asked, [6, 6, 6, 6], "6 × (4 × 1.2 ÷ 6) ÷ 0.8 = 6: what was asked for is enough");
        let asked = path(Pending::Ignored, &[1.2; 4], 9);
        assert_eq!(asked, [6, 9, 14, 21], "times 1.5 at every look");
    }

    #[test]
    fn it_explains_itself() {
        let mut hpa = Hpa::new(HpaConfig::default());
        let none = hpa.decide(seconds(15), counts(2, 0), FREE);
        assert_eq!((none.desired, none.reason), (2, ScaleReason::NoSignal));
        hpa.observe(&sample(20, 2, used(1.6)));
        let decision = hpa.decide(seconds(30), counts(2, 0), Bounds { min: 1, max: 3 });
        assert_eq!((decision.wanted, decision.desired, decision.reason), (4, 3, ScaleReason::Formula));
        assert_eq!(decision.formula, "ceil(2 × 1.6 ÷ 0.8) = 4");
        assert_eq!(decision.terms[2], super::super::Term { name: "ratio", value: 2.0 });
    }
}
