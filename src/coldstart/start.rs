//! A whole cold start: what happens around the weights, and the weights' own way, as bars on one line of time.
//!
//! The *floor* is the weights' time if every stage of their way overlapped: nothing that keeps the route can be
//! faster. The *total* is from the order to the first request. Phases follow one another, as in an engine that
//! loads after its imports and compiles after it has loaded.

use serde::Serialize;

use super::format::Format;
use super::phases::Phases;
use super::route::{Cargo, Journey, Stage, travel};
use super::{Path, bytes_text, seconds_text};
use crate::cost::roofline::{Mlp, ServedModel};
use crate::units::Bytes;

/// Where weights come from, as a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// From an object store to a disk, whole, and from there to the devices: how a plain start downloads.
    Download,
    /// From an object store straight to the devices.
    ObjectStore,
    /// From a cloud's network disk.
    NetworkDisk,
    /// From a flash disk in the machine.
    #[default]
    Nvme,
    /// From the machine's memory.
    PageCache,
}

impl Route {
    /// Every route, from the slowest to the fastest.
    pub const ALL: [Route; 5] =
        [Route::Download, Route::NetworkDisk, Route::ObjectStore, Route::Nvme, Route::PageCache];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Route::Download => "download",
            Route::ObjectStore => "object-store",
            Route::NetworkDisk => "network-disk",
            Route::Nvme => "nvme",
            Route::PageCache => "page-cache",
        }
    }

    /// The route of a name.
    pub fn from_name(name: &str) -> Option<Route> {
        Route::ALL.into_iter().find(|route| route.name() == name)
    }

    /// Its stages, at the rates of [`Path`] and with its sources. A device's bus is its own, and passes bytes on as
    /// they come.
    pub fn stages(self) -> Vec<Stage> {
        let from = |name, path: Path| Stage::new(name, path.rate().0);
        let bus = Stage { overlaps: true, shared: false, ..from("bus", Path::Pcie) };
        match self {
            Route::Download => {
                vec![from("object store to disk", Path::ObjectStore), from("disk", Path::Nvme), bus]
            }
            Route::ObjectStore => vec![from("object store", Path::ObjectStore), bus],
            Route::NetworkDisk => vec![from("network disk", Path::NetworkDisk), bus],
            Route::Nvme => vec![from("disk", Path::Nvme), bus],
            Route::PageCache => vec![from("page cache", Path::PageCache), bus],
        }
    }
}

/// Everything that a cold start depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct ColdStart {
    /// The model: all its weights, those of every expert included.
    pub model: ServedModel,
    /// How they are stored.
    pub format: Format,
    /// GPUs that share them.
    pub tp: u32,
    /// Replicas that start at once, from the same store or disk.
    pub replicas: u32,
    /// The way of the weights.
    pub stages: Vec<Stage>,
    /// Stored bytes ÷ unpacked ones, and the stage that unpacks, with its rate; `None`: nothing is packed.
    pub packed: Option<(f64, f64)>,
    /// What happens around them.
    pub phases: Phases,
    /// The part of the weights that must be there before the first token.
    pub first: f64,
}

/// One bar.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// What happens.
    pub name: &'static str,
    /// From when, in seconds since the order.
    pub from: f64,
    /// Until when.
    pub until: f64,
}

/// A cold start, worked out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Bytes of weights.
    pub bytes: f64,
    /// Bar by bar.
    pub bars: Vec<Bar>,
    /// The weights' time if all of their way overlapped, in seconds.
    pub floor: f64,
    /// The weights' time.
    pub weights: f64,
    /// The weights' time if nothing of their way overlapped.
    pub one_by_one: f64,
    /// From the order to the first request.
    pub total: f64,
}

impl ColdStart {
    /// A model over a route, with what happens around the weights.
    pub fn new(model: ServedModel, format: Format, route: Route, phases: Phases) -> ColdStart {
        let stages = route.stages();
        ColdStart { model, format, tp: 1, replicas: 1, stages, packed: None, phases, first: 1.0 }
    }

