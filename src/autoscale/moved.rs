//! Which signal moved first, and by how many seconds before the 95th percentile of TTFT broke its objective.
//!
//! A signal has moved at the first scrape at which it is beyond a level that somebody acts on, having been below
//! it before; a level with a source names it. Seconds are from scrape to scrape, so they are exact to one scrape interval.

use serde::Serialize;

use super::signals::{FleetSample, Means};
use crate::sim::Objectives;

/// A signal and the level at which it counts as moved.
struct Rule {
    name: &'static str,
    level: &'static str,
    beyond: fn(&View<'_>) -> bool,
}

/// What a rule looks at.
struct View<'a> {
    sample: &'a FleetSample,
    before: Option<&'a FleetSample>,
    objectives: &'a Objectives,
    capacity: f64,
}

impl View<'_> {
    fn mean(&self, of: fn(&Means) -> Option<f64>, level: f64) -> bool {
        self.sample.mean.as_ref().and_then(of).is_some_and(|value| value >= level)
    }
}

const RULES: [Rule; 10] = [
    Rule {
        name: "arrival rate",
        level: "above what the serving replicas can take",
        beyond: |v| v.sample.rate() > v.capacity * f64::from(v.sample.serving),
    },
    Rule {
        name: "queue derivative",
        level: "above 0 at two scrapes in a row, with a request waiting",
        beyond: |v| {
            v.sample.waiting > 0 && v.sample.slope > 0.0 && v.before.is_some_and(|before| before.slope > 0.0)
        },
    },
    Rule {
        name: "queue depth",
        level: "5 waiting a replica, production-stack's KEDA threshold",
        beyond: |v| v.sample.waiting >= 5 * v.sample.serving.max(1),
    },
    Rule {
        name: "KV utilisation",
        level: "0.80, llm-d's saturation",
        beyond: |v| v.mean(|m| Some(m.kv), 0.80),
    },
    Rule { name: "preemptions", level: "the first", beyond: |v| v.sample.preemptions > 0 },
    Rule { name: "batch occupancy", level: "0.95", beyond: |v| v.mean(|m| Some(m.occupancy), 0.95) },
    Rule {
        name: "compute utilisation",
        level: "0.80, KServe's HPA target",
        beyond: |v| v.mean(|m| m.compute, 0.80),
    },
    Rule { name: "memory-bandwidth utilisation", level: "0.80", beyond: |v| v.mean(|m| m.memory, 0.80) },
    Rule {
        name: "GPU busy",
        level: "0.95; it is what nvidia-smi shows",
        beyond: |v| v.mean(|m| Some(m.busy), 0.95),
    },
    Rule {
        name: "ITL p95",
        level: "above its objective",
        beyond: |v| v.sample.itl[1].is_some_and(|itl| itl > v.objectives.itl),
    },
];

/// When a signal moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// The signal.
    pub signal: &'static str,
    /// The level that it passed.
    pub level: &'static str,
    /// When, in seconds; null: it never did.
    pub at: Option<f64>,
    /// Seconds before TTFT broke (negative: after); null where either never did.
    pub lead: Option<f64>,
    /// The most that it had reached when TTFT broke, where it is a mean over replicas.
    pub then: Option<f64>,
}

/// When signals moved, against when TTFT broke.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FirstMoves {
    /// The first scrape in whose window the 95th percentile of TTFT was above its objective, in seconds; null:
    /// it never was.
    pub broke: Option<f64>,
    /// Each signal, the first to move first; those that never did come last.
    pub signals: Vec<Moved>,
}

