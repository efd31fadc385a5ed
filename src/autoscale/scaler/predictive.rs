//! A predictive scaler: the arrivals of the time when what is asked for now will serve, by the trend.
//!
//! desired = ceil(predicted arrivals a second × headroom ÷ what a replica serves within the objectives). The rule
//! is that of Dynamo's throughput loop (ceil(predicted rps ÷ engine rps), there every 180 s and with ARIMA);
//! the prediction here is a straight line through the latest arrivals, a cold start ahead.

use super::behaviour::{Behaviour, Settle, span};
use super::{Bounds, Counts, Draft, ScaleDecision, ScaleReason, Scaler, ScalerKind, Series, text, whole};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// The constants of [`Predictive`]; those without a source are this project's own choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictiveConfig {
    /// Requests a second that a replica serves within the objectives.
    pub capacity: f64,
    /// How far ahead it looks: a cold start.
    pub lead: Span,
    /// The window of the trend.
    pub window: Span,
    /// How much more than predicted it provides for.
    pub headroom: f64,
    /// The time between decisions.
    pub interval: Span,
    /// It shrinks no further than it wanted to all along this time: the HPA's 300 s.
    pub down_window: Span,
}

impl Default for PredictiveConfig {
    fn default() -> Self {
        PredictiveConfig {
            capacity: 1.0,
            lead: span(60),
            window: span(60),
            headroom: 1.1,
            interval: span(15),
            down_window: span(300),
        }
    }
}

/// See the module.
pub struct Predictive {
    config: PredictiveConfig,
    settle: Settle,
    arrivals: Series,
}

impl Predictive {
    /// With these constants.
    pub fn new(config: PredictiveConfig) -> Predictive {
        let behaviour =
            Behaviour { up_percent: 100_000, down_window: config.down_window, ..Behaviour::default() };
        Predictive { config, settle: Settle::new(behaviour), arrivals: Series::new(config.window) }
    }

    fn draft(&self, counts: Counts) -> Draft {
        let PredictiveConfig { capacity, lead, headroom, .. } = self.config;
        let live = counts.live();
        let Some((now, slope)) = self.arrivals.trend() else {
            return Draft::stay(live, ScaleReason::NoSignal, "");
        };
        // What is needed already is needed, whatever comes.
        let then = (now + slope * lead.seconds()).max(now).max(0.0);
        let wanted = whole(then * headroom / capacity).max(1);
        let formula = format!("ceil({} × {} ÷ {}) = {wanted}", text(then), text(headroom), text(capacity));
        Draft::of(wanted, formula).with(&[
            ("arrivals a second", now),
            ("more a second, each second", slope),
            ("predicted", then),
            ("a replica serves", capacity),
        ])
    }
}

impl Scaler for Predictive {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Predictive
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn shortest_window(&self) -> Option<Span> {
        Some(self.config.window)
    }

    fn observe(&mut self, sample: &FleetSample) {
        self.arrivals.push(sample.time(), sample.rate());
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

    #[test]
    fn by_hand() {
        let config = PredictiveConfig { capacity: 10.0, headroom: 1.0, ..PredictiveConfig::default() };
        let mut scaler = Predictive::new(config);
        let see = |scaler: &mut Predictive, second: u64, arrived: u32| {
            scaler.observe(&FleetSample { arrived, ..sample(second, 2, ReplicaSample::default()) });
        };
        // 10, 11, 12, … a second, by 1 every 5 s: 0.2 a second; at second 30 it is 15, a minute on 27.
        (1..=6).for_each(|n| see(&mut scaler, 5 * n, 45 + 5 * n as u32));
        let decision = scaler.decide(seconds(30), counts(2, 0), FREE);
        assert_eq!((decision.desired, decision.formula.as_str()), (3, "ceil(27 × 1 ÷ 10) = 3"));
        // A fall is not believed before it is there, and then not for five minutes.
        (7..=12).for_each(|n| see(&mut scaler, 5 * n, 25));
        let decision = scaler.decide(seconds(60), counts(3, 0), FREE);
        assert_eq!(decision.desired, 3);
    }
}
