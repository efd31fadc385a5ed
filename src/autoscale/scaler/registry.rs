//! The scalers by name, and what they are built from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::fixed::Fixed;
use super::*;

/// The scalers by name, in the order in which people meet them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalerKind {
    /// None.
    Fixed,
    /// Kubernetes' HPA on compute utilisation.
    Hpa,
    /// KEDA on waiting requests.
    Keda,
    /// Knative's on concurrency.
    Kpa,
    /// AIBrix's on KV utilisation.
    Apa,
    /// llm-d's on spare capacity.
    Wva,
    /// Dynamo's on load thresholds.
    Dynamo,
    /// On the queue's derivative.
    #[serde(rename = "queue-derivative")]
    Derivative,
    /// On predicted arrivals.
    Predictive,
    /// On the future.
    Oracle,
}

/// What of the scalers' constants can be said for all of them at once; `None`: each has its own. It goes to
/// those that have such a thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overrides {
    /// What a replica should have, in the scaler's own unit.
    pub target: Option<f64>,
    /// How far from the target is near enough, as a fraction.
    pub tolerance: Option<f64>,
    /// The time between decisions, in seconds.
    pub interval: Option<f64>,
    /// How long fewer must have been enough, in seconds.
    pub down_window: Option<f64>,
    /// What is done about replicas that do not serve yet.
    pub pending: Pending,
}

/// What scalers know of the fleet and of what it serves, besides samples.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Replicas at first.
    pub replicas: u32,
    /// How long a replica takes to serve.
    pub lead: Span,
    /// Requests a second that one serves within the objectives.
    pub capacity: f64,
    /// Tokens that a sequence may have.
    pub context: u32,
    /// Arrivals in each stretch of `bucket`: the future, for the one that knows it.
    pub arrivals: Arc<[u32]>,
    /// That stretch.
    pub bucket: Span,
}

impl Surroundings {
    /// Of which nothing is known: for asking a scaler what does not depend on it.
    pub fn unknown() -> Surroundings {
        Surroundings {
            replicas: 1,
            lead: Span::GRAIN,
            capacity: 1.0,
            context: 1,
            arrivals: Arc::from([]),
            bucket: Span::GRAIN,
        }
    }
}

