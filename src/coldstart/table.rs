//! The table of settings, of the same kind as an experiment's.

use super::{Bandwidth, Parameters, Precision, Settings};
use crate::params::{Field, Group, Kind, Param};

/// How fast weights may come, by where they come from.
pub const BANDWIDTHS: Kind = Kind::Quantity {
    names: &[
        ("network-disk", "a cloud's network disk, 1.05 GB/s"),
        ("object-store", "an object store read in parallel, 3.1 GB/s"),
        ("nvme", "a local flash disk, 3.5 GB/s"),
        ("page-cache", "files already in memory, plainly loaded, 5.3 GB/s"),
        ("pcie", "the bus to the device alone, PCIe 5.0 ×16, 64 GB/s"),
    ],
    number: "a number from 1e6 to 1e13, such as 3.5e9 or 3.5GB/s",
};

/// Every setting, in the order of controls and help.
pub static PARAMS: [Param<Settings>; 3] = [
    Param {
        key: "parameters",
        label: "Parameters",
        unit: "",
        help: "How many parameters the model has.",
        group: Group::ColdStart,
        kind: Kind::Quantity {
            names: &[
                ("llama-3.1-8b", "Llama 3.1 8B: 8,030,261,248"),
                ("llama-3.1-70b", "Llama 3.1 70B: 70,553,706,496"),
                ("llama-3.1-405b", "Llama 3.1 405B: 405,853,388,800"),
                ("tinygpt", "TinyGPT, which runs here: 5,838,080"),
            ],
            number: "a number from 1 to 1e14, such as 8e9 or 8B (M, B, T: 10^6, 10^9, 10^12)",
        },
        optional: false,
        field: Field::Quantity {
            get: |s| s.parameters.text(),
            set: |s, text| Parameters::parse(text).map(|p| s.parameters = p).is_some(),
            number: |s| s.parameters.count() as f64,
        },
    },
    Param {
        key: "precision",
        label: "Precision",
        unit: "",
        help: "What type the weights are stored in.",
        group: Group::ColdStart,
        kind: Kind::Choice(&[
            ("fp32", "4 bytes a parameter"),
            ("fp16", "2 bytes a parameter"),
            ("bf16", "2 bytes a parameter"),
            ("fp8", "1 byte a parameter"),
            ("int8", "1 byte a parameter"),
            ("int4", "half a byte a parameter, the scales not counted"),
        ]),
        optional: false,
        field: Field::Choice(
            |s| Precision::ALL.iter().position(|p| *p == s.precision).expect("every precision is listed"),
            |s, i| s.precision = Precision::ALL[i],
        ),
    },
    Param {
        key: "bandwidth",
        label: "Bandwidth",
        unit: "bytes/s",
        help: "How fast the weights come, by where they come from; GB is 10^9 bytes.",
        group: Group::ColdStart,
        kind: BANDWIDTHS,
        optional: false,
        field: Field::Quantity {
            get: |s| s.bandwidth.text(),
            set: |s, text| Bandwidth::parse(text).map(|b| s.bandwidth = b).is_some(),
            number: |s| s.bandwidth.rate().0,
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coldstart::{Model, Path, rate_text};

    #[test]
    fn what_the_table_says_of_each_name_is_so() {
        for (model, (name, means)) in Model::ALL.iter().zip(PARAMS[0].choices()) {
            assert_eq!(model.name(), *name);
            assert!(means.replace(',', "").ends_with(&model.parameters().to_string()), "{means}");
        }
        for (precision, (name, _)) in Precision::ALL.iter().zip(PARAMS[1].choices()) {
            assert_eq!(precision.name(), *name);
        }
        for (path, (name, means)) in Path::ALL.iter().zip(PARAMS[2].choices()) {
            assert_eq!(path.name(), *name);
            assert!(means.ends_with(&rate_text(path.rate())), "{means}");
        }
    }

    #[test]
    fn what_is_refused_is_named_and_changes_nothing() {
        let mut settings = Settings::default();
        for (param, bad) in PARAMS.iter().zip(["0", "int3", "3.5"]) {
            let problem = param.set(&mut settings, bad).expect_err(bad);
            assert_eq!(problem.key, param.key);
            assert!(problem.problem.contains(&format!("found `{bad}`")), "{problem}");
        }
        assert_eq!(settings, Settings::default());
    }
}
