//! The life of a replica: provisioning → image → process → weights → compile → warm-up → serving → draining →
//! gone; or ready in a warm pool in between; or failed, at any time.
//!
//! Nothing is served by a replica that is not [serving](Phase::Serving) or, of what it already has,
//! [draining](Phase::Draining).

use serde::{Deserialize, Serialize};

use super::signals::Meter;
use crate::engine::{Engine, Replica};
use crate::policy::ReplicaLoad;
use crate::units::{Span, Time};

/// What a replica is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A machine is found and started.
    Provisioning,
    /// The container's image comes.
    Image,
    /// The process starts: imports, devices, memory.
    Process,
    /// The weights come.
    Weights,
    /// Kernels are compiled, graphs captured.
    Compile,
    /// First requests of its own, which nobody waits for.
    WarmUp,
    /// Ready in the pool, of no use until it is woken.
    Warm,
    /// On its way from the pool.
    Waking,
    /// Requests are sent to it.
    Serving,
    /// It finishes what it has.
    Draining,
    /// It is no more.
    Gone,
}

impl Phase {
    /// The phases of a start, in order.
    pub const START: [Phase; 6] =
        [Phase::Provisioning, Phase::Image, Phase::Process, Phase::Weights, Phase::Compile, Phase::WarmUp];

    /// Whether it is on its way to serving.
    pub fn starts(self) -> bool {
        self < Phase::Warm || self == Phase::Waking
    }

    /// Whether steps may run.
    pub fn works(self) -> bool {
        matches!(self, Phase::Serving | Phase::Draining)
    }
}

/// How a replica came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It finished what it had.
    Drained,
    /// Its time to drain was over; what it still had went elsewhere.
    Overdue,
    /// It was not needed any more before it ever served.
    Cancelled,
    /// It failed, with all it had.
    Failed,
    /// Its machine was taken away, after a notice.
    Preempted,
}

/// What was changed in a replica's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When, in picoseconds.
    pub at: u64,
    /// Whose life.
    pub replica: u32,
    /// What it is up to from now on.
    pub to: Phase,
    /// How it ended, or why it drains.
    pub end: Option<End>,
}

/// How long each phase of a start takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartUp {
    /// In the order of [`Phase::START`].
    pub spans: [Span; 6],
}

impl StartUp {
    /// From the order to the first request.
    pub fn total(&self) -> Span {
        self.spans.iter().fold(Span::ZERO, |sum, &span| sum + span)
    }

    fn of(&self, phase: Phase) -> Span {
        let at = Phase::START.iter().position(|own| *own == phase);
        at.map_or(Span::ZERO, |at| self.spans[at])
    }
}

/// A replica with its life.
pub struct Node {
    /// Its id: no other of the run ever has it.
    pub id: u32,
    /// What it is up to.
    pub phase: Phase,
    /// When that ends by itself: a phase of its start, or its time to drain.
    pub until: Option<Time>,
    /// When it was ordered.
    pub born: Time,
    /// Whether it is meant for the warm pool.
    pub pooled: bool,
    /// Whether it stands in for one that will be replaced, so that it does not count yet.
    pub surge: bool,
    /// Why it drains.
    pub end: Option<End>,
    /// The engine.
    pub replica: Replica,
    /// When its step ends.
    pub busy: Option<Time>,
    /// How long that step takes.
    pub step: Span,
    /// What it did since the last scrape.
    pub meter: Meter,
    /// What the router was last shown of it.
    pub shown: ReplicaLoad,
}

impl Node {
    /// One that is ordered now.
    pub fn new(id: u32, now: Time, replica: Replica) -> Node {
        Node {
            id,
            phase: Phase::Provisioning,
            until: Some(now),
            born: now,
            pooled: false,
            surge: false,
            end: None,
            replica,
            busy: None,
            step: Span::ZERO,
            meter: Meter::default(),
            shown: ReplicaLoad::default(),
        }
    }

    /// Goes on to the next phase of its start, if the one it is in is over, and says whether it did.
    /// A phase that takes no time is passed over.
    pub fn advance(&mut self, now: Time, start: &StartUp) -> bool {
        let mut moved = false;
        while self.phase.starts() && self.until.is_some_and(|until| until <= now) {
            self.next(now, start);
            moved = true;
        }
        moved
    }

