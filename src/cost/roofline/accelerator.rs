//! Accelerators: what the datasheet says of each, and how much of it is had.

/// What the maker says a device can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datasheet {
    /// Dense bf16 floating-point operations a second (a multiply and an add are two).
    pub flops: f64,
    /// Bytes a second to and from its memory.
    pub bandwidth: f64,
    /// Bytes of memory; a datasheet's GB is 10⁹.
    pub memory: u64,
    /// Bytes a second to its peers, one way: half of what datasheets state.
    pub link: f64,
}

/// How much of the datasheet's figures a serving engine's kernels have, and what they cost besides.
/// The first four are fitted ([`super::fit`]); the others come from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Part of the peak operations that large matrix products reach.
    pub compute: f64,
    /// Part of the memory's bandwidth that reading weights (and keys and values) reaches.
    pub bandwidth: f64,
    /// Of the shorter of computing and reading, the part that the longer does not hide.
    pub exposed: f64,
    /// Seconds of every layer that depend on nothing: launches, tails, small kernels.
    pub layer: f64,
    /// Part of the peak operations that attention over a prompt reaches.
    pub attention: f64,
    /// Part of the link's bandwidth that a ring all-reduce of many bytes reaches.
    pub link: f64,
    /// Seconds of an all-reduce of few bytes.
    pub all_reduce: f64,
}

/// Fitted to profiles of the A100 (SXM, 80 GB).
///
/// `attention`: FlashAttention-2 reaches 50 to 73 % of the A100's peak (arXiv 2307.08691); the middle
/// of serving's shorter prompts and its longer ones. `link` and `all_reduce`: eight A100 in a DGX take
/// 25 to 62 µs up to 200 kB, mostly 32 to 38, and 0.65 ms for 64.1 MB (medians in microsoft/vidur,
/// data/profiling/network/a100_dgx/all_reduce.csv). One line through them, for any number of GPUs.
pub const AMPERE: Efficiency = Efficiency {
    compute: 0.68,
    bandwidth: 0.85,
    exposed: 0.38,
    layer: 56e-6,
    attention: 0.6,
    link: 0.6,
    all_reduce: 34e-6,
};

/// Fitted to profiles of the H100 (SXM).
///
/// `attention`: FlashAttention-3 with heads of 128 reaches 43 to 63 % of the H100's peak over 512 to
/// 16,384 tokens (pytorch/benchmark, pull request 2391). `link` and `all_reduce`: eight H100 in a DGX
/// take 19 to 43 µs below 0.5 MB, 31 at it, and 0.34 ms for 65.5 MB (medians in microsoft/vidur,
/// data/profiling/network/h100_dgx/all_reduce.csv). One line through them, for any number of GPUs.
pub const HOPPER: Efficiency = Efficiency {
    compute: 0.66,
    bandwidth: 0.86,
    exposed: 0.2,
    layer: 37e-6,
    attention: 0.55,
    link: 0.84,
    all_reduce: 30e-6,
};

/// A device that replicas run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// NVIDIA A100, SXM, 80 GB.
    A100,
    /// NVIDIA H100, SXM.
    H100,
    /// NVIDIA H200, SXM.
    H200,
    /// NVIDIA B200, as in a DGX.
    B200,
    /// NVIDIA L40S, without NVLink.
    L40S,
}

impl Accelerator {
    /// Every accelerator, in the order of help and controls.
    pub const ALL: [Accelerator; 5] =
        [Accelerator::A100, Accelerator::H100, Accelerator::H200, Accelerator::B200, Accelerator::L40S];

    /// Its name on the command line and in the URL.
    pub fn name(self) -> &'static str {
        match self {
            Accelerator::A100 => "a100",
            Accelerator::H100 => "h100",
            Accelerator::H200 => "h200",
            Accelerator::B200 => "b200",
            Accelerator::L40S => "l40s",
        }
    }

    /// The accelerator of a name.
    pub fn from_name(name: &str) -> Option<Accelerator> {
        Accelerator::ALL.into_iter().find(|own| own.name() == name)
    }

    /// What NVIDIA's datasheets say (bf16 without sparsity: half of the figure with it):
    ///
    /// - A100 80GB SXM: 312 TFLOP/s, 2,039 GB/s, 80 GB, NVLink 600 GB/s;
    /// - H100 SXM: 989.5 TFLOP/s, 3.35 TB/s, 80 GB, NVLink 900 GB/s;
    /// - H200 SXM: 989.5 TFLOP/s, 4.8 TB/s, 141 GB, NVLink 900 GB/s;
    /// - DGX B200, an eighth of: 36 PFLOP/s with sparsity, 64 TB/s, 1,440 GB; NVLink 1.8 TB/s a GPU;
    /// - L40S: 362 TFLOP/s, 864 GB/s, 48 GB, PCIe 4 x16 64 GB/s.
    pub fn datasheet(self) -> Datasheet {
        let (tera, gigabytes, bandwidth, link) = match self {
            Accelerator::A100 => (312.0, 80, 2.039e12, 300e9),
            Accelerator::H100 => (989.5, 80, 3.35e12, 450e9),
            Accelerator::H200 => (989.5, 141, 4.8e12, 450e9),
            Accelerator::B200 => (2250.0, 180, 8e12, 900e9),
            Accelerator::L40S => (362.0, 48, 0.864e12, 32e9),
        };
        Datasheet { flops: tera * 1e12, bandwidth, memory: gigabytes * 1_000_000_000, link }
    }

    /// How much of that is had. Only the A100's and the H100's are measured: the H200 (the same chip
    /// with other memory) and the B200 are taken to be as efficient as the H100, the L40S as the A100.
    /// For prompts on the L40S that is on the high side: BLIS (inference-sim, f90a1e3) takes a sixth
    /// less of its peak than of the A100's.
    pub fn efficiency(self) -> Efficiency {
        match self {
            Accelerator::A100 | Accelerator::L40S => AMPERE,
            Accelerator::H100 | Accelerator::H200 | Accelerator::B200 => HOPPER,
        }
    }

    /// Whether its efficiencies were fitted to profiles of itself.
    pub fn is_fitted(self) -> bool {
        matches!(self, Accelerator::A100 | Accelerator::H100)
    }
}
