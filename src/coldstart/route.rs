//! The way of the weights, stage by stage: object store → network → disk → host memory → device.
//!
//! Each stage has a latency, a rate a stream, so many streams and a most that they reach together. A stage that
//! overlaps with the one before passes bytes on while they come; one that does not waits for the last of them. So
//! a route is groups of overlapping stages: a group takes its latencies and its slowest stage, and groups add up.
//! Taken one by one, all stages would add up; if everything overlapped, only the slowest would count.

use serde::Serialize;

use crate::units::{Bytes, BytesPerSecond};

/// One stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What it is.
    pub name: &'static str,
    /// Seconds before the first byte.
    pub latency: f64,
    /// What one stream reaches.
    pub stream: BytesPerSecond,
    /// How many there are.
    pub streams: u32,
    /// What all of them reach at most.
    pub most: BytesPerSecond,
    /// Whether it passes on bytes while the stage before it still brings others.
    pub overlaps: bool,
    /// Whether it is one for all GPUs and all replicas that start at once (a disk, a network), or each GPU has
    /// its own (a bus).
    pub shared: bool,
}

/// What arrives, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cargo {
    /// Bytes of a model as they are stored.
    pub stored: Bytes,
    /// The same once they are unpacked; as many where nothing is packed.
    pub unpacked: Bytes,
    /// GPUs that share a replica's weights.
    pub tp: u32,
    /// Replicas that start at once and read the same store.
    pub replicas: u32,
}

/// One stage's part of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Leg {
    /// What it is.
    pub name: &'static str,
    /// When it begins, in seconds.
    pub from: f64,
    /// When it ends.
    pub until: f64,
    /// How long it takes by itself.
    pub alone: f64,
}

/// A route's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Journey {
    /// Stage by stage.
    pub legs: Vec<Leg>,
    /// All of it.
    pub seconds: f64,
    /// If every stage waited for the one before.
    pub one_by_one: f64,
    /// If all overlapped: the slowest.
    pub slowest: f64,
}

impl Stage {
    /// A stage of one stream.
    pub const fn new(name: &'static str, rate: f64) -> Stage {
        Stage {
            name,
            latency: 0.0,
            stream: BytesPerSecond(rate),
            streams: 1,
            most: BytesPerSecond(f64::INFINITY),
            overlaps: false,
            shared: true,
        }
    }

    /// How fast it is.
    pub fn rate(&self) -> f64 {
        (self.stream.0 * f64::from(self.streams)).min(self.most.0)
    }

    /// How long it takes for a cargo, without its latency.
    fn seconds(&self, bytes: f64, cargo: &Cargo) -> f64 {
        let share = if self.shared { f64::from(cargo.replicas) } else { 1.0 / f64::from(cargo.tp) };
        bytes * share / self.rate()
    }
}

/// How long a cargo takes over these stages. `unpacks` is the stage from which on it is unpacked, if any.
pub fn travel(stages: &[Stage], cargo: &Cargo, unpacks: Option<usize>) -> Journey {
    let alone = |at: usize| {
        let bytes = if unpacks.is_some_and(|from| at >= from) { cargo.unpacked } else { cargo.stored };
        stages[at].seconds(bytes.0, cargo)
    };
    let mut legs: Vec<Leg> = Vec::new();
    let (mut begin, mut end) = (0.0f64, 0.0f64);
    for (at, stage) in stages.iter().enumerate() {
        let took = alone(at);
        if stage.overlaps && at > 0 {
            // It begins with the first bytes of the one before, and is not over before that is.
            begin += stage.latency;
            end = (end + stage.latency).max(begin + took);
        } else {
            begin = end + stage.latency;
            end = begin + took;
        }
        legs.push(Leg { name: stage.name, from: begin, until: end, alone: took });
    }
    Journey {
        seconds: end,
        one_by_one: (0..stages.len()).map(|at| stages[at].latency + alone(at)).sum(),
        slowest: (0..stages.len()).map(alone).fold(0.0, f64::max),
        legs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARGO: Cargo = Cargo { stored: Bytes(16e9), unpacked: Bytes(16e9), tp: 1, replicas: 1 };

    fn stages() -> Vec<Stage> {
        vec![
            Stage { latency: 0.5, streams: 8, most: BytesPerSecond(3.2e9), ..Stage::new("store", 0.5e9) },
            Stage::new("disk", 2e9),
            Stage { shared: false, overlaps: true, ..Stage::new("bus", 32e9) },
        ]
    }

    #[test]
    fn by_hand() {
        // 0.5 + 16 ÷ 3.2 = 5.5; 16 ÷ 2 = 8; the bus's half second hides behind the disk.
        let journey = travel(&stages(), &CARGO, None);
        assert_eq!((journey.seconds, journey.one_by_one, journey.slowest), (13.5, 14.0, 8.0));
        let ends: Vec<f64> = journey.legs.iter().map(|leg| leg.until).collect();
        assert_eq!(ends, [5.5, 13.5, 13.5]);
        // Where the disk reads while the store still brings, the slowest counts.
        let mut streamed = stages();
        streamed[1].overlaps = true;
        assert_eq!(travel(&streamed, &CARGO, None).seconds, 8.5);
    }

    #[test]
    fn what_is_shared_is_shared_and_what_each_has_is_not() {
        // Four GPUs read a quarter each over buses of their own; two replicas halve the store and the disk.
        let two = Cargo { tp: 4, replicas: 2, ..CARGO };
        let journey = travel(&stages(), &two, None);
        assert_eq!(journey.seconds, 0.5 + 10.0 + 16.0);
        assert_eq!(journey.legs[2].alone, 0.125);
    }

    #[test]
    fn packed_bytes_are_fewer_until_they_are_unpacked() {
        let packed = Cargo { stored: Bytes(8e9), ..CARGO };
        let mut stages = stages();
        stages.insert(1, Stage::new("unpack", 1e9));
        // 0.5 + 8 ÷ 3.2; then 16 of unpacked bytes at 1; then 8.
        assert_eq!(travel(&stages, &packed, Some(1)).seconds, 3.0 + 16.0 + 8.0);
    }
}
