//! Knative's autoscaler (KPA) on concurrency: requests in flight ÷ what a replica should have.
//!
//! Two windows: over the stable one it grows and shrinks; where the panic one asks for twice what is ready, it
//! panics, takes the larger of the two, and does not shrink until a stable window has passed without panic.
//! Only ready replicas count.
//!
//! Source: knative/serving `pkg/autoscaler/scaling/autoscaler.go` and `config/core/configmaps/autoscaler.yaml`.

use super::behaviour::span;
use super::{
    Bounds, Counts, Draft, Limit, ScaleDecision, ScaleReason, Scaler, ScalerKind, Series, text, whole,
};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// The constants of [`Kpa`], all from `autoscaler.yaml`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KpaConfig {
    /// Requests in flight that a replica should have: 70 % of `container-concurrency-target-default`, 100.
    pub target: f64,
    /// `stable-window`: 60 s.
    pub stable: Span,
    /// `panic-window-percentage` of that, 10 %: 6 s.
    pub panic: Span,
    /// `panic-threshold-percentage`: twice what is ready.
    pub threshold: f64,
    /// `max-scale-up-rate`: times 1000 at most.
    pub up_rate: f64,
    /// `max-scale-down-rate`: to half at least.
    pub down_rate: f64,
    /// `tick-interval`: 2 s.
    pub interval: Span,
    /// Idle for the stable window and `scale-to-zero-grace-period`, 30 s: then to zero.
    pub idle: Span,
}

impl Default for KpaConfig {
    fn default() -> Self {
        KpaConfig {
            target: 70.0,
            stable: span(60),
            panic: span(6),
            threshold: 2.0,
            up_rate: 1000.0,
            down_rate: 2.0,
            interval: span(2),
            idle: span(90),
        }
    }
}

/// See the module.
pub struct Kpa {
    config: KpaConfig,
    stable: Series,
    panic: Series,
    /// The latest time that it had a reason to panic, while it does.
    panicked: Option<Time>,
    /// The most that was wanted in this panic.
    most: u32,
}

impl Kpa {
    /// With these constants.
    pub fn new(config: KpaConfig) -> Kpa {
        let (stable, panic) = (Series::new(config.stable), Series::new(config.panic));
        Kpa { config, stable, panic, panicked: None, most: 0 }
    }
}

impl Scaler for Kpa {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Kpa
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn shortest_window(&self) -> Option<Span> {
        Some(self.config.panic)
    }

    fn idle_before_zero(&self) -> Option<Span> {
        Some(self.config.idle)
    }

