//! Published loading times against what the floor model says: where it is off, and why.

use serde::Serialize;

/// One published measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was loaded, by what, from where.
    pub what: &'static str,
    /// Bytes.
    pub bytes: f64,
    /// The rate of the slowest stage, in bytes a second, as far as it is known.
    pub rate: f64,
    /// Seconds measured.
    pub measured: f64,
    /// Why that is not the floor.
    pub why: &'static str,
    /// Who measured it.
    pub source: &'static str,
}

impl Row {
    /// Bytes ÷ the slowest stage's rate, in seconds.
    pub fn predicted(&self) -> f64 {
        self.bytes / self.rate
    }

    /// Measured ÷ predicted: 1 is the floor.
    pub fn factor(&self) -> f64 {
        self.measured / self.predicted()
    }
}

const RUNAI: &str = "runai-model-streamer, docs/src/benchmarks.md (Llama 3 8B on an A10G)";
const SLLM: &str = "ServerlessLLM, benchmarks/results/h100_2025 (Qwen3-32B; NVMe 29.4 GB/s, PCIe 5 x16)";

/// The table.
pub const TABLE: [Row; 10] = [
    Row {
        what: "8B, safetensors, gp3",
        bytes: 15e9,
        rate: 1.05e9,
        measured: 48.0,
        why: "one thread reads: 0.31 GB/s, whatever the disk can",
        source: RUNAI,
    },
    Row {
        what: "8B, safetensors, io2",
        bytes: 15e9,
        rate: 2e9,
        measured: 47.0,
        why: "the same on a disk that is twice as fast",
        source: RUNAI,
    },
    Row {
        what: "8B, streamer, gp3",
        bytes: 15e9,
        rate: 1.05e9,
        measured: 14.3,
        why: "at the disk's limit",
        source: RUNAI,
    },
    Row {
        what: "8B, streamer, io2",
        bytes: 15e9,
        rate: 2e9,
        measured: 7.5,
        why: "at what it reached there; the disk's own limit is not told",
        source: RUNAI,
    },
    Row {
        what: "8B, streamer, S3",
        bytes: 15e9,
        rate: 3.1e9,
        measured: 4.9,
        why: "the rate is this very measurement's",
        source: RUNAI,
    },
    Row {
        what: "32B, safetensors, NVMe",
        bytes: 65.5e9,
        rate: 29.4e9,
        measured: 20.6,
        why: "the loader copies and checks one tensor after the other",
        source: SLLM,
    },
    Row {
        what: "32B, safetensors, page cache",
        bytes: 65.5e9,
        rate: 64e9,
        measured: 12.5,
        why: "no disk at all, and still a twelfth of the bus: the loader",
        source: SLLM,
    },
    Row {
        what: "32B, ServerlessLLM, NVMe",
        bytes: 65.5e9,
        rate: 29.4e9,
        measured: 3.2,
        why: "two thirds of the disk",
        source: SLLM,
    },
    Row {
        what: "32B, ServerlessLLM, page cache",
        bytes: 65.5e9,
        rate: 64e9,
        measured: 1.25,
        why: "four fifths of the bus's nominal rate",
        source: SLLM,
    },
    Row {
        what: "Kimi-K2.5, streamer, NFS over RDMA",
        bytes: 620e9,
        rate: 40e9,
        measured: 40.0,
        why: "35 to 45 s; fio reads 40 GB/s from the same share, the loader 14 to 18",
        source: "runai-model-streamer, issue 135 (its author says about 9 GB/s; unresolved)",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_beats_the_floor_by_more_than_rounding() {
        for row in TABLE {
            assert!(row.factor() > 0.98, "{}: {}", row.what, row.factor());
        }
        let factors = TABLE.map(|row| (10.0 * row.factor()).round() / 10.0);
        assert_eq!(factors, [3.4, 6.3, 1.0, 1.0, 1.0, 9.2, 12.2, 1.4, 1.2, 2.6]);
    }
}
