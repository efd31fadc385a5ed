//! AIBrix's APA: ceil(replicas × mean use ÷ target), where that is more than 10 % off, within half and double.
//!
//! The metric is whatever the engine reports; the share of the KV pool in use is the usual one.
//!
//! Source: vllm-project/aibrix `pkg/controller/podautoscaler` (`algorithm/apa.go`, `context.go`): fluctuation
//! tolerances 0.1, rates 2, cooldown up 0 s, down 300 s, metric window 180 s; the controller looks every 10 s
//! (from memory, like the sample's target of half the KV pool).

use super::behaviour::span;
use super::{
    Bounds, Counts, Draft, Limit, Pending, ScaleDecision, ScaleReason, Scaler, ScalerKind, Series, text,
    whole,
};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// What it looks at, as a mean over replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApaMetric {
    /// Blocks held ÷ pool.
    #[default]
    Kv,
    /// Requests in flight.
    Concurrency,
}

/// The constants of [`Apa`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApaConfig {
    /// What it looks at.
    pub metric: ApaMetric,
    /// The mean that is aimed at.
    pub target: f64,
    /// How far the ratio may be above 1.
    pub up_tolerance: f64,
    /// How far it may be below.
    pub down_tolerance: f64,
    /// It grows at most so many times.
    pub up_rate: f64,
    /// It shrinks at most to one of so many.
    pub down_rate: f64,
    /// The window of the mean.
    pub window: Span,
    /// It does not shrink so soon after its last change.
    pub down_cooldown: Span,
    /// The time between decisions.
    pub interval: Span,
    /// Whether replicas that start are multiplied too.
    pub pending: Pending,
}

impl Default for ApaConfig {
    fn default() -> Self {
        ApaConfig {
            metric: ApaMetric::Kv,
            target: 0.5,
            up_tolerance: 0.1,
            down_tolerance: 0.1,
            up_rate: 2.0,
            down_rate: 2.0,
            window: span(180),
            down_cooldown: span(300),
            interval: span(10),
            pending: Pending::Counted,
        }
    }
}

/// See the module.
pub struct Apa {
    config: ApaConfig,
    series: Series,
    changed: Option<Time>,
}

impl Apa {
    /// With these constants.
    pub fn new(config: ApaConfig) -> Apa {
        Apa { config, series: Series::new(config.window), changed: None }
    }

    fn draft(&self, counts: Counts) -> (Draft, u32, Option<Limit>) {
        let ApaConfig { target, up_tolerance, down_tolerance, up_rate, down_rate, .. } = self.config;
        let live = counts.live();
        let Some(mean) = self.series.mean().filter(|_| counts.serving > 0) else {
            return (Draft::stay(live, ScaleReason::NoSignal, ""), live, None);
        };
        // The metric is a mean over replicas that report; those that start report nothing.
        let counted = if self.config.pending == Pending::Ignored { live } else { counts.serving };
        let ratio = mean / target;
        let wanted = whole(f64::from(counted) * ratio);
        let formula = format!("ceil({counted} × {} ÷ {}) = {wanted}", text(mean), text(target));
        let terms = [("mean use", mean), ("target", target), ("ratio", ratio)];
        if (1.0 - down_tolerance..=1.0 + up_tolerance).contains(&ratio) {
            return (Draft::stay(live, ScaleReason::Tolerated, formula).with(&terms), live, None);
        }
        let (up, down) =
            (whole(f64::from(counted) * up_rate), (f64::from(counted) / down_rate).floor() as u32);
        let (desired, limit) = match wanted {
            w if w > up => (up, Some(Limit::UpRate)),
            w if w < down => (down, Some(Limit::DownRate)),
            w => (w, None),
        };
        // What was asked for stays asked for while those that serve have too much.
        let desired = if ratio > 1.0 { desired.max(live) } else { desired };
        (Draft::of(wanted, formula).with(&terms), desired, limit)
    }
}

impl Scaler for Apa {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Apa
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn shortest_window(&self) -> Option<Span> {
        Some(self.config.window)
    }

    fn observe(&mut self, sample: &FleetSample) {
        let value = sample.mean.map(|mean| match self.config.metric {
            ApaMetric::Kv => mean.kv,
            ApaMetric::Concurrency => f64::from(sample.in_flight()) / f64::from(sample.serving.max(1)),
        });
        if let Some(value) = value {
            self.series.push(sample.time(), value);
        }
    }

    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision {
        self.series.forget(now);
        let live = counts.live();
        let (draft, mut desired, mut limit) = self.draft(counts);
        let recent = self.changed.is_some_and(|at| now.since(at) < self.config.down_cooldown);
        if desired < live && recent {
            (desired, limit) = (live, Some(Limit::Cooldown));
        }
        let decision = draft.decide(now, self.kind(), counts, desired, limit, bounds);
        if decision.desired != live {
            self.changed = Some(now);
        }
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::{FREE, counts, sample, seconds};
    use crate::autoscale::signals::ReplicaSample;

    fn see(apa: &mut Apa, second: u64, kv: f64) {
        apa.observe(&sample(second, 4, ReplicaSample { kv, ..ReplicaSample::default() }));
    }

    #[test]
    fn by_hand() {
        let mut apa = Apa::new(ApaConfig::default());
        see(&mut apa, 10, 0.54);
        let decision = apa.decide(seconds(10), counts(4, 0), FREE);
        assert_eq!((decision.desired, decision.reason), (4, ScaleReason::Tolerated), "0.54 ÷ 0.5 = 1.08");
        see(&mut apa, 20, 0.70);
        // The mean of both, 0.62: 4 × 1.24 = 4.96.
        let decision = apa.decide(seconds(20), counts(4, 0), FREE);
        assert_eq!((decision.desired, decision.formula.as_str()), (5, "ceil(4 × 0.62 ÷ 0.5) = 5"));
        // One of them starts: those four that serve still need five.
        assert_eq!(apa.decide(seconds(30), counts(4, 1), FREE).desired, 5);
        // All of it in the last 180 s: 0.1. Wanted is ceil(5 × 0.2) = 1, half of five is two, and it is too soon.
        (20..=37).for_each(|n| see(&mut apa, 10 * n, 0.1));
        let decision = apa.decide(seconds(319), counts(5, 0), FREE);
        assert_eq!((decision.wanted, decision.desired, decision.limit), (1, 5, Some(Limit::Cooldown)));
        let decision = apa.decide(seconds(320), counts(5, 0), FREE);
        assert_eq!((decision.desired, decision.limit), (2, Some(Limit::DownRate)));
    }

    #[test]
    fn forgotten_replicas_compound() {
        let mut apa = Apa::new(ApaConfig { pending: Pending::Ignored, ..ApaConfig::default() });
        see(&mut apa, 10, 0.75);
        let mut live = 4;
        let path = [10, 20, 30].map(|now| {
            live = apa.decide(seconds(now), counts(4, live - 4), FREE).desired;
            live
        });
        assert_eq!(path, [6, 9, 14]);
    }
}
