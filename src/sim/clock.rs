//! Clocks: how long a step took, by its price or by a stop-watch.

use crate::cost::Price;
use crate::engine::Work;
use crate::units::Span;

/// Says what a step took. No clock of the core reads the time of day: a measured one is handed a
/// stop-watch by its caller.
pub trait Clock {
    /// A step is about to be computed.
    fn start(&mut self) {}

    /// It has been; this is what it computed.
    fn took(&mut self, work: &Work) -> Span;
}

/// Deterministic: a step takes what it is priced at.
#[derive(Clone, Copy, Debug)]
pub struct Modelled<P>(pub P);

impl<P: Price> Clock for Modelled<P> {
    fn took(&mut self, work: &Work) -> Span {
        self.0.of(work)
    }
}

/// A step takes as long as it took on this machine.
pub struct Measured<F> {
    seconds: F,
    started: f64,
}

impl<F: FnMut() -> f64> Measured<F> {
    /// From a stop-watch in seconds.
    pub fn new(seconds: F) -> Measured<F> {
        Measured { seconds, started: 0.0 }
    }
}

impl<F: FnMut() -> f64> Clock for Measured<F> {
    fn start(&mut self) {
        self.started = (self.seconds)();
    }

    fn took(&mut self, _work: &Work) -> Span {
        let elapsed = (self.seconds)() - self.started;
        // A coarse stop-watch may not have moved; one that was set back counts as not moving.
        Span::from_seconds(elapsed.max(0.0)).unwrap_or(Span::GRAIN).max(Span::GRAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_step_takes_what_the_stop_watch_says_and_never_nothing() {
        let mut readings = [1.0, 1.25, 2.0, 2.0, 3.0, 2.5].into_iter();
        let mut clock = Measured::new(move || readings.next().expect("enough readings"));
        for expected in [Span(250_000_000_000), Span(1), Span(1)] {
            clock.start();
            assert_eq!(clock.took(&Work::default()), expected);
        }
    }
}
