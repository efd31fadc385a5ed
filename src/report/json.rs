//! Results as JSON: written in Rust, so that the command line and the browser write the same bytes.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::experiment::{Experiment, Source};
use crate::params::{Config, Group, PARAMS, knobs_of};
use crate::policy::PolicyKind;
use crate::sim::Summary;

/// One policy's run with the configuration that reproduces it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The policy.
    pub policy: &'static str,
    /// Its figures.
    #[serde(flatten)]
    pub summary: Summary,
    /// The full configuration.
    pub configuration: Configuration,
}

/// A configuration, written in the order of the parameter table.
#[derive(Clone, Debug)]
pub struct Configuration {
    config: Config,
    policy: PolicyKind,
    trace: Option<Source>,
}

impl Serialize for Configuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", env!("CARGO_PKG_VERSION"))?;
        map.serialize_entry("trace", &self.trace.as_ref().map(|source| &source.file))?;
        if let Some(Source { trace_block, spread, read, .. }) = &self.trace {
            if let Some(block) = trace_block {
                map.serialize_entry("trace_block", &block)?;
            }
            if *spread {
                map.serialize_entry("spread", &true)?;
            }
            if let Some(read) = read {
                map.serialize_entry("trace_read", read)?;
            }
        }
        let pool = self.config.kv_pool();
        // A trace from a file was made by none of the generator's parameters.
        for param in PARAMS.iter().filter(|p| self.trace.is_none() || p.group != Group::Trace) {
            let has_part = match param.key {
                "policy" => false,
                "accelerator" | "model" | "tp" => pool.is_some(),
                "cost" => pool.is_none(),
                _ => true,
            };
            if has_part {
                map.serialize_entry(param.key, &param.json(&self.config))?;
            }
        }
        if self.trace.is_none() && self.config.shape != Default::default() {
            map.serialize_entry("shape", &self.config.shape.to_string())?;
        }
        if self.trace.is_none() && self.config.arrivals != Default::default() {
            map.serialize_entry("arrivals", &self.config.arrivals.to_string())?;
        }
        for (param, _) in knobs_of(self.policy) {
            map.serialize_entry(param.key, &param.json(&self.config))?;
        }
        if let Some(pool) = pool {
            map.serialize_entry("kv_pool", &pool)?;
        }
        map.serialize_entry("step_price_picoseconds", &self.config.price())?;
        map.end()
    }
}

impl Report {
    /// What a run of an experiment under a policy came to.
    pub fn new(experiment: &Experiment, policy: PolicyKind, summary: Summary) -> Report {
        Report {
            policy: policy.name(),
            summary,
            configuration: Configuration {
                config: experiment.config.clone(),
                policy,
                trace: experiment.source.clone(),
            },
        }
    }
}

/// The reports as a JSON array, one object a policy, with a line's end.
pub fn to_json(reports: &[Report]) -> String {
    serde_json::to_string_pretty(reports).expect("reports hold no map with other keys than texts") + "\n"
}

/// Several arrays, each as [`to_json`] writes it, as the one array that it would have written of all
/// of their reports: runs that came from different workers become one file.
pub fn join_json<'a>(arrays: impl IntoIterator<Item = &'a str>) -> String {
    let objects: Vec<&str> =
        arrays.into_iter().filter_map(|array| array.strip_prefix("[\n")?.strip_suffix("\n]\n")).collect();
    if objects.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", objects.join(",\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::BackendKind;

    #[test]
    fn joined_arrays_are_the_bytes_of_the_whole() {
        let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..Config::default() });
        let reports: Vec<Report> = PolicyKind::ALL
            .into_iter()
            .map(|policy| {
                let recorder =
                    experiment.run(policy, experiment.modelled_clock()).expect("it fits the clock");
                Report::new(&experiment, policy, experiment.summary(&recorder))
            })
            .collect();
        let single: Vec<String> = reports.iter().map(|r| to_json(std::slice::from_ref(r))).collect();
        assert_eq!(join_json(single.iter().map(String::as_str)), to_json(&reports));
        assert_eq!(join_json([]), to_json(&[]));
    }
}