/// Finds them in the scrapes of a run.
pub fn first_moves(samples: &[FleetSample], objectives: &Objectives, capacity: f64) -> FirstMoves {
    let seconds = |sample: &FleetSample| sample.time().seconds();
    let broken = |sample: &&FleetSample| sample.ttft[1].is_some_and(|ttft| ttft > objectives.ttft);
    let broke = samples.iter().find(broken).map(seconds);
    let until = samples.iter().position(|s| broken(&s)).map_or(samples.len(), |at| at + 1);
    let most = |of: fn(&Means) -> Option<f64>| {
        samples[..until].iter().filter_map(|s| s.mean.as_ref().and_then(of)).reduce(f64::max)
    };
    let mut signals: Vec<Moved> = RULES
        .iter()
        .map(|rule| {
            let beyond = |&at: &usize| {
                let before = at.checked_sub(1).map(|before| &samples[before]);
                (rule.beyond)(&View { sample: &samples[at], before, objectives, capacity })
            };
            // What is beyond it from the beginning has not moved.
            let below = (0..samples.len()).find(|at| !beyond(at)).unwrap_or(samples.len());
            let at = (below..samples.len()).find(beyond);
            let at = at.map(|at| seconds(&samples[at]));
            let then = match rule.name {
                "KV utilisation" => most(|m| Some(m.kv)),
                "batch occupancy" => most(|m| Some(m.occupancy)),
                "compute utilisation" => most(|m| m.compute),
                "memory-bandwidth utilisation" => most(|m| m.memory),
                "GPU busy" => most(|m| Some(m.busy)),
                _ => None,
            };
            let lead = at.zip(broke).map(|(at, broke)| broke - at);
            Moved { signal: rule.name, level: rule.level, at, lead, then }
        })
        .collect();
    // A stable sort: of those that move at one scrape, the order above.
    signals.sort_by(|a, b| a.at.unwrap_or(f64::INFINITY).total_cmp(&b.at.unwrap_or(f64::INFINITY)));
    FirstMoves { broke, signals }
}

impl FirstMoves {
    /// The sentence.
    pub fn text(&self) -> String {
        let Some(broke) = self.broke else {
            return "The 95th percentile of TTFT never broke its objective.".into();
        };
        let Some(first) = self.signals.iter().find(|s| s.lead.is_some_and(|lead| lead >= 0.0)) else {
            return format!("TTFT p95 broke its objective at {broke:.0} s, and no signal had moved before.");
        };
        let mut text = format!(
            "The first signal to move was {} ({}), {:.0} s before TTFT p95 broke its objective at {broke:.0} s.",
            first.signal,
            first.level,
            first.lead.unwrap_or(0.0)
        );
        if let Some(compute) = self.signals.iter().find(|s| s.signal == "compute utilisation")
            && let Some(then) = compute.then
        {
            text += &format!(" Compute utilisation had not been above {:.0} % until then.", 100.0 * then);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::sample;
    use crate::autoscale::signals::ReplicaSample;

    #[test]
    fn the_order_and_the_lead_by_hand() {
        let each = |waiting: u32, kv: f64, compute: f64| ReplicaSample {
            waiting,
            kv,
            compute: Some(compute),
            ..ReplicaSample::default()
        };
        let mut samples = vec![
            sample(5, 2, each(0, 0.3, 0.2)),
            sample(10, 2, each(0, 0.85, 0.3)),
            sample(15, 2, each(6, 0.95, 0.35)),
            sample(20, 2, each(20, 0.99, 0.4)),
            sample(25, 2, each(20, 0.99, 0.9)),
        ];
        samples[1].arrived = 101;
        samples[3].ttft = [Some(0.5), Some(2.0)];
        let moves = first_moves(&samples, &Objectives { ttft: 1.0, itl: 0.05 }, 10.0);
        let found: Vec<_> = moves.signals.iter().filter_map(|s| Some((s.signal, s.lead?))).collect();
        assert_eq!(
            found,
            [
                ("arrival rate", 10.0),
                ("KV utilisation", 10.0),
                ("queue depth", 5.0),
                ("compute utilisation", -5.0)
            ]
        );
        assert_eq!(moves.broke, Some(20.0));
        let text = moves.text();
        assert!(
            text.contains("arrival rate") && text.contains("10 s before") && text.contains("above 40 %"),
            "{text}"
        );
    }

    #[test]
    fn a_quiet_run_says_so() {
        let moves =
            first_moves(&[sample(5, 1, ReplicaSample::default())], &Objectives { ttft: 1.0, itl: 1.0 }, 10.0);
        assert!(moves.text().contains("never broke"));
        assert!(moves.signals.iter().all(|s| s.at.is_none()));
    }
}
