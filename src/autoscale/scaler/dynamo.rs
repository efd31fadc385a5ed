//! NVIDIA Dynamo's planner, its load loop: one more if any worker is beyond a threshold, one fewer if all are
//! far below and one fewer would stay so: load × N ÷ (N − 1).
//!
//! Source: ai-dynamo/dynamo `planner/core`, version 1.6.1: a look every 5 s; up at queued prefill ≥ 1.0 × the
//! context length or KV > 1.0 ("throughput"; "latency": 0.1 and 0.4), down below 0.1 and 0.6 (0 and 0.1);
//! shrinking must leave predicted loads within 80 % (`sensitivity`) of the thresholds. KV counts what waits too
//! here, or it could never be above 1.

use super::behaviour::span;
use super::{Bounds, Counts, Draft, Pending, ScaleDecision, ScaleReason, Scaler, ScalerKind, text};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// The constants of [`Dynamo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamoConfig {
    /// Tokens that a sequence may have: what queued prefill is measured in.
    pub context: f64,
    /// Queued prefill at which there are too few.
    pub prefill_up: f64,
    /// KV demand above which there are too few.
    pub kv_up: f64,
    /// Queued prefill below which there are too many.
    pub prefill_down: f64,
    /// KV demand below which there are too many.
    pub kv_down: f64,
    /// The part of the thresholds that one fewer must stay within.
    pub sensitivity: f64,
    /// The time between looks.
    pub interval: Span,
    /// Whether it waits for replicas that start.
    pub pending: Pending,
}

impl Default for DynamoConfig {
    fn default() -> Self {
        DynamoConfig {
            context: 131_072.0,
            prefill_up: 1.0,
            kv_up: 1.0,
            prefill_down: 0.1,
            kv_down: 0.6,
            sensitivity: 0.8,
            interval: span(5),
            pending: Pending::Counted,
        }
    }
}

impl DynamoConfig {
    /// The thresholds of its latency mode.
    pub fn latency() -> DynamoConfig {
        DynamoConfig {
            prefill_up: 0.1,
            kv_up: 0.4,
            prefill_down: 0.0,
            kv_down: 0.1,
            ..DynamoConfig::default()
        }
    }
}

/// See the module.
pub struct Dynamo {
    config: DynamoConfig,
    /// Queued prefill in contexts, and KV demand, of each replica that serves.
    loads: Vec<(f64, f64)>,
}

impl Dynamo {
    /// With these constants.
    pub fn new(config: DynamoConfig) -> Dynamo {
        Dynamo { config, loads: Vec::new() }
    }

    fn draft(&self, counts: Counts) -> Draft {
        let DynamoConfig { prefill_up, kv_up, prefill_down, kv_down, sensitivity, .. } = self.config;
        let live = counts.live();
        if self.loads.is_empty() {
            return Draft::stay(live, ScaleReason::NoSignal, "");
        }
        let most = |of: fn(&(f64, f64)) -> f64| self.loads.iter().map(of).fold(0.0, f64::max);
        let (prefill, kv) = (most(|l| l.0), most(|l| l.1));
        let terms = [("most queued prefill, contexts", prefill), ("most KV demand", kv)];
        let waits = counts.starting > 0 && self.config.pending == Pending::Counted;
        if prefill >= prefill_up || kv > kv_up {
            let formula = if prefill >= prefill_up {
                format!("queued prefill {} ≥ {} contexts", text(prefill), text(prefill_up))
            } else {
                format!("KV {} > {}", text(kv), text(kv_up))
            };
            if waits {
                return Draft::stay(live, ScaleReason::AwaitsPending, formula).with(&terms);
            }
            return Draft { wanted: live + 1, reason: ScaleReason::Saturated, formula, terms: vec![] }
                .with(&terms);
        }
        // Nothing queued is below a threshold of nothing.
        let low = |value: f64, limit: f64| value < limit || (value == 0.0 && limit == 0.0);
        if !low(prefill, prefill_down) || !low(kv, kv_down) {
            return Draft::stay(live, ScaleReason::Steady, "").with(&terms);
        }
        let n = self.loads.len() as f64;
        if n < 2.0 {
            return Draft::stay(live, ScaleReason::Steady, "one is left").with(&terms);
        }
        let spread = n / (n - 1.0);
        let (then_prefill, then_kv) = (prefill * spread, kv * spread);
        let formula =
            format!("× {n} ÷ {}: queued prefill {}, KV {}", n - 1.0, text(then_prefill), text(then_kv));
        let terms = [("queued prefill over one fewer", then_prefill), ("KV over one fewer", then_kv)];
        if then_prefill > sensitivity * prefill_up || then_kv > sensitivity * kv_up {
            return Draft::stay(live, ScaleReason::Unsafe, formula).with(&terms);
        }
        if waits {
            return Draft::stay(live, ScaleReason::AwaitsPending, formula).with(&terms);
        }
        Draft { wanted: live.saturating_sub(1), reason: ScaleReason::Spare, formula, terms: vec![] }
            .with(&terms)
    }
}

