//! Any set of policies on one trace: what each came to, where two first decide otherwise, and what a
//! policy's own threshold trades.

use serde::Serialize;

mod curve;
mod words;

pub use curve::{Curve, Point, curve};
pub use words::{curve_table, table, to_json};

use crate::engine::Rejection;
use crate::experiment::Experiment;
use crate::fleet::Devices;
use crate::params::BackendKind;
use crate::policy::{Decision, PolicyKind, explain};
use crate::report::{Prediction, grain, prediction};
use crate::sim::{Arrival, Observer, Recorder, Summary, TooLong, What, run_express_observed};

/// Every decision of a run, by request; `None` for what was refused.
#[derive(Clone, Debug, Default)]
struct Decisions(Vec<Option<Decision>>);

impl Observer for Decisions {
    fn routed(&mut self, _at: u64, _arrival: &Arrival, _replica: u32, decision: Option<&Decision>) {
        self.0.push(decision.cloned());
    }

    fn rejected(&mut self, _at: u64, _arrival: &Arrival, _rejection: Rejection) {
        self.0.push(None);
    }
}

/// A policy's run.
#[derive(Clone, Debug)]
pub struct Side {
    /// Which.
    pub policy: PolicyKind,
    /// Its figures.
    pub summary: Summary,
    /// Its decisions, by request.
    pub decisions: Vec<Option<Decision>>,
    /// What it expected to be cached against what was, if it expected anything.
    pub prediction: Option<Prediction>,
}

impl Side {
    /// The busiest replica's share of all requests that were sent.
    pub fn busiest_share(&self) -> Option<f64> {
        busiest_share(&self.summary)
    }
}

/// The busiest replica's share of all requests that were sent.
pub fn busiest_share(summary: &Summary) -> Option<f64> {
    let sum: u64 = summary.assignments.iter().sum();
    let most = summary.assignments.iter().copied().max()?;
    (sum > 0).then(|| most as f64 / sum as f64)
}

/// Runs an experiment under a policy at its price, with its decisions.
pub fn side(experiment: &Experiment, policy: PolicyKind) -> Result<Side, TooLong> {
    let config = &experiment.config;
    let (mut decisions, mut recorder) = (Decisions::default(), experiment.recorder());
    if config.backend == BackendKind::Modelled && config.devices == Devices::Separate {
        let (sampling, price, fleet) = (config.sampling(), config.price(), &mut experiment.fleet(policy));
        run_express_observed(fleet, &experiment.trace, &sampling, &price, &mut recorder, &mut decisions)?;
    } else {
        experiment.simulation(policy, experiment.modelled_clock()).run(|event| {
            recorder.observe(&event);
            match &event.what {
                What::Routed { decision, .. } => decisions.0.push(decision.clone()),
                What::Rejected { .. } => decisions.0.push(None),
                _ => {}
            }
        })?;
    }
    let expected = expected(experiment, policy, &decisions.0, &recorder);
    Ok(Side {
        policy,
        summary: experiment.summary(&recorder),
        decisions: decisions.0,
        prediction: (expected.requests > 0).then_some(expected),
    })
}

fn expected(
    experiment: &Experiment,
    policy: PolicyKind,
    decisions: &[Option<Decision>],
    recorder: &Recorder,
) -> Prediction {
    let config = &experiment.config;
    prediction(&experiment.trace, decisions, recorder, config.block_size, grain(config, policy))
}

/// One policy's word on a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pick {
    /// Whose.
    pub policy: &'static str,
    /// Where it sent it.
    pub replica: u32,
    /// Why.
    pub why: String,
}

/// The first request that two policies send to different replicas.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parting {
    /// The two, in the order in which they were asked for.
    pub policies: [&'static str; 2],
    /// The request and what each says of it; `None`: they decide alike throughout.
    pub first: Option<Parted>,
}

/// Where two policies part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parted {
    /// The request.
    pub request: u32,
    /// When it arrives, in seconds.
    pub at: f64,
    /// What each says.
    pub picks: [Pick; 2],
}

/// Policies beside each other.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One a policy, in the order in which they were asked for.
    pub sides: Vec<Side>,
    /// One a pair.
    pub partings: Vec<Parting>,
}

/// Runs an experiment under each of its policies.
pub fn compare(experiment: &Experiment) -> Result<Comparison, TooLong> {
    let policies = &experiment.config.policy;
    let sides: Vec<Side> =
        policies.iter().map(|&policy| side(experiment, policy)).collect::<Result<_, _>>()?;
    let mut partings = Vec::new();
    for (at, one) in sides.iter().enumerate() {
        partings.extend(sides[at + 1..].iter().map(|other| parting(experiment, one, other)));
    }
    Ok(Comparison { sides, partings })
}

fn parting(experiment: &Experiment, one: &Side, other: &Side) -> Parting {
    let both = one.decisions.iter().zip(&other.decisions).enumerate();
    let differ = both.filter_map(|(request, (a, b))| Some((request, a.as_ref()?, b.as_ref()?)));
    let first = differ.into_iter().find(|(_, a, b)| a.replica != b.replica);
    let pick = |side: &Side, decision: &Decision| Pick {
        policy: side.policy.name(),
        replica: decision.replica,
        why: explain(side.policy, decision),
    };
    Parting {
        policies: [one.policy.name(), other.policy.name()],
        first: first.map(|(request, a, b)| Parted {
            request: request as u32,
            at: experiment.trace.requests[request].arrival.seconds(),
            picks: [pick(one, a), pick(other, b)],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Config;

    fn experiment(policy: Vec<PolicyKind>, devices: Devices) -> Experiment {
        Experiment::new(Config { backend: BackendKind::Modelled, devices, policy, ..Config::default() })
    }

    #[test]
    fn every_policy_runs_explains_itself_and_is_the_same_from_event_to_event() {
        for devices in [Devices::Shared, Devices::Separate] {
            let experiment = experiment(PolicyKind::every().collect(), devices);
            let comparison = compare(&experiment).expect("it fits the clock");
            for side in &comparison.sides {
                assert_eq!((side.summary.completed, side.decisions.len()), (24, 24), "{:?}", side.policy);
                for decision in side.decisions.iter().flatten() {
                    let why = explain(side.policy, decision);
                    assert!(why.ends_with('.') && !why.contains("NaN") && why.len() > 20, "{why}");
                }
                let plain =
                    experiment.run(side.policy, experiment.modelled_clock()).expect("it fits the clock");
                assert_eq!(experiment.summary(&plain), side.summary, "{:?}", side.policy);
            }
        }
    }

    #[test]
    fn where_two_part_both_say_why() {
        let policies = vec![PolicyKind::RoundRobin, PolicyKind::LeastRequests, PolicyKind::LongestPrefix];
        let experiment = experiment(policies, Devices::Separate);
        let comparison = compare(&experiment).expect("it fits the clock");
        assert_eq!(comparison.partings.len(), 3);
        for parting in &comparison.partings {
            let Parted { request, picks: [a, b], .. } =
                parting.first.as_ref().expect("they differ somewhere");
            assert!(a.replica != b.replica && !a.why.is_empty() && !b.why.is_empty());
            let replica = |name: &str, at: usize| {
                let side = comparison.sides.iter().find(|side| side.policy.name() == name);
                side.expect("it ran").decisions[at].as_ref().map(|decision| decision.replica)
            };
            for before in 0..*request as usize {
                assert_eq!(replica(a.policy, before), replica(b.policy, before));
            }
        }
    }
}