    /// Bytes of the weights.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.format.bytes(&self.model.shape()))
    }

    /// The part of a model's weights that its first token touches: all of a dense one but its embedding, and of a
    /// mixture the experts that one token takes.
    pub fn first_touch(model: ServedModel) -> f64 {
        let share = model.shape().share(1);
        let touched = match model.shape().mlp {
            Mlp::Dense(_) => share.matrices,
            Mlp::Experts { .. } => share.matrices + share.active_experts,
        };
        (touched + share.head + share.norms) as f64 / share.weights() as f64
    }

    /// The weights' way.
    pub fn journey(&self) -> Journey {
        let bytes = self.bytes().0 * self.first;
        let mut stages = self.stages.clone();
        let (ratio, unpacks) = match self.packed {
            None => (1.0, None),
            Some((ratio, rate)) => {
                stages.insert(1.min(stages.len()), Stage { overlaps: true, ..Stage::new("unpack", rate) });
                (ratio, Some(1))
            }
        };
        let cargo = Cargo {
            stored: Bytes(bytes * ratio),
            unpacked: Bytes(bytes),
            tp: self.tp,
            replicas: self.replicas,
        };
        travel(&stages, &cargo, unpacks)
    }

    /// Works it out.
    pub fn plan(&self) -> Plan {
        let journey = self.journey();
        let Phases { provisioning, image, process, compile, graphs, warm_up } = self.phases;
        let mut bars: Vec<Bar> = Vec::new();
        let mut now = 0.0;
        let mut phases = |bars: &mut Vec<Bar>, phases: [(&'static str, f64); 3], ahead: f64| {
            now += ahead;
            for (name, seconds) in phases.into_iter().filter(|(_, seconds)| *seconds > 0.0) {
                bars.push(Bar { name, from: now, until: now + seconds });
                now += seconds;
            }
            now
        };
        let begin =
            phases(&mut bars, [("provisioning", provisioning), ("image", image), ("process", process)], 0.0);
        bars.extend(journey.legs.iter().map(|leg| Bar {
            name: leg.name,
            from: begin + leg.from,
            until: begin + leg.until,
        }));
        let rest = [("compile", compile), ("graphs", graphs), ("warm-up", warm_up)];
        let total = phases(&mut bars, rest, journey.seconds);
        Plan {
            bytes: self.bytes().0,
            bars,
            floor: journey.slowest,
            weights: journey.seconds,
            one_by_one: journey.one_by_one,
            total,
        }
    }

    /// The calculation with its numbers.
    pub fn formula(&self) -> String {
        let plan = self.plan();
        let parameters = self.model.shape().parameters();
        format!(
            "{parameters} weights × {:.3} bits ÷ 8 = {} over {} stages: {}; with {} around them {}",
            8.0 * plan.bytes / parameters as f64,
            bytes_text(Bytes(plan.bytes)),
            self.stages.len(),
            seconds_text(plan.weights),
            seconds_text(self.phases.total()),
            seconds_text(plan.total)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coldstart::phases::preset;

    #[test]
    fn bars_by_hand() {
        let phases = Phases { image: 10.0, process: 5.0, compile: 7.0, warm_up: 1.0, ..Phases::default() };
        let start = ColdStart::new(ServedModel::Llama8B, Format::Bf16, Route::Nvme, phases);
        let plan = start.plan();
        // 16,060,522,496 bytes ÷ 3.5 GB/s; the bus hides behind the disk.
        let weights = 16_060_522_496.0 / 3.5e9;
        assert_eq!((plan.weights, plan.floor, plan.total), (weights, weights, 23.0 + weights));
        let names: Vec<&str> = plan.bars.iter().map(|bar| bar.name).collect();
        assert_eq!(names, ["image", "process", "disk", "bus", "compile", "warm-up"]);
        assert_eq!((plan.bars[2].from, plan.bars[4].from), (15.0, 15.0 + weights));
        assert!(plan.one_by_one > plan.weights);
        assert!(
            start.formula().contains("8030261248 weights × 16.000 bits ÷ 8 = 16.1 GB"),
            "{}",
            start.formula()
        );
    }

    #[test]
    fn shards_and_packing() {
        let start = |route| ColdStart::new(ServedModel::Llama70B, Format::Bf16, route, Phases::default());
        let one = start(Route::Nvme).plan().weights;
        // Eight GPUs share one disk: no faster. Two replicas that start at once: half as fast.
        assert_eq!(ColdStart { tp: 8, ..start(Route::Nvme) }.plan().weights, one);
        assert_eq!(ColdStart { replicas: 2, ..start(Route::Nvme) }.plan().weights, 2.0 * one);
        // Packed to 70 %, unpacked at 1 GB/s: the unpacking is the slowest.
        let packed = ColdStart { packed: Some((0.7, 1e9)), ..start(Route::Nvme) }.plan();
        assert!((packed.weights - 141.107_412_992).abs() < 1e-6, "{}", packed.weights);
    }

    #[test]
    fn a_mixture_loads_all_experts_and_needs_few_at_first() {
        let dense = ColdStart::first_touch(ServedModel::Llama8B);
        let sparse = ColdStart::first_touch(ServedModel::Qwen30BA3B);
        assert!((0.93..0.94).contains(&dense) && (0.09..0.12).contains(&sparse), "{dense} {sparse}");
        let phases = preset("8b-cached").expect("it is one").phases;
        let plan = ColdStart::new(ServedModel::Qwen30BA3B, Format::Bf16, Route::Nvme, phases).plan();
        assert!((plan.bytes - 61.06e9).abs() < 0.1e9, "{}", plan.bytes);
    }
}
