//! What shortens a cold start, by how much, and at what price.

use serde::Serialize;

use super::format::Format;
use super::phases::Phases;
use super::route::Stage;
use super::start::{ColdStart, Route};
use crate::units::BytesPerSecond;

/// Something that one can do about a cold start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technique {
    /// Fewer bits.
    Quantise,
    /// The weights wait on a disk in the machine.
    NvmeCache,
    /// Pages come as they are touched.
    Mmap,
    /// A loader that reads many parts at once and overlaps all stages.
    Streaming,
    /// From a replica that runs.
    PeerToPeer,
    /// Compiled kernels are kept.
    CompileCache,
    /// The whole process is restored from an image of its memory.
    Snapshot,
    /// The process sleeps, its weights in host memory.
    Sleep,
    /// Replicas stand ready.
    WarmPool,
    /// A planned change starts the new one first.
    StartBeforeDrain,
}

/// What a technique does to a start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Its name.
    pub name: &'static str,
    /// Seconds from order to service with it.
    pub total: f64,
    /// Seconds saved.
    pub saves: f64,
    /// What it costs, and where its figures are from.
    pub costs: &'static str,
}

impl Technique {
    /// Every technique.
    pub const ALL: [Technique; 10] = [
        Technique::Quantise,
        Technique::NvmeCache,
        Technique::Mmap,
        Technique::Streaming,
        Technique::PeerToPeer,
        Technique::CompileCache,
        Technique::Snapshot,
        Technique::Sleep,
        Technique::WarmPool,
        Technique::StartBeforeDrain,
    ];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Technique::Quantise => "quantise",
            Technique::NvmeCache => "nvme-cache",
            Technique::Mmap => "mmap",
            Technique::Streaming => "streaming-loader",
            Technique::PeerToPeer => "peer-to-peer",
            Technique::CompileCache => "compile-cache",
            Technique::Snapshot => "snapshot",
            Technique::Sleep => "sleep-mode",
            Technique::WarmPool => "warm-pool",
            Technique::StartBeforeDrain => "start-before-drain",
        }
    }

    /// What it costs.
    pub fn costs(self) -> &'static str {
        match self {
            Technique::Quantise => "some quality, and calibration once; 4 bits by AWQ here",
            Technique::NvmeCache => {
                "a disk as large as the models that may be wanted, and the first start on each machine is as slow as ever"
            }
            Technique::Mmap => {
                "the tokens after the first wait for the pages that they touch, at the disk's speed"
            }
            Technique::Streaming => {
                "memory for what is in flight, and the whole bandwidth of the store while it lasts; S3 at 3.1 GB/s, a disk in the machine at 20 GB/s where it can (runai-model-streamer, docs/src/benchmarks.md; ServerlessLLM, benchmarks/results/h100_2025)"
            }
            Technique::PeerToPeer => {
                "network and memory bandwidth of a replica that serves meanwhile; a link of 100 Gb/s here (12.5 GB/s, nominal)"
            }
            Technique::CompileCache => {
                "a cache a version of engine, model and GPU; 45 s become 8 (ai-dynamo/dynamo, pull request 3115)"
            }
            Technique::Snapshot => {
                "an image a version of everything, and as much storage as the process had memory; about a minute becomes about 10 s (Dynamo Snapshot), so a sixth of every phase of the process"
            }
            Technique::Sleep => {
                "host memory for the weights, and a GPU that something else may use only meanwhile; all but the bus is spared (vLLM's sleep level 1: 37.6 s become 0.26 for 1.2 GB on an A100)"
            }
            Technique::WarmPool => "replicas that are paid for and serve nobody",
            Technique::StartBeforeDrain => {
                "one replica more for as long as the start takes; it is no shorter, but nobody waits for it"
            }
        }
    }

    /// The start with it.
    pub fn apply(self, start: &ColdStart) -> ColdStart {
        let mut start = start.clone();
        let phases = start.phases;
        match self {
            Technique::Quantise => start.format = Format::Awq,
            Technique::NvmeCache => start.stages = Route::Nvme.stages(),
            Technique::Mmap => start.first = ColdStart::first_touch(start.model),
            Technique::Streaming => {
                for stage in &mut start.stages {
                    stage.overlaps = true;
                    if stage.name == "disk" {
                        (stage.stream, stage.most) = (BytesPerSecond(20e9), BytesPerSecond(f64::INFINITY));
                    }
                }
            }
            Technique::PeerToPeer => {
                let bus = start.stages.last().cloned();
                start.stages = core::iter::once(Stage::new("peer", 12.5e9)).chain(bus).collect();
            }
            Technique::CompileCache => start.phases.compile *= 8.0 / 45.0,
            Technique::Snapshot => {
                let sixth = |seconds: f64| seconds / 6.0;
                start.phases = Phases {
                    process: sixth(phases.process),
                    compile: sixth(phases.compile),
                    graphs: sixth(phases.graphs),
                    warm_up: sixth(phases.warm_up),
                    ..phases
                };
            }
            Technique::Sleep => {
                start.phases = Phases::default();
                start.stages = start.stages.split_off(start.stages.len().saturating_sub(1));
            }
            Technique::WarmPool => {
                start.phases = Phases::default();
                start.first = 0.0;
            }
            Technique::StartBeforeDrain => {}
        }
        start
    }

    /// What it does to a start.
    pub fn effect(self, start: &ColdStart) -> Effect {
        let (before, total) = (start.plan().total, self.apply(start).plan().total);
        Effect { name: self.name(), total, saves: before - total, costs: self.costs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coldstart::phases::preset;
    use crate::cost::roofline::ServedModel;

    #[test]
    fn each_saves_what_it_says() {
        let phases = preset("8b-cold").expect("it is one").phases;
        let start = ColdStart::new(ServedModel::Llama8B, Format::Bf16, Route::Download, phases);
        let saves = |technique: Technique| technique.effect(&start).saves;
        let bytes = 16_060_522_496.0;
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(saves(Technique::NvmeCache), bytes / 3.1e9);
        near(saves(Technique::CompileCache), 52.0 * 37.0 / 45.0);
        near(saves(Technique::Snapshot), 200.0 * 5.0 / 6.0);
        near(saves(Technique::StartBeforeDrain), 0.0);
        near(Technique::WarmPool.effect(&start).total, 0.0);
        near(Technique::Sleep.effect(&start).total, bytes / 64e9);
        near(Technique::Streaming.effect(&start).total, 200.0 + bytes / 3.1e9);
        for technique in Technique::ALL {
            assert!(saves(technique) >= 0.0 && !technique.costs().is_empty(), "{}", technique.name());
        }
    }
}
