//! What a policy's own threshold trades: hit rate against the busiest replica's share.

use serde::Serialize;

use super::busiest_share;
use crate::experiment::Experiment;
use crate::params::{Config, Problem, param, set};
use crate::policy::PolicyKind;

/// One value of the threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// As the parameter writes it.
    pub value: String,
    /// Whether it is the default.
    pub default: bool,
    /// Whether it is what the configuration says.
    pub set: bool,
    /// Prompt tokens found in a prefix cache ÷ prompt tokens.
    pub reuse: Option<f64>,
    /// The busiest replica's share of requests.
    pub busiest_share: Option<f64>,
    /// Median time to the first token, in seconds.
    pub ttft_p50: Option<f64>,
}

/// A policy over the values of its threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Which.
    pub policy: &'static str,
    /// The parameter's key.
    pub key: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// From one end to the other.
    pub points: Vec<Point>,
}

/// Runs an experiment under a policy with each value of its threshold; `None` where it has none.
pub fn curve(experiment: &Experiment, policy: PolicyKind) -> Result<Option<Curve>, Problem> {
    let Some((key, values)) = policy.threshold() else { return Ok(None) };
    let param = param(key).expect("a policy's threshold is a parameter");
    let (default, own) = (param.get(&Config::default()), param.get(&experiment.config));
    let mut texts: Vec<(f64, String)> = values.iter().map(|value| (*value, value.to_string())).collect();
    for extra in [&default, &own] {
        if texts.iter().all(|(_, text)| text != extra) {
            texts.push((extra.parse().unwrap_or(f64::INFINITY), extra.clone()));
        }
    }
    texts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut points = Vec::with_capacity(texts.len());
    for (_, value) in texts {
        let mut config = experiment.config.clone();
        set(&mut config, key, &value)?;
        let run = Experiment::with_trace(config, experiment.trace.clone(), experiment.source.clone());
        let recorder = run
            .run_modelled(policy)
            .map_err(|too_long| Problem { key: key.into(), problem: too_long.to_string() })?;
        let summary = run.summary(&recorder);
        points.push(Point {
            default: value == default,
            set: value == own,
            reuse: summary.reuse,
            busiest_share: busiest_share(&summary),
            ttft_p50: summary.ttft.p50,
            value,
        });
    }
    Ok(Some(Curve { policy: policy.name(), key: param.key, unit: param.unit, points }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Devices;
    use crate::params::BackendKind;

    #[test]
    fn a_curve_marks_its_default_and_reaches_from_affinity_to_balance() {
        let config = Config {
            backend: BackendKind::Modelled,
            devices: Devices::Separate,
            requests: 200,
            rate: 40.0,
            tenants: 3,
            ..Config::default()
        };
        let experiment = Experiment::new(config);
        for policy in PolicyKind::every() {
            let curve = curve(&experiment, policy).expect("every value is in its range");
            assert_eq!(curve.is_some(), policy.threshold().is_some());
            let Some(curve) = curve else { continue };
            assert_eq!(curve.points.iter().filter(|point| point.default).count(), 1, "{}", curve.key);
            assert!(curve.points.len() >= 8 && curve.points.iter().any(|point| point.set));
        }
        let guard = curve(&experiment, PolicyKind::PrefixAffinity).expect("in range").expect("it has one");
        let (low, high) = (&guard.points[0], &guard.points[guard.points.len() - 1]);
        assert!(low.reuse < high.reuse && low.busiest_share < high.busiest_share, "{guard:?}");
    }
}
