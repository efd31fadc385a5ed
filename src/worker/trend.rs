//! Three figures as they stood after every change, counted while a run goes on: what the plots show.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::RequestId;
use crate::sim::{Event, Objectives, What};
use crate::units::Time;

/// The figures at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When, in seconds since the start.
    pub at: f64,
    /// Prompt tokens not computed ÷ prompt tokens, of what has been admitted; null before.
    pub reuse: Option<f64>,
    /// The busiest replica's share of requests ÷ an even share; null before the first.
    pub imbalance: Option<f64>,
    /// Requests that met both objectives so far.
    pub good: u32,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    arrival: Time,
    prompt: u32,
    first: Option<Time>,
    generated: u32,
}

/// Counts as events come, each in constant time.
#[derive(Clone, Debug)]
pub struct Trend {
    objectives: Objectives,
    assignments: Vec<u64>,
    routed: u64,
    most: u64,
    prompt: u64,
    cached: u64,
    good: u32,
    open: BTreeMap<RequestId, Open>,
    latest: Option<Point>,
}

impl Trend {
    /// For a fleet of `replicas`.
    pub fn new(replicas: usize, objectives: Objectives) -> Trend {
        Trend {
            objectives,
            assignments: vec![0; replicas],
            routed: 0,
            most: 0,
            prompt: 0,
            cached: 0,
            good: 0,
            open: BTreeMap::new(),
            latest: None,
        }
    }

    /// From now on there are so many replicas, if that is more than before.
    pub fn grow(&mut self, replicas: usize) {
        self.assignments.resize(replicas.max(self.assignments.len()), 0);
    }

    /// Takes an event; the new point, where any figure has changed by it.
    pub fn observe(&mut self, event: &Event) -> Option<Point> {
        match &event.what {
            What::Routed { arrival, replica, .. } => {
                let own = &mut self.assignments[*replica as usize];
                *own += 1;
                self.most = self.most.max(*own);
                self.routed += 1;
                let open = Open { arrival: event.time(), prompt: arrival.prompt, first: None, generated: 0 };
                self.open.insert(arrival.request, open);
            }
            What::Rejected { .. } => {}
            What::StepStarted { start, .. } => {
                for one in start.admitted.iter().filter(|one| one.first) {
                    self.prompt += u64::from(self.open.get(&one.request).map_or(0, |open| open.prompt));
                    self.cached += u64::from(one.cached);
                }
            }
            What::StepEnded { end, .. } => {
                for token in &end.emitted {
                    self.emitted(token.request, token.last, event.time());
                }
            }
        }
        let point = Point {
            at: event.time().seconds(),
            reuse: (self.prompt > 0).then(|| self.cached as f64 / self.prompt as f64),
            imbalance: (self.routed > 0)
                .then(|| self.most as f64 * self.assignments.len() as f64 / self.routed as f64),
            good: self.good,
        };
        let same = self.latest.is_some_and(|latest| Point { at: point.at, ..latest } == point);
        self.latest = Some(point);
        (!same).then_some(point)
    }

    fn emitted(&mut self, request: RequestId, last: bool, now: Time) {
        let Some(open) = self.open.get_mut(&request) else { return };
        open.generated += 1;
        let first = *open.first.get_or_insert(now);
        if last {
            let ttft = first.since(open.arrival).seconds();
            let gaps = open.generated.saturating_sub(1);
            let itl = (gaps > 0).then(|| now.since(first).seconds() / f64::from(gaps));
            if ttft <= self.objectives.ttft && itl.is_none_or(|itl| itl <= self.objectives.itl) {
                self.good += 1;
            }
            self.open.remove(&request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::params::{BackendKind, Config};

    #[test]
    fn the_last_point_is_the_summary() {
        let config = Config {
            backend: BackendKind::Modelled,
            requests: 200,
            slo_itl: 0.2,
            rate: 4.0,
            ..Config::default()
        };
        let experiment = Experiment::new(config);
        for policy in crate::policy::PolicyKind::ALL {
            let mut trend = Trend::new(4, experiment.config.objectives());
            let (mut recorder, mut points) = (experiment.recorder(), Vec::new());
            experiment
                .simulation(policy, experiment.modelled_clock())
                .run(|event| {
                    recorder.observe(&event);
                    points.extend(trend.observe(&event));
                })
                .expect("it fits the clock");
            let (last, summary) = (points.last().expect("points"), experiment.summary(&recorder));
            assert_eq!(last.reuse, summary.reuse);
            assert_eq!(last.imbalance, summary.imbalance);
            assert_eq!(last.good as usize, summary.good);
            assert!(summary.good > 0 && points.is_sorted_by(|a, b| a.at <= b.at));
        }
    }
}
