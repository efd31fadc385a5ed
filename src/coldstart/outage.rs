//! What a cold start's length means for a fleet: a spike, a lost replica, a year, the first request after zero.

use serde::Serialize;

use super::format::Format;
use super::phases::Phases;
use super::start::{ColdStart, Route};
use crate::cost::roofline::ServedModel;

/// Seconds in a year of 365 days.
pub const YEAR: f64 = 365.0 * 86_400.0;

/// A fleet that is hit by a spike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spike {
    /// Arrivals a second before it.
    pub rate: f64,
    /// The part of its capacity that the fleet uses then.
    pub utilisation: f64,
    /// How many times as much comes.
    pub factor: f64,
    /// How long until a scaler has seen it and ordered, in seconds.
    pub reaction: f64,
    /// From order to service, in seconds.
    pub cold_start: f64,
    /// How long before the spike a leading signal moves; 0: there is none.
    pub lead: f64,
}

/// What a spike costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overload {
    /// Seconds in which more comes than can be served.
    pub seconds: f64,
    /// Requests that are left over by then.
    pub requests: f64,
}

impl Spike {
    /// What it costs.
    pub fn overload(&self) -> Overload {
        let excess = (self.rate * self.factor - self.rate / self.utilisation).max(0.0);
        let late = (self.reaction + self.cold_start - self.lead).max(0.0);
        let seconds = if excess > 0.0 { late } else { 0.0 };
        Overload { seconds, requests: excess * seconds }
    }
}

/// A fleet whose replicas fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failures {
    /// Replicas.
    pub replicas: u32,
    /// Of those, how many are needed.
    pub needed: u32,
    /// Mean seconds between two failures of one.
    pub mtbf: f64,
    /// Seconds until a failure is noticed.
    pub detection: f64,
    /// Seconds from order to service.
    pub cold_start: f64,
}

impl Failures {
    /// Seconds until a lost replica is made up for.
    pub fn recovery(&self) -> f64 {
        self.detection + self.cold_start
    }

    /// The part of the time in which as many serve as are needed: replicas fail and recover independently.
    pub fn availability(&self) -> f64 {
        let up = self.mtbf / (self.mtbf + self.recovery());
        let (n, k) = (self.replicas, self.needed);
        let mut chance = 0.0;
        // n over i, from i = n downwards.
        let mut ways = 1.0;
        for i in (k..=n).rev() {
            chance += ways * libm::pow(up, f64::from(i)) * libm::pow(1.0 - up, f64::from(n - i));
            ways *= f64::from(i) / f64::from(n - i + 1);
        }
        chance.min(1.0)
    }

    /// Seconds of a year in which too few serve.
    pub fn short_a_year(&self) -> f64 {
        (1.0 - self.availability()) * YEAR
    }
}

/// One cell of the map of scale to zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The model.
    pub model: &'static str,
    /// The format.
    pub format: &'static str,
    /// The route.
    pub route: &'static str,
    /// TTFT of the first request if only the weights had to come, in seconds.
    pub floor: f64,
    /// With everything around them.
    pub total: f64,
    /// Whether the floor alone meets the objective.
    pub floor_fits: bool,
    /// Whether all of it does.
    pub fits: bool,
}

/// Every model in some formats over every route: where does scale to zero keep an objective of TTFT?
pub fn scale_to_zero(phases: Phases, objective: f64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for model in ServedModel::ALL {
        for format in [Format::Bf16, Format::Int8, Format::Awq] {
            for route in Route::ALL {
                let plan = ColdStart::new(model, format, route, phases).plan();
                cells.push(Cell {
                    model: model.name(),
                    format: format.name(),
                    route: route.name(),
                    floor: plan.floor,
                    total: plan.total,
                    floor_fits: plan.floor <= objective,
                    fits: plan.total <= objective,
                });
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_by_hand() {
        let spike =
            Spike { rate: 10.0, utilisation: 0.5, factor: 4.0, reaction: 20.0, cold_start: 80.0, lead: 0.0 };
        // 40 come, 20 can be served: 20 a second for 100 s.
        assert_eq!(spike.overload(), Overload { seconds: 100.0, requests: 2000.0 });
        assert_eq!(Spike { lead: 60.0, ..spike }.overload().requests, 800.0);
        assert_eq!(Spike { lead: 200.0, ..spike }.overload().seconds, 0.0);
        assert_eq!(Spike { factor: 2.0, ..spike }.overload(), Overload { seconds: 0.0, requests: 0.0 });
    }

    #[test]
    fn availability_by_hand() {
        let all = Failures { replicas: 2, needed: 2, mtbf: 900.0, detection: 40.0, cold_start: 60.0 };
        // Up 0.9 of the time.
        assert_eq!(all.recovery(), 100.0);
        assert!((all.availability() - 0.81).abs() < 1e-12);
        assert!((Failures { needed: 1, ..all }.availability() - 0.99).abs() < 1e-12);
        let three = Failures { replicas: 3, needed: 2, ..all };
        assert!((three.availability() - (0.729 + 3.0 * 0.81 * 0.1)).abs() < 1e-12);
        assert!((three.short_a_year() - 0.028 * YEAR).abs() < 1e-3);
        assert!((Failures { needed: 0, ..three }.availability() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn only_the_tiniest_model_fits_a_second() {
        let cells = scale_to_zero(Phases::default(), 1.0);
        assert_eq!(cells.len(), 5 * 3 * 5);
        assert!(cells.iter().filter(|c| c.model == "tinygpt").all(|c| c.fits));
        assert!(cells.iter().filter(|c| c.model == "llama-3-70b").all(|c| !c.floor_fits));
        let with = scale_to_zero(Phases { process: 34.0, ..Phases::default() }, 1.0);
        assert!(with.iter().all(|c| !c.fits), "imports alone take longer");
    }
}