    fn next(&mut self, now: Time, start: &StartUp) {
        let following = Phase::START.into_iter().find(|p| *p > self.phase && start.of(*p) > Span::ZERO);
        (self.phase, self.until) = match following {
            Some(phase) if self.phase < Phase::Warm => (phase, now.after(start.of(phase))),
            _ if self.pooled => (Phase::Warm, None),
            _ => (Phase::Serving, None),
        };
    }

    /// Begins its start.
    pub fn start(&mut self, now: Time, start: &StartUp) {
        let first = Phase::START.into_iter().find(|p| start.of(*p) > Span::ZERO);
        (self.phase, self.until) = match first {
            Some(phase) => (phase, now.after(start.of(phase))),
            None if self.pooled => (Phase::Warm, None),
            None => (Phase::Serving, None),
        };
    }

    /// Whether its drain is over: nothing waits, nothing runs.
    pub fn is_drained(&self) -> bool {
        self.phase == Phase::Draining && self.busy.is_none() && !self.replica.has_work()
    }

    /// Tokens whose keys and values it keeps.
    pub fn cached_tokens(&self) -> u64 {
        let pool = self.replica.pool();
        ((pool.len() - pool.free()) * pool.block_size()) as u64
    }
}

/// Whom to remove when there are too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The one that was ordered last: what Kubernetes does, as one of its last criteria.
    #[default]
    Youngest,
    /// The one with the fewest outstanding tokens.
    Emptiest,
    /// The one with the fewest tokens in its cache.
    Coldest,
}

impl Victim {
    /// Who goes, of some that serve; of equals the youngest.
    pub fn choose<'n>(self, nodes: impl Iterator<Item = &'n Node>) -> Option<u32> {
        let key = |node: &Node| match self {
            Victim::Youngest => 0,
            Victim::Emptiest => node.replica.load().outstanding_tokens,
            Victim::Coldest => node.cached_tokens(),
        };
        nodes.min_by_key(|node| (key(node), u32::MAX - node.id)).map(|node| node.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Limits, Modelled};

    fn node(id: u32) -> Node {
        let limits = Limits { blocks: 8, block_size: 4, max_batch: 2, positions: 64 };
        Node::new(id, Time(0), Replica::new(id, limits, Box::new(Modelled)))
    }

    #[test]
    fn phases_follow_one_another_and_empty_ones_are_passed_over() {
        let start = StartUp { spans: [Span(5), Span(0), Span(2), Span(0), Span(0), Span(1)] };
        assert_eq!(start.total(), Span(8));
        let mut node = node(0);
        node.start(Time(10), &start);
        let mut seen = vec![(10, node.phase)];
        for now in 11..20 {
            if node.advance(Time(now), &start) {
                seen.push((now, node.phase));
            }
        }
        assert_eq!(
            seen,
            [(10, Phase::Provisioning), (15, Phase::Process), (17, Phase::WarmUp), (18, Phase::Serving)]
        );
    }

    #[test]
    fn a_pooled_one_ends_warm_and_one_without_a_start_serves_at_once() {
        let start = StartUp { spans: [Span(1), Span(0), Span(0), Span(0), Span(0), Span(0)] };
        let mut pooled = Node { pooled: true, ..node(0) };
        pooled.start(Time(0), &start);
        pooled.advance(Time(1), &start);
        assert_eq!((pooled.phase, pooled.phase.starts()), (Phase::Warm, false));
        let mut quick = node(1);
        quick.start(Time(0), &StartUp::default());
        assert_eq!(quick.phase, Phase::Serving);
    }

    #[test]
    fn of_equals_the_youngest_goes() {
        let nodes = [node(3), node(7), node(5)];
        for rule in [Victim::Youngest, Victim::Emptiest, Victim::Coldest] {
            assert_eq!(rule.choose(nodes.iter()), Some(7));
        }
        assert_eq!(Victim::Youngest.choose([].iter()), None);
    }
}
