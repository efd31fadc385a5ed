//! llm-d's Workload Variant Autoscaler, its saturation analyser: one more where capacity to spare runs out, one
//! fewer where the rest could take the load and still have some.
//!
//! Source: llm-d-workload-variant-autoscaler b08b1c7, `docs/saturation-analyzer.md`: a replica is saturated at
//! KV ≥ 0.80 or queue ≥ 5; one more if the mean spare KV of the others is below 0.10 or their mean spare queue
//! below 3; one fewer only if at least two are not saturated and the load over one fewer leaves those spares;
//! the most of the last minute; a look a minute; variants with pending replicas are left alone.

use std::collections::BTreeMap;

use super::behaviour::span;
use super::{Bounds, Counts, Draft, Pending, ScaleDecision, ScaleReason, Scaler, ScalerKind, Series, text};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// The constants of [`Wva`], all from its documentation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WvaConfig {
    /// `kvCacheThreshold`.
    pub kv: f64,
    /// `queueLengthThreshold`.
    pub queue: f64,
    /// `kvSpareTrigger`.
    pub spare_kv: f64,
    /// `queueSpareTrigger`.
    pub spare_queue: f64,
    /// The window of `max_over_time`.
    pub window: Span,
    /// The time between looks.
    pub interval: Span,
    /// Whether it waits for replicas that start.
    pub pending: Pending,
}

impl Default for WvaConfig {
    fn default() -> Self {
        WvaConfig {
            kv: 0.80,
            queue: 5.0,
            spare_kv: 0.10,
            spare_queue: 3.0,
            window: span(60),
            interval: span(60),
            pending: Pending::Counted,
        }
    }
}

/// See the module.
pub struct Wva {
    config: WvaConfig,
    /// KV utilisation and queue of each replica that has reported, by id.
    replicas: BTreeMap<u32, (Series, Series)>,
    /// Who reported last.
    latest: Vec<u32>,
}

impl Wva {
    /// With these constants.
    pub fn new(config: WvaConfig) -> Wva {
        Wva { config, replicas: BTreeMap::new(), latest: Vec::new() }
    }

    fn draft(&self, counts: Counts) -> Draft {
        let WvaConfig { kv, queue, spare_kv, spare_queue, .. } = self.config;
        let live = counts.live();
        let most = |id: &u32| {
            let (used, waiting) = self.replicas.get(id)?;
            Some((used.most()?, waiting.most()?))
        };
        let all: Vec<(f64, f64)> = self.latest.iter().filter_map(most).collect();
        if all.is_empty() {
            return Draft::stay(live, ScaleReason::NoSignal, "");
        }
        let free: Vec<&(f64, f64)> =
            all.iter().filter(|(used, waiting)| *used < kv && *waiting < queue).collect();
        let n = free.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| free.iter().map(|r| of(r)).sum::<f64>() / n.max(1.0);
        let (used, waiting) = (mean(|r| r.0), mean(|r| r.1));
        let (left, room) = (kv - used, queue - waiting);
        let terms = [("not saturated", n), ("mean spare KV", left), ("mean spare queue", room)];
        let more = |formula: String| {
            let draft = if counts.starting > 0 && self.config.pending == Pending::Counted {
                Draft::stay(live, ScaleReason::AwaitsPending, formula)
            } else {
                Draft { wanted: live + 1, reason: ScaleReason::Saturated, formula, terms: vec![] }
            };
            draft.with(&terms)
        };
        if free.is_empty() {
            return more(format!("none of {} is below {kv} KV and {queue} waiting", all.len()));
        }
        // A hair's breadth of rounding is no lack of spare capacity.
        let lacks = |spare: f64, least: f64| spare < least - 1e-9;
        if lacks(left, spare_kv) {
            return more(format!("mean spare KV {} < {spare_kv}", text(left)));
        }
        if lacks(room, spare_queue) {
            return more(format!("mean spare queue {} < {spare_queue}", text(room)));
        }
        if free.len() < 2 {
            return Draft::stay(live, ScaleReason::Steady, "fewer than two are not saturated").with(&terms);
        }
        let spread = n / (n - 1.0);
        let (left, room) = (kv - used * spread, queue - waiting * spread);
        let formula = format!("over one fewer: spare KV {}, spare queue {}", text(left), text(room));
        let terms = [("spare KV over one fewer", left), ("spare queue over one fewer", room)];
        if lacks(left, spare_kv) || lacks(room, spare_queue) {
            return Draft::stay(live, ScaleReason::Unsafe, formula).with(&terms);
        }
        if counts.starting > 0 && self.config.pending == Pending::Counted {
            return Draft::stay(live, ScaleReason::AwaitsPending, formula).with(&terms);
        }
        Draft { wanted: live.saturating_sub(1), reason: ScaleReason::Spare, formula, terms: vec![] }
            .with(&terms)
    }
}

