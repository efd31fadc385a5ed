//! What goes wrong: failures that nobody sees coming, and machines that are taken away after a notice.
//!
//! With a mean time between failures *m* each replica that serves fails at rate 1 ÷ *m*. They are drawn for as
//! many replicas as there may be, and one that hits a replica that is not there hits nobody: thinning, so that
//! the draws do not depend on what the scaler does.

use super::life::End;
use crate::trace::generate::Draw;
use crate::units::{Span, Time};

/// Something that will go wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// When.
    pub at: Time,
    /// [`End::Failed`] or [`End::Preempted`].
    pub end: End,
    /// Which of the replicas that serve, by id: this part of the way through `of` places.
    pub pick: f64,
    /// So many places, of which those beyond the last replica are empty; `None`: as many as serve.
    pub of: Option<u32>,
}

impl Fault {
    /// Which of so many replicas it hits, if any.
    pub fn hits(&self, serving: usize) -> Option<usize> {
        let places = self.of.map_or(serving, |of| of as usize);
        let place = (self.pick * places as f64) as usize;
        (place < serving).then_some(place)
    }
}

/// Failures of up to `most` replicas with a mean time between failures, until `until`.
pub fn drawn(mean: Span, most: u32, until: Time, seed: u64) -> Vec<Fault> {
    // A stream of its own: the trace does not change with it.
    let mut draw = Draw::new(seed ^ 0xFA17_5EED_0000_0001);
    let mut faults = Vec::new();
    let mut seconds = 0.0;
    loop {
        seconds += draw.exponential() * mean.seconds() / f64::from(most);
        match Time::from_seconds(seconds) {
            Some(at) if at < until => {
                faults.push(Fault { at, end: End::Failed, pick: draw.unit(), of: Some(most) });
            }
            _ => return faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_fails_as_often_as_it_should() {
        let hour = Span::from_seconds(3600.0).expect("short");
        let day = Time::from_seconds(1e6).expect("short");
        let faults = drawn(hour, 10, day, 3);
        // 10 replicas × 10⁶ s ÷ 3,600 s = 2,778, of which three in ten hit one of three.
        assert!((2600..2950).contains(&faults.len()), "{}", faults.len());
        let hits = faults.iter().filter(|f| f.hits(3).is_some()).count() as f64;
        assert!((0.27..0.33).contains(&(hits / faults.len() as f64)), "{hits}");
        assert_eq!(faults, drawn(hour, 10, day, 3));
    }

    #[test]
    fn of_those_that_serve_it_hits_the_one_that_is_so_far_along() {
        let fault = Fault { at: Time(0), end: End::Failed, pick: 0.5, of: None };
        assert_eq!((fault.hits(4), fault.hits(1), fault.hits(0)), (Some(2), Some(0), None));
    }
}