    fn observe(&mut self, sample: &FleetSample) {
        let concurrency = f64::from(sample.in_flight());
        self.stable.push(sample.time(), concurrency);
        self.panic.push(sample.time(), concurrency);
    }

    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision {
        let KpaConfig { target, stable, threshold, up_rate, down_rate, .. } = self.config;
        self.stable.forget(now);
        self.panic.forget(now);
        let Some(long) = self.stable.mean() else {
            let live = counts.live();
            return Draft::stay(live, ScaleReason::NoSignal, "").decide(
                now,
                self.kind(),
                counts,
                live,
                None,
                bounds,
            );
        };
        // A panic window without a scrape in it knows what the latest one did.
        let short = self.panic.mean().or(self.stable.last()).unwrap_or(long);
        let ready = counts.serving.max(1);
        let (up, down) = (whole(up_rate * f64::from(ready)), (f64::from(ready) / down_rate).floor() as u32);
        let (by_long, by_short) = (whole(long / target), whole(short / target));
        let over = f64::from(by_short) / f64::from(ready) >= threshold;
        match self.panicked {
            _ if over => self.panicked = Some(now),
            Some(since) if now.since(since) > stable => (self.panicked, self.most) = (None, 0),
            _ => {}
        }
        let terms = [
            ("concurrency, stable window", long),
            ("concurrency, panic window", short),
            ("target", target),
            ("ready", f64::from(counts.serving)),
        ];
        let formula = |name: &str, mean: f64, wanted: u32| {
            format!("{name}: ceil({} ÷ {}) = {wanted}", text(mean), text(target))
        };
        let limited = |wanted: u32| wanted.clamp(down.min(up), up);
        let limit = |wanted: u32| match wanted {
            w if w > up => Some(Limit::UpRate),
            w if w < down => Some(Limit::DownRate),
            _ => None,
        };
        if self.panicked.is_none() {
            let draft = Draft {
                wanted: by_long,
                reason: ScaleReason::Formula,
                formula: formula("stable", long, by_long),
                terms: vec![],
            };
            let desired = limited(by_long);
            return draft.with(&terms).decide(now, self.kind(), counts, desired, limit(by_long), bounds);
        }
        let wanted = by_long.max(by_short);
        let desired = limited(wanted).max(self.most);
        let held = if self.most > limited(wanted) { Some(Limit::DownWindow) } else { limit(wanted) };
        self.most = desired;
        let (name, mean) = if by_short >= by_long { ("panic", short) } else { ("stable", long) };
        let draft =
            Draft { wanted, reason: ScaleReason::Panic, formula: formula(name, mean, wanted), terms: vec![] };
        draft.with(&terms).decide(now, self.kind(), counts, desired, held, bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::{FREE, counts, sample, seconds};
    use crate::autoscale::signals::ReplicaSample;

    fn see(kpa: &mut Kpa, second: u64, running: u32) {
        kpa.observe(&FleetSample { running, ..sample(second, 1, ReplicaSample::default()) });
    }

    #[test]
    fn by_hand_without_panic() {
        let mut kpa = Kpa::new(KpaConfig::default());
        // 12 scrapes of 130: ceil(130 ÷ 70) = 2.
        (1..=12).for_each(|n| see(&mut kpa, 5 * n, 130));
        let decision = kpa.decide(seconds(60), counts(2, 0), FREE);
        assert_eq!((decision.desired, decision.reason), (2, ScaleReason::Formula));
        assert_eq!(decision.formula, "stable: ceil(130 ÷ 70) = 2");
        // Down to 20: the mean of 60 s sinks, and of four ready ones at most half go at once.
        (13..=24).for_each(|n| see(&mut kpa, 5 * n, 20));
        let decision = kpa.decide(seconds(120), counts(4, 0), FREE);
        assert_eq!((decision.wanted, decision.desired, decision.limit), (1, 2, Some(Limit::DownRate)));
    }

    #[test]
    fn by_hand_in_panic() {
        let mut kpa = Kpa::new(KpaConfig::default());
        (1..=11).for_each(|n| see(&mut kpa, 5 * n, 70));
        see(&mut kpa, 60, 490);
        // Stable: (10 × 70 + 490) ÷ 11 after the first is a minute old; panic: (70 + 490) ÷ 2 = 280 → 4 ≥ 2 × 2.
        let decision = kpa.decide(seconds(60), counts(2, 0), FREE);
        assert_eq!((decision.desired, decision.reason), (4, ScaleReason::Panic));
        // Quiet again: in panic it does not shrink until a stable window has passed.
        (13..=23).for_each(|n| see(&mut kpa, 5 * n, 70));
        let decision = kpa.decide(seconds(116), counts(4, 0), FREE);
        assert_eq!((decision.desired, decision.limit), (4, Some(Limit::DownWindow)));
        see(&mut kpa, 120, 70);
        let decision = kpa.decide(seconds(121), counts(4, 0), FREE);
        // (11 × 70 + 490 …) the burst of second 60 is older than a minute: 70 ÷ 70 = 1, half of four at most.
        assert_eq!((decision.wanted, decision.desired, decision.reason), (1, 2, ScaleReason::Formula));
    }

    #[test]
    fn what_starts_does_not_count_and_changes_nothing() {
        let mut kpa = Kpa::new(KpaConfig::default());
        (1..=12).for_each(|n| see(&mut kpa, 5 * n, 210));
        for starting in [0, 1, 7] {
            assert_eq!(kpa.decide(seconds(60), counts(3, starting), FREE).desired, 3);
        }
    }
}
