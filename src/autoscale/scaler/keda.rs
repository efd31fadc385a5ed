//! KEDA on waiting requests: desired = ceil(requests waiting in all ÷ threshold), through an HPA.
//!
//! A sum, not a mean: replicas that do not serve yet change nothing in it, so a cold start does not compound. But
//! a queue says how much is too much, not how much there is: an empty one asks for the least, however busy
//! the fleet. KEDA itself only takes the fleet from zero and to zero.
//!
//! Source: KEDA's defaults (pollingInterval 30 s, cooldownPeriod 300 s, the latter only for going to zero) and
//! vLLM production-stack's (`helm/values.yaml`: `vllm:num_requests_waiting`, threshold 5, polling 15 s,
//! cooldown 360 s), which are the ones here.

use super::behaviour::{Behaviour, Settle, span};
use super::{Bounds, Counts, Draft, ScaleDecision, ScaleReason, Scaler, ScalerKind, text, whole};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// The constants of [`Keda`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KedaConfig {
    /// Waiting requests a replica. 5: production-stack.
    pub threshold: f64,
    /// How far the ratio may be from 1: the HPA's 0.1.
    pub tolerance: f64,
    /// The time between decisions. 15 s: production-stack's polling, and the HPA's own period.
    pub interval: Span,
    /// How long nothing may have waited or run before it goes to zero. 360 s: production-stack.
    pub cooldown: Span,
    /// The HPA's windows and rates.
    pub behaviour: Behaviour,
}

impl Default for KedaConfig {
    fn default() -> Self {
        KedaConfig {
            threshold: 5.0,
            tolerance: 0.1,
            interval: span(15),
            cooldown: span(360),
            behaviour: Behaviour::default(),
        }
    }
}

/// See the module.
pub struct Keda {
    config: KedaConfig,
    settle: Settle,
    waiting: Option<u32>,
}

impl Keda {
    /// With these constants.
    pub fn new(config: KedaConfig) -> Keda {
        Keda { config, settle: Settle::new(config.behaviour), waiting: None }
    }

    fn draft(&self, counts: Counts) -> Draft {
        let live = counts.live();
        let Some(waiting) = self.waiting.map(f64::from) else {
            return Draft::stay(live, ScaleReason::NoSignal, "");
        };
        let threshold = self.config.threshold;
        let wanted = whole(waiting / threshold);
        let formula = format!("ceil({} waiting ÷ {}) = {wanted}", text(waiting), text(threshold));
        let ratio = waiting / (threshold * f64::from(live.max(1)));
        let terms = [("requests waiting", waiting), ("threshold", threshold), ("ratio", ratio)];
        if live > 0 && (ratio - 1.0).abs() <= self.config.tolerance {
            return Draft::stay(live, ScaleReason::Tolerated, formula).with(&terms);
        }
        Draft::of(wanted, formula).with(&terms)
    }
}

impl Scaler for Keda {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Keda
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn idle_before_zero(&self) -> Option<Span> {
        Some(self.config.cooldown)
    }

    fn observe(&mut self, sample: &FleetSample) {
        self.waiting = Some(sample.waiting);
    }

    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision {
        self.draft(counts).settled(now, self.kind(), counts, &mut self.settle, bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::{FREE, counts, sample, seconds};
    use crate::autoscale::signals::{FleetSample, ReplicaSample};

    fn path(waiting: &[u32]) -> Vec<u32> {
        let mut keda = Keda::new(KedaConfig::default());
        let (mut live, mut path) = (2, vec![]);
        for (at, &waiting) in waiting.iter().enumerate() {
            let now = 15 * (at as u64 + 1);
            // The new ones never become ready: only the sum counts.
            let empty = sample(now, 2, ReplicaSample::default());
            keda.observe(&FleetSample { waiting, ..empty });
            live = keda.decide(seconds(now), counts(live.min(2), live.saturating_sub(2)), FREE).desired;
            path.push(live);
        }
        path
    }

    #[test]
    fn by_hand() {
        // ÷ 5: 2; 2.4; 6.2; and 30, of which 7 more may be added at once.
        assert_eq!(path(&[10, 12, 31, 150]), [2, 3, 7, 14]);
        // 7 wanted, 6 allowed at once, and 6.2 is near enough to 6.
        assert_eq!(path(&[31, 31, 31, 31]), [6, 6, 6, 6], "replicas on their way do not compound");
    }

    #[test]
    fn near_enough_is_near_enough() {
        let mut keda = Keda::new(KedaConfig::default());
        keda.observe(&FleetSample { waiting: 21, ..sample(5, 4, ReplicaSample::default()) });
        let decision = keda.decide(seconds(15), counts(4, 0), FREE);
        assert_eq!((decision.desired, decision.reason), (4, ScaleReason::Tolerated), "21 ÷ (5 × 4) = 1.05");
    }

    #[test]
    fn an_empty_queue_asks_for_the_least_after_five_minutes() {
        let mut series = vec![30];
        series.extend([0; 22]);
        let path = path(&series);
        assert_eq!((path[0], path[19], path[20]), (6, 6, 1));
    }

    #[test]
    fn it_explains_itself() {
        let mut keda = Keda::new(KedaConfig::default());
        keda.observe(&FleetSample { waiting: 24, ..sample(5, 3, ReplicaSample::default()) });
        let decision = keda.decide(seconds(15), counts(3, 0), FREE);
        assert_eq!(decision.formula, "ceil(24 waiting ÷ 5) = 5");
        assert_eq!((decision.wanted, decision.desired, decision.limit), (5, 5, None));
    }
}