impl Scaler for Dynamo {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Dynamo
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn observe(&mut self, sample: &FleetSample) {
        let context = self.config.context;
        self.loads =
            sample.replicas.iter().map(|r| (r.queued_tokens as f64 / context, r.kv_demand)).collect();
    }

    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision {
        let draft = self.draft(counts);
        let desired = draft.wanted;
        draft.decide(now, self.kind(), counts, desired, None, bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::{FREE, counts, sample, seconds};
    use crate::autoscale::signals::ReplicaSample;

    fn decide(
        config: DynamoConfig,
        queued_tokens: u64,
        kv_demand: f64,
        counts: Counts,
    ) -> (u32, ScaleReason) {
        let mut dynamo = Dynamo::new(config);
        let each = ReplicaSample { queued_tokens, kv_demand, ..ReplicaSample::default() };
        dynamo.observe(&sample(5, counts.serving, each));
        let decision = dynamo.decide(seconds(5), counts, FREE);
        (decision.desired, decision.reason)
    }

    #[test]
    fn by_hand() {
        let config = DynamoConfig { context: 1000.0, ..DynamoConfig::default() };
        let two = counts(2, 0);
        assert_eq!(decide(config, 1000, 0.5, two), (3, ScaleReason::Saturated));
        assert_eq!(decide(config, 999, 0.5, two), (2, ScaleReason::Steady));
        assert_eq!(decide(config, 0, 1.01, two), (3, ScaleReason::Saturated));
        // 0.5 × 2 ÷ 1 = 1.0 > 0.8; 0.39 × 2 = 0.78; of three, 0.5 × 3 ÷ 2 = 0.75.
        assert_eq!(decide(config, 0, 0.5, two), (2, ScaleReason::Unsafe));
        assert_eq!(decide(config, 0, 0.39, two), (1, ScaleReason::Spare));
        assert_eq!(decide(config, 0, 0.5, counts(3, 0)), (2, ScaleReason::Spare));
        assert_eq!(decide(config, 0, 0.0, counts(1, 0)), (1, ScaleReason::Steady));
        assert_eq!(decide(config, 5000, 0.0, counts(1, 1)), (2, ScaleReason::AwaitsPending));
        let hasty = DynamoConfig { pending: Pending::Ignored, ..config };
        assert_eq!(decide(hasty, 5000, 0.0, counts(1, 1)), (3, ScaleReason::Saturated));
    }

    #[test]
    fn latency_mode_is_nervous() {
        let config = DynamoConfig { context: 1000.0, ..DynamoConfig::latency() };
        assert_eq!(decide(config, 100, 0.0, counts(2, 0)), (3, ScaleReason::Saturated));
        assert_eq!(decide(config, 0, 0.41, counts(2, 0)), (3, ScaleReason::Saturated));
        assert_eq!(decide(config, 0, 0.05, counts(2, 0)), (1, ScaleReason::Spare));
        assert_eq!(decide(config, 1, 0.05, counts(2, 0)), (2, ScaleReason::Steady));
    }
}