impl Scaler for Wva {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Wva
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn shortest_window(&self) -> Option<Span> {
        Some(self.config.window)
    }

    fn observe(&mut self, sample: &FleetSample) {
        let empty = || (Series::new(self.config.window), Series::new(self.config.window));
        self.latest.clear();
        for replica in &sample.replicas {
            let (kv, queue) = self.replicas.entry(replica.replica).or_insert_with(empty);
            kv.push(sample.time(), replica.kv);
            queue.push(sample.time(), replica.waiting.into());
            self.latest.push(replica.replica);
        }
        self.replicas.retain(|id, _| self.latest.contains(id));
    }

    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision {
        for (kv, queue) in self.replicas.values_mut() {
            kv.forget(now);
            queue.forget(now);
        }
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

    fn decide(kv: f64, waiting: u32, n: u32, starting: u32, pending: Pending) -> ScaleDecision {
        let mut wva = Wva::new(WvaConfig { pending, ..WvaConfig::default() });
        wva.observe(&sample(50, n, ReplicaSample { kv, waiting, ..ReplicaSample::default() }));
        wva.decide(seconds(60), counts(n, starting), FREE)
    }

    #[test]
    fn by_hand() {
        use Pending::{Counted, Ignored};
        let outcome = |kv, waiting, n, starting, pending| {
            let decision = decide(kv, waiting, n, starting, pending);
            (decision.desired, decision.reason)
        };
        // Spare: 0.80 − 0.72 = 0.08 < 0.10.
        assert_eq!(outcome(0.72, 0, 4, 0, Counted), (5, ScaleReason::Saturated));
        // Spare queue: 5 − 3 = 2 < 3.
        assert_eq!(outcome(0.1, 3, 4, 0, Counted), (5, ScaleReason::Saturated));
        assert_eq!(outcome(0.95, 9, 4, 0, Counted), (5, ScaleReason::Saturated));
        // 0.80 − 0.6 × 4 ÷ 3 = 0: one fewer would have none to spare.
        assert_eq!(outcome(0.6, 0, 4, 0, Counted), (4, ScaleReason::Unsafe));
        // 0.80 − 0.525 × 4 ÷ 3 = 0.10: exactly enough.
        assert_eq!(outcome(0.525, 0, 4, 0, Counted), (3, ScaleReason::Spare));
        assert_eq!(outcome(0.0, 0, 1, 0, Counted), (1, ScaleReason::Steady));
        assert_eq!(outcome(0.72, 0, 4, 1, Counted), (5, ScaleReason::AwaitsPending));
        assert_eq!(outcome(0.72, 0, 4, 1, Ignored), (6, ScaleReason::Saturated));
    }

    #[test]
    fn it_takes_the_most_of_the_last_minute() {
        let mut wva = Wva::new(WvaConfig::default());
        for (second, kv) in [(5, 0.75), (10, 0.1), (60, 0.1)] {
            wva.observe(&sample(second, 2, ReplicaSample { kv, ..ReplicaSample::default() }));
        }
        assert_eq!(wva.decide(seconds(60), counts(2, 0), FREE).desired, 3);
        assert_eq!(wva.decide(seconds(66), counts(2, 0), FREE).desired, 1, "0.80 − 0.1 × 2");
    }
}
