//! How long until a new replica is of use.
//!
//! [`WeightsTransfer`] is bytes of weights ÷ bandwidth, with nothing else happening, so a floor; [`LEFT_OUT`] says
//! what lies on top of it. The whole of a cold start is in [`start`]: a [route] of stages for the weights, stored in a
//! [format](mod@format), and what is [measured](phases) around them; [techniques] shorten it, [outage] says what it means for a
//! fleet, and [measured] holds the floor against published loading times. GB is 10⁹ bytes throughout.

use core::fmt;

mod bandwidth;
mod consequences;
pub mod format;
pub mod measured;
mod model;
mod numbers;
pub mod outage;
pub mod phases;
mod precision;
pub mod route;
pub mod start;
mod table;
pub mod techniques;
mod transfer;

pub use bandwidth::{Bandwidth, Path};
pub use consequences::{Consequence, consequences};
pub use model::{Model, Parameters};
pub use numbers::{bytes_text, count_text, rate_text, seconds_text};
pub use precision::Precision;
pub use table::{BANDWIDTHS, PARAMS};
pub use transfer::{Cell, Row, WeightsTransfer, rows};

use crate::params::{Problem, nearest};

/// What a cold start's settings are called in the page's URL: this, then the parameter's key.
pub const URL_PREFIX: &str = "cold_";

/// What a transfer's time does not contain.
pub const LEFT_OUT: [&str; 5] = [
    "a machine: being given one, starting it, pulling the container's image",
    "the process: importing the framework, setting up devices and memory",
    "everything between the wire and the device: opening files, checking, copying, reshaping for several devices",
    "compilation and graph capture, which a server repeats on every start that has no cache of them",
    "the first requests, which find cold caches and an empty KV pool",
];

/// The values of every setting; see [`PARAMS`] for what each means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the table of parameters documents each, once")]
pub struct Settings {
    pub parameters: Parameters,
    pub precision: Precision,
    pub bandwidth: Bandwidth,
}

impl Settings {
    /// The transfer that they describe.
    pub fn transfer(&self) -> WeightsTransfer {
        WeightsTransfer {
            parameters: self.parameters.count(),
            precision: self.precision,
            bandwidth: self.bandwidth.rate(),
        }
    }

    /// What a URL has to carry: keys with [`URL_PREFIX`] and values that need no escaping, only
    /// where they differ from the defaults.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        let default = Settings::default();
        let differs = PARAMS.iter().filter(|p| p.get(self) != p.get(&default));
        differs.map(|p| (format!("{URL_PREFIX}{}", p.key), p.get(self))).collect()
    }

    /// Reads such pairs; keys without the prefix are none of ours. What was not understood is left
    /// at its default and told.
    pub fn from_pairs<K: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> (Settings, Vec<Problem>) {
        let mut settings = Settings::default();
        let mut problems = Vec::new();
        for (key, value) in pairs {
            let Some(own) = key.as_ref().strip_prefix(URL_PREFIX) else { continue };
            let problem = match PARAMS.iter().find(|p| p.key == own) {
                Some(param) => param.set(&mut settings, value.as_ref()).err().map(|p| p.problem),
                None => {
                    let near = nearest(own, PARAMS.iter().map(|p| p.key));
                    let hint =
                        near.map_or_else(String::new, |n| format!("; did you mean `{URL_PREFIX}{n}`?"));
                    Some(format!("no such setting{hint}"))
                }
            };
            problems.extend(problem.map(|problem| Problem { key: key.as_ref().to_owned(), problem }));
        }
        (settings, problems)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.parameters, self.precision, self.bandwidth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::pairs;

    #[test]
    fn every_setting_reads_back_what_it_writes() {
        for param in &PARAMS {
            let mut copy = Settings::default();
            param.set(&mut copy, &param.get(&Settings::default())).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(copy, Settings::default(), "{}", param.key);
            for (name, means) in param.choices() {
                param.set(&mut copy, name).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!((param.get(&copy).as_str(), means.is_empty()), (*name, false));
            }
        }
    }

    #[test]
    fn a_url_carries_only_what_differs_and_reads_back() {
        assert_eq!(Settings::default().to_pairs(), []);
        let query = "cold_parameters=13e9&cold_precision=int4&rate=3&cold_bandwidth=2.5GB%2Fs";
        let (settings, problems) = Settings::from_pairs(pairs(query));
        assert_eq!(problems, []);
        let written = settings.to_pairs();
        let written: Vec<(&str, &str)> = written.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            written,
            [
                ("cold_parameters", "13000000000"),
                ("cold_precision", "int4"),
                ("cold_bandwidth", "2500000000")
            ]
        );
        assert_eq!(Settings::from_pairs(written), (settings, vec![]));
    }

    #[test]
    fn what_a_url_gets_wrong_is_told_and_left_at_its_default() {
        let (settings, problems) = Settings::from_pairs(pairs("?cold_precision=int3&cold_bandwith=nvme"));
        assert_eq!(settings, Settings::default());
        assert_eq!(problems[0].key, "cold_precision");
        assert!(problems[0].problem.contains("`int3`") && problems[0].problem.contains("int4"));
        assert!(problems[1].problem.contains("`cold_bandwidth`"), "{}", problems[1]);
    }
}
