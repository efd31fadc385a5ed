//! What happens around the weights: presets of an engine's start, each as somebody measured it.

use serde::Serialize;

/// Seconds of each phase of a start but the weights'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Phases {
    /// Until there is a machine.
    pub provisioning: f64,
    /// Until the image is there.
    pub image: f64,
    /// Imports, devices, memory.
    pub process: f64,
    /// Compilation.
    pub compile: f64,
    /// Graph capture.
    pub graphs: f64,
    /// Profiling and warm-up.
    pub warm_up: f64,
}

impl Phases {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.provisioning + self.image + self.process + self.compile + self.graphs + self.warm_up
    }
}

/// An engine's start as somebody measured it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it was.
    pub what: &'static str,
    /// Seconds.
    pub phases: Phases,
    /// Seconds that its weights took, as measured.
    pub weights: f64,
    /// Who measured it.
    pub source: &'static str,
}

const NONE: Phases =
    Phases { provisioning: 0.0, image: 0.0, process: 0.0, compile: 0.0, graphs: 0.0, warm_up: 0.0 };

/// The presets. What a source does not tell is 0.
pub const PRESETS: [Measured; 6] = [
    Measured {
        name: "8b-cold",
        what: "Llama 3.1 8B on an L40S, nothing cached",
        phases: Phases { process: 94.0, compile: 52.0, graphs: 54.0, ..NONE },
        weights: 94.0,
        source: "tensorfuse (a vendor's blog, method unknown): download 61, weights 33, dynamo 10, compile 42, graphs 54, init and imports 94: 294 s",
    },
    Measured {
        name: "8b-cached",
        what: "the same, with files, compilation and graphs cached",
        phases: Phases { process: 34.0, compile: 17.0, graphs: 13.0, ..NONE },
        weights: 18.0,
        source: "tensorfuse: download 0, weights 18, dynamo 10, compile 7, graphs 13, init and imports 34: 82 s",
    },
    Measured {
        name: "70b-fp8",
        what: "Llama 70B in FP8 on eight GPUs, weights in the page cache",
        phases: Phases { process: 60.0, compile: 85.0, graphs: 60.0, ..NONE },
        weights: 10.0,
        source: "vllm-project/vllm issue 19824: P2P check about 60, weights 10, dynamo 15, torch.compile 70, graphs 60",
    },
    Measured {
        name: "35b-nvfp4",
        what: "Qwen3.6-35B-A3B in NVFP4 on one RTX 5090",
        phases: Phases { image: 16.0, compile: 43.0, warm_up: 210.0, ..NONE },
        weights: 18.0,
        source: "vllm-project/vllm issue 44881: container to configuration 16, weights (21.8 GiB) 18, compile 43 (5 if cached), profiling and warm-up 210",
    },
    Measured {
        name: "small-cached",
        what: "a Llama 3.2 of 3.4 GiB, compile cache kept",
        phases: Phases { process: 8.6, compile: 7.5, graphs: 17.0, warm_up: 25.0, ..NONE },
        weights: 0.9,
        source: "vllm-project/vllm issue 20264: weights 0.9, dynamo 7.5, graphs 17, engine init 34 in all, first answer 59 s after the start",
    },
    Measured {
        name: "none",
        what: "the weights alone: the floor",
        phases: NONE,
        weights: 0.0,
        source: "what the path allows, and nothing else",
    },
];

/// The preset of a name.
pub fn preset(name: &str) -> Option<&'static Measured> {
    PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_those_that_the_sources_print() {
        let total = |name| {
            let preset = preset(name).expect("it is one");
            preset.phases.total() + preset.weights
        };
        assert_eq!((total("8b-cold"), total("8b-cached")), (294.0, 82.0));
        assert_eq!((total("70b-fp8"), total("35b-nvfp4"), total("none")), (215.0, 287.0, 0.0));
        assert!((total("small-cached") - 59.0).abs() < 1e-9);
    }
}
