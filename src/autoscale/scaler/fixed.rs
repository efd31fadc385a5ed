//! No scaler: as many replicas as there were at first, whatever comes.

use super::behaviour::span;
use super::{Bounds, Counts, Draft, ScaleDecision, ScaleReason, Scaler, ScalerKind};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// See the module. It replaces what fails.
pub struct Fixed {
    /// So many.
    pub replicas: u32,
}

impl Scaler for Fixed {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Fixed
    }

    fn interval(&self) -> Span {
        span(5)
    }

    fn observe(&mut self, _sample: &FleetSample) {}

    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision {
        let draft = Draft {
            wanted: self.replicas,
            reason: ScaleReason::Steady,
            formula: String::new(),
            terms: vec![],
        };
        draft.decide(now, self.kind(), counts, self.replicas, None, bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::{FREE, counts, seconds};

    #[test]
    fn it_replaces_what_is_gone() {
        let mut fixed = Fixed { replicas: 3 };
        assert_eq!(fixed.decide(seconds(5), counts(3, 0), FREE).desired, 3);
        assert_eq!(fixed.decide(seconds(10), counts(1, 1), FREE).desired, 3);
    }
}
