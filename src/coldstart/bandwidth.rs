//! How fast bytes come, by where they come from.

use core::fmt;

use super::numbers;
use crate::units::BytesPerSecond;

/// Where weights come from: the slowest part of that way sets the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// A network disk of a cloud.
    NetworkDisk,
    /// An object store, read by many connections at once.
    ObjectStore,
    /// A flash disk in the machine.
    #[default]
    Nvme,
    /// The machine's memory, where the files were read before.
    PageCache,
    /// The bus between memory and device, and nothing else.
    Pcie,
}

impl Path {
    /// Every path, from the slowest to the fastest.
    pub const ALL: [Path; 5] =
        [Path::NetworkDisk, Path::ObjectStore, Path::Nvme, Path::PageCache, Path::Pcie];

    /// Its name on the command line and in the URL.
    pub fn name(self) -> &'static str {
        match self {
            Path::NetworkDisk => "network-disk",
            Path::ObjectStore => "object-store",
            Path::Nvme => "nvme",
            Path::PageCache => "page-cache",
            Path::Pcie => "pcie",
        }
    }

    /// Its name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Path::NetworkDisk => "network disk",
            Path::ObjectStore => "object store",
            Path::Nvme => "local NVMe",
            Path::PageCache => "page cache",
            Path::Pcie => "PCIe",
        }
    }

    /// One realistic rate for it, of the many that there are; [`Path::source`] says whose.
    pub fn rate(self) -> BytesPerSecond {
        BytesPerSecond(match self {
            Path::NetworkDisk => 1.05e9,
            Path::ObjectStore => 3.1e9,
            Path::Nvme => 3.5e9,
            Path::PageCache => 5.3e9,
            Path::Pcie => 64e9,
        })
    }

    /// Where its rate is from.
    pub fn source(self) -> &'static str {
        match self {
            Path::NetworkDisk => {
                "1.05 GB/s: the 1,000 MiB/s that an AWS gp3 volume was sold with until 2025; Run:ai's streamer reads one at that limit (15 GB in 14.3 s; runai-model-streamer, docs/src/benchmarks.md)"
            }
            Path::ObjectStore => {
                "3.1 GB/s: 15 GB from S3 in 4.9 s by Run:ai's streamer (runai-model-streamer, docs/src/benchmarks.md; another revision of that page has 4.2 s)"
            }
            Path::Nvme => {
                "3.5 GB/s: what vendors state for sequential reads of a PCIe 3.0 ×4 drive; plain safetensors loading reaches 3.2 to 3.6 GB/s even from far faster disks (ServerlessLLM, benchmarks/results/h100_2025)"
            }
            Path::PageCache => {
                "5.3 GB/s: a 32B model by plain safetensors from files already in memory, 12.5 s (ServerlessLLM, benchmarks/results/h100_2025); better loaders come near the bus"
            }
            Path::Pcie => {
                "64 GB/s: PCIe 5.0 ×16 in one direction, nominal (32 GT/s × 16 lanes ÷ 8 bits); no loader reaches it"
            }
        }
    }
}

/// A bandwidth: a path's, or any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bandwidth {
    /// A known path's.
    Of(Path),
    /// So much.
    Rate(BytesPerSecond),
}

impl Default for Bandwidth {
    fn default() -> Self {
        Bandwidth::Of(Path::default())
    }
}

impl Bandwidth {
    /// The least that is taken, in bytes a second.
    pub const MIN: f64 = 1e6;

    /// The most that is taken, in bytes a second.
    pub const MAX: f64 = 1e13;

    /// How fast.
    pub fn rate(self) -> BytesPerSecond {
        match self {
            Bandwidth::Of(path) => path.rate(),
            Bandwidth::Rate(rate) => rate,
        }
    }

    /// Reads a path's name or a number of bytes a second, with or without a decimal unit.
    pub fn parse(text: &str) -> Option<Bandwidth> {
        if let Some(path) = Path::ALL.into_iter().find(|p| p.name() == text) {
            return Some(Bandwidth::Of(path));
        }
        let units = [("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)];
        let rate = numbers::read(text, &units)?;
        (Bandwidth::MIN..=Bandwidth::MAX).contains(&rate).then_some(Bandwidth::Rate(BytesPerSecond(rate)))
    }

    /// As [`Bandwidth::parse`] reads it.
    pub fn text(self) -> String {
        match self {
            Bandwidth::Of(path) => path.name().to_owned(),
            Bandwidth::Rate(rate) => rate.0.to_string(),
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = numbers::rate_text(self.rate());
        match self {
            Bandwidth::Of(path) => write!(f, "{} ({rate})", path.title()),
            Bandwidth::Rate(_) => f.write_str(&rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_opens_with_the_rate_that_it_is_for() {
        for path in Path::ALL {
            let rate = numbers::rate_text(path.rate());
            assert!(path.source().starts_with(&rate), "{rate}: {}", path.source());
        }
        assert!(Path::ALL.map(|p| p.rate()).is_sorted());
    }

    #[test]
    fn a_bandwidth_is_a_name_or_a_number_of_decimal_bytes() {
        assert_eq!(Bandwidth::parse("nvme"), Some(Bandwidth::Of(Path::Nvme)));
        for text in ["3.5e9", "3500000000", "3.5GB/s", "3.5 GB/s", "3500MB/s", "0.0035TB/s"] {
            let rate = Bandwidth::parse(text).expect(text).rate().0;
            assert!((rate - 3.5e9).abs() < 1.0, "{text}: {rate}");
        }
        for bad in ["", "0", "3.5", "-1GB/s", "inf", "10Gb/s", "3.5GiB/s", "20TB/s", "ssd"] {
            assert_eq!(Bandwidth::parse(bad), None, "{bad}");
        }
    }
}
