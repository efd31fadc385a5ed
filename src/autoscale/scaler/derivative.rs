//! A scaler on the queue's derivative: what is missing is how fast the queue grows.
//!
//! A queue that grows by *s* requests a second is served *s* too slowly, whatever its length. With *μ* requests a
//! second that a replica finishes, *s* ÷ *μ* more are needed to stop it, and to empty what will have gathered
//! by the time they serve (*q* + *s* × cold start) within a given time, that much ÷ (*μ* × time) on top.
//! *μ* is the most that it has seen a replica do. Of no product; it is here to show what the first derivative
//! of a signal that everybody has is worth.

use super::behaviour::{Behaviour, Settle, span};
use super::{Bounds, Counts, Draft, ScaleDecision, ScaleReason, Scaler, ScalerKind, Series, text, whole};
use crate::autoscale::signals::FleetSample;
use crate::units::{Span, Time};

/// The constants of [`Derivative`]: this project's own choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DerivativeConfig {
    /// The window of the trend.
    pub window: Span,
    /// How long a replica takes to serve.
    pub lead: Span,
    /// The time in which the backlog is to be gone once they do.
    pub drain: Span,
    /// It shrinks to what would be busy for this part of the time.
    pub utilisation: f64,
    /// The time between decisions.
    pub interval: Span,
    /// It shrinks no further than it wanted to all along this time: the HPA's 300 s.
    pub down_window: Span,
}

impl Default for DerivativeConfig {
    fn default() -> Self {
        DerivativeConfig {
            window: span(30),
            lead: span(60),
            drain: span(60),
            utilisation: 0.8,
            interval: span(5),
            down_window: span(300),
        }
    }
}

/// See the module.
pub struct Derivative {
    config: DerivativeConfig,
    settle: Settle,
    waiting: Series,
    arrivals: Series,
    finished: Series,
    /// The most requests a second that a replica was seen to finish.
    each: f64,
}

impl Derivative {
    /// With these constants.
    pub fn new(config: DerivativeConfig) -> Derivative {
        // As fast as it likes upwards.
        let behaviour =
            Behaviour { up_percent: 100_000, down_window: config.down_window, ..Behaviour::default() };
        let series = || Series::new(config.window);
        Derivative {
            config,
            settle: Settle::new(behaviour),
            waiting: series(),
            arrivals: series(),
            finished: series(),
            each: 0.0,
        }
    }

    fn draft(&self, counts: Counts) -> Draft {
        let live = counts.live();
        let (Some((waiting, slope)), Some(rate)) = (self.waiting.trend(), self.arrivals.mean()) else {
            return Draft::stay(live, ScaleReason::NoSignal, "");
        };
        let each = self.each;
        if each <= 0.0 {
            return Draft::stay(live, ScaleReason::NoSignal, "nothing has finished yet");
        }
        let terms = [
            ("waiting", waiting),
            ("more a second", slope),
            ("a replica's requests a second", each),
            ("arrivals a second", rate),
        ];
        // A fraction of a request over a window is noise.
        if waiting >= 1.0 {
            let ahead = (waiting + slope * self.config.lead.seconds()).max(0.0);
            let drain = self.config.drain.seconds();
            let missing = (slope.max(0.0) + ahead / drain) / each;
            let wanted = counts.serving + whole(missing);
            let formula = format!(
                "{} + ceil(({} + {} ÷ {}) ÷ {}) = {wanted}",
                counts.serving,
                text(slope.max(0.0)),
                text(ahead),
                text(drain),
                text(each)
            );
            let draft = Draft::of(wanted.max(live), formula);
            return draft.with(&terms);
        }
        let wanted = whole(rate / (each * self.config.utilisation)).max(1);
        let formula =
            format!("ceil({} ÷ ({} × {})) = {wanted}", text(rate), text(each), text(self.config.utilisation));
        Draft::of(wanted.min(live), formula).with(&terms)
    }
}

impl Scaler for Derivative {
    fn kind(&self) -> ScalerKind {
        ScalerKind::Derivative
    }

    fn interval(&self) -> Span {
        self.config.interval
    }

    fn shortest_window(&self) -> Option<Span> {
        Some(self.config.window)
    }

    fn observe(&mut self, sample: &FleetSample) {
        let at = sample.time();
        self.waiting.push(at, sample.waiting.into());
        self.arrivals.push(at, sample.rate());
        if sample.serving > 0 {
            self.finished.push(at, sample.throughput() / f64::from(sample.serving));
            self.each = self.each.max(self.finished.mean().unwrap_or(0.0));
        }
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

    fn see(scaler: &mut Derivative, second: u64, waiting: u32, arrived: u32, finished: u32) {
        let empty = sample(second, 2, ReplicaSample::default());
        scaler.observe(&FleetSample { waiting, arrived, finished, ..empty });
    }

    #[test]
    fn by_hand() {
        let mut scaler = Derivative::new(DerivativeConfig::default());
        assert_eq!(scaler.decide(seconds(5), counts(2, 0), FREE).reason, ScaleReason::NoSignal);
        // In windows of 5 s: 100 finish on two, so 10 a second each; the queue grows by 8 a second.
        for n in 1..=4 {
            see(&mut scaler, 5 * n, 40 * n as u32, 140, 100);
        }
        // 2 + ceil((8 + (160 + 8 × 60) ÷ 60) ÷ 10) = 2 + ceil(18.667 ÷ 10) = 4.
        let decision = scaler.decide(seconds(20), counts(2, 0), FREE);
        assert_eq!((decision.desired, decision.formula.as_str()), (4, "2 + ceil((8 + 640 ÷ 60) ÷ 10) = 4"));
        // What starts is what was asked for.
        assert_eq!(scaler.decide(seconds(25), counts(2, 2), FREE).desired, 4);
    }

    #[test]
    fn without_a_queue_it_keeps_what_the_arrivals_need() {
        let config = DerivativeConfig { down_window: Span::ZERO, ..DerivativeConfig::default() };
        let mut scaler = Derivative::new(config);
        (1..=6).for_each(|n| see(&mut scaler, 5 * n, 0, 100, 100));
        // ceil(20 ÷ (10 × 0.8)) = 3 of four.
        assert_eq!(scaler.decide(seconds(30), counts(4, 0), FREE).desired, 3);
        (7..=12).for_each(|n| see(&mut scaler, 5 * n, 0, 30, 30));
        // 6 a second.
        assert_eq!(scaler.decide(seconds(60), counts(3, 0), FREE).desired, 1);
    }
}
