//! An oracle that knows the trace: what can be had by starting replicas in time, and no more than are needed.
//!
//! It asks for the most that any moment from now until a cold start from now needs, ceil(arrivals a second ÷
//! what a replica serves within the objectives). So whatever is asked for is there when it is needed: a bound for
//! every scaler that must see a rise before it can act. (It does not know the length of each request.)

use std::sync::Arc;

use super::behaviour::span;
use super::{Bounds, Counts, Draft, ScaleDecision, ScaleReason, Scaler, ScalerKind, text, whole};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// The constants of [`Oracle`].
#[derive(Clone, Debug, PartialEq)]
pub struct OracleConfig {
    /// Requests a second that a replica serves within the objectives.
    pub capacity: f64,
    /// How long a replica takes to serve.
    pub lead: Span,
    /// Arrivals in each stretch of `bucket`, from the start.
    pub arrivals: Arc<[u32]>,
    /// That stretch.
    pub bucket: Span,
    /// How much more than arrives it provides for.
    pub headroom: f64,
    /// The time between decisions.
    pub interval: Span,
}

impl Default for OracleConfig {
    fn default() -> Self {
        OracleConfig {
            capacity: 1.0,
            lead: span(60),
            arrivals: Arc::from([]),
            bucket: span(10),
            headroom: 1.1,
            interval: span(5),
        }
    }
}

/// See the module.
pub struct Oracle {
    config: OracleConfig,
}

impl Oracle {
    /// With these constants.
    pub fn new(config: OracleConfig) -> Oracle {
        Oracle { config }
    }
}

impl Scaler for Oracle {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Oracle
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn observe(&mut self, _sample: &FleetSample) {}

    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision {
        let OracleConfig { capacity, lead, ref arrivals, bucket, headroom, interval } = self.config;
        // Until what the next decision asks for would serve.
        let until = now.0.saturating_add(lead.0).saturating_add(interval.0);
        let (first, last) = ((now.0 / bucket.0) as usize, (until / bucket.0) as usize);
        let most = arrivals.iter().take(last + 1).skip(first).max().copied().unwrap_or(0);
        let rate = f64::from(most) / bucket.seconds();
        let wanted = whole(rate * headroom / capacity).max(1);
        let formula = format!("ceil({} × {} ÷ {}) = {wanted}", text(rate), text(headroom), text(capacity));
        Draft { wanted, reason: ScaleReason::Formula, formula, terms: vec![] }
            .with(&[("most arrivals a second until then", rate), ("a replica serves", capacity)])
            .decide(now, self.kind(), counts, wanted, None, bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::{FREE, counts, seconds};

    #[test]
    fn by_hand() {
        // 10 a second, from second 100 on 35, from 150 on 5.
        let arrivals: Arc<[u32]> = (0..20)
            .map(|at| {
                if at < 10 {
                    100
                } else if at < 15 {
                    350
                } else {
                    50
                }
            })
            .collect();
        let config = OracleConfig { capacity: 10.0, headroom: 1.0, arrivals, ..OracleConfig::default() };
        let mut oracle = Oracle::new(config);
        let path = [0, 30, 35, 100, 149, 150, 500]
            .map(|now| oracle.decide(seconds(now), counts(1, 0), FREE).desired);
        assert_eq!(path, [1, 1, 4, 4, 4, 1, 1], "a cold start and a look before second 100");
    }
}