impl ScalerKind {
    /// Every scaler.
    pub const ALL: [ScalerKind; 10] = [
        ScalerKind::Fixed,
        ScalerKind::Hpa,
        ScalerKind::Keda,
        ScalerKind::Kpa,
        ScalerKind::Apa,
        ScalerKind::Wva,
        ScalerKind::Dynamo,
        ScalerKind::Derivative,
        ScalerKind::Predictive,
        ScalerKind::Oracle,
    ];

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            ScalerKind::Fixed => "fixed",
            ScalerKind::Hpa => "hpa",
            ScalerKind::Keda => "keda",
            ScalerKind::Kpa => "kpa",
            ScalerKind::Apa => "apa",
            ScalerKind::Wva => "wva",
            ScalerKind::Dynamo => "dynamo",
            ScalerKind::Derivative => "queue-derivative",
            ScalerKind::Predictive => "predictive",
            ScalerKind::Oracle => "oracle",
        }
    }

    /// What it does, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            ScalerKind::Fixed => "as many as at first, whatever comes",
            ScalerKind::Hpa => "Kubernetes' HPA on compute utilisation, target 0.8",
            ScalerKind::Keda => "KEDA on waiting requests, 5 a replica",
            ScalerKind::Kpa => "Knative's KPA on requests in flight, 70 a replica, with a panic window",
            ScalerKind::Apa => "AIBrix's APA on KV utilisation, target 0.5",
            ScalerKind::Wva => "llm-d's WVA on spare KV and spare queue, one at a time",
            ScalerKind::Dynamo => "Dynamo's planner on load thresholds, one at a time",
            ScalerKind::Derivative => "how fast the queue grows",
            ScalerKind::Predictive => "the arrivals of a cold start from now, by the trend",
            ScalerKind::Oracle => "knows the trace: a bound",
        }
    }

    /// The scaler of a name.
    pub fn from_name(name: &str) -> Option<ScalerKind> {
        ScalerKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it reads compute utilisation, which is known only of accelerators.
    pub fn reads_compute(self) -> bool {
        self == ScalerKind::Hpa
    }

    /// A fresh scaler of this kind.
    pub fn build(self, overrides: &Overrides, about: &Surroundings) -> Box<dyn Scaler> {
        let &Overrides { pending, .. } = overrides;
        let target = |own: f64| overrides.target.unwrap_or(own);
        let tolerance = |own: f64| overrides.tolerance.unwrap_or(own);
        let span = |seconds: Option<f64>, own: Span| seconds.and_then(Span::from_seconds).unwrap_or(own);
        let interval = |own: Span| span(overrides.interval, own).max(Span::GRAIN);
        let down = |own: Span| span(overrides.down_window, own);
        let behaviour = |own: Behaviour| Behaviour { down_window: down(own.down_window), ..own };
        let &Surroundings { lead, capacity, bucket, .. } = about;
        match self {
            ScalerKind::Fixed => Box::new(Fixed { replicas: about.replicas }),
            ScalerKind::Hpa => {
                let own = HpaConfig::default();
                Box::new(Hpa::new(HpaConfig {
                    target: target(own.target),
                    tolerance: tolerance(own.tolerance),
                    interval: interval(own.interval),
                    behaviour: behaviour(own.behaviour),
                    pending,
                }))
            }
            ScalerKind::Keda => {
                let own = KedaConfig::default();
                Box::new(Keda::new(KedaConfig {
                    threshold: target(own.threshold),
                    tolerance: tolerance(own.tolerance),
                    interval: interval(own.interval),
                    behaviour: behaviour(own.behaviour),
                    ..own
                }))
            }
            ScalerKind::Kpa => {
                let own = KpaConfig::default();
                Box::new(Kpa::new(KpaConfig {
                    target: target(own.target),
                    interval: interval(own.interval),
                    ..own
                }))
            }
            ScalerKind::Apa => {
                let own = ApaConfig::default();
                Box::new(Apa::new(ApaConfig {
                    target: target(own.target),
                    up_tolerance: tolerance(own.up_tolerance),
                    down_tolerance: tolerance(own.down_tolerance),
                    interval: interval(own.interval),
                    down_cooldown: down(own.down_cooldown),
                    pending,
                    ..own
                }))
            }
            ScalerKind::Wva => {
                let own = WvaConfig::default();
                Box::new(Wva::new(WvaConfig { interval: interval(own.interval), pending, ..own }))
            }
            ScalerKind::Dynamo => {
                let own = DynamoConfig { context: about.context.into(), ..DynamoConfig::default() };
                Box::new(Dynamo::new(DynamoConfig { interval: interval(own.interval), pending, ..own }))
            }
            ScalerKind::Derivative => {
                let own = DerivativeConfig::default();
                Box::new(Derivative::new(DerivativeConfig {
                    lead,
                    interval: interval(own.interval),
                    down_window: down(own.down_window),
                    ..own
                }))
            }
            ScalerKind::Predictive => {
                let own = PredictiveConfig::default();
                Box::new(Predictive::new(PredictiveConfig {
                    capacity,
                    lead,
                    interval: interval(own.interval),
                    down_window: down(own.down_window),
                    ..own
                }))
            }
            ScalerKind::Oracle => {
                let own = OracleConfig::default();
                let arrivals = about.arrivals.clone();
                Box::new(Oracle::new(OracleConfig {
                    capacity,
                    lead,
                    arrivals,
                    bucket,
                    interval: interval(own.interval),
                    ..own
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_their_own_and_everybody_is_built() {
        let about = Surroundings::unknown();
        for kind in ScalerKind::ALL {
            assert_eq!(ScalerKind::from_name(kind.name()), Some(kind));
            let json = serde_json::to_string(&kind).expect("a name");
            assert_eq!(json, format!("\"{}\"", kind.name()));
            let overrides = Overrides { interval: Some(0.5), ..Overrides::default() };
            let scaler = kind.build(&overrides, &about);
            assert_eq!(scaler.kind(), kind);
            assert!(kind == ScalerKind::Fixed || scaler.interval() == Span(500_000_000_000), "{kind:?}");
        }
    }
}
