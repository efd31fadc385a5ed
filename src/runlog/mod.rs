//! The run log: everything that happened in a run, small enough to keep; where everything stood at any
//! time; and how it would have gone on otherwise.
//!
//! # What it says
//!
//! Every arrival, with the whole decision that sent it where it went, or why it was refused; and of every
//! replica each request's way through it: queued, admitted with what was found in the prefix cache and
//! what was computed, blocks evicted, preempted, first token, finished. Single tokens are not told, since
//! everything that decodes has one a step.
//!
//! A *detailed* log also says when each step began and ended, so that every request's tokens are known at
//! any time, and which blocks changed their use. It is for races of the default size; for a larger one,
//! [`Replay`] goes to an instant and shows the blocks of the replicas themselves.
//!
//! # How it is kept
//!
//! As bytes: one stream of arrivals and one a replica, each in order of time, so that both event loops
//! write the same log. How entries are written is told where they are, in `arrivals`, `replica::format`
//! and `stream`, which also keeps the checkpoints. Measured with 100,000 requests on 16 replicas
//! (`examples/run_log.rs`): 47 to 88 bytes a request, 16 of them for the arrival and round-robin's
//! decision, or 35 for one with the loads of all replicas; and about 30 for the checkpoints: 8 to 12 MB in
//! all. [`RunLog::seek`] copies a checkpoint of each stream and reads on from there: 100 kB at most, in
//! 0.1 to 0.9 ms on average and never in more than 2, also where queues have grown to thousands. (As wasm in
//! node it takes as long, measured up to 10,000 requests of such a backlog.)
//!
//! At one instant everything counts as happened: [`seek`](RunLog::seek)`(t)` shows what the event loop
//! leaves when it has done all that happens at `t`, the steps that begin there included.

use serde::{Deserialize, Serialize};

use crate::engine::{Rejection, RequestId, StepEnd, StepStart};
use crate::policy::Decision;
use crate::sim::{Arrival, BlockChange, Event, Observer, What};
use crate::units::Time;

mod arrivals;
mod change;
mod fork;
mod replica;
mod stream;
mod varint;
mod wire;

pub use arrivals::{ArrivalEntry, Setting};
pub use change::{CHANGEABLE, Change};
pub use fork::{Replay, Run, record};
pub use replica::{BlockNow, Counts, PreemptedRequest, ReplicaEntry, ReplicaState, RunningRequest};

use arrivals::Arrivals;
use stream::Stream;

/// What happened in a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "wire::Wire")]
pub struct RunLog {
    /// Blocks in each replica's pool, where the log is detailed.
    blocks: Option<usize>,
    arrivals: Stream<Arrivals>,
    replicas: Vec<Stream<ReplicaState>>,
}

/// Where everything stands at some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// When, in picoseconds since the start.
    pub at: u64,
    /// Who decides.
    pub setting: Setting,
    /// Requests that have arrived.
    pub arrived: u32,
    /// Those of them that can never be served.
    pub rejected: u32,
    /// The latest that was sent to a replica, and when.
    pub last: Option<(u64, ArrivalEntry)>,
    /// Every replica that there is, drained ones included.
    pub replicas: Vec<ReplicaState>,
    /// Bytes of entries that were read to find this out.
    #[serde(skip)]
    pub read: usize,
}

impl State {
    /// Requests that were finished.
    pub fn finished(&self) -> u64 {
        self.replicas.iter().map(|replica| replica.counts.finished).sum()
    }

    /// Whether it is the same, however it was found out.
    pub fn same(&self, other: &State) -> bool {
        State { read: 0, ..self.clone() } == State { read: 0, ..other.clone() }
    }
}

impl RunLog {
    /// An empty log of a fleet; `blocks`: the size of each replica's pool, if it is to be detailed.
    pub fn new(setting: Setting, blocks: Option<usize>) -> RunLog {
        let mut log = RunLog { blocks, arrivals: Stream::new(Arrivals::new()), replicas: Vec::new() };
        log.set(0, setting);
        log
    }

    /// Whether steps and blocks are told too.
    pub fn is_detailed(&self) -> bool {
        self.blocks.is_some()
    }

    /// Somebody else decides from now on, or for other replicas.
    pub fn set(&mut self, at: u64, setting: Setting) {
        self.arrivals.push(at, &ArrivalEntry::Setting(setting));
        let replicas = self.arrivals.state().replicas as usize;
        self.replicas.resize_with(replicas, || Stream::new(ReplicaState::new(self.blocks)));
    }

    /// Takes the next event of a run. For a detailed log, the run watches its blocks.
    pub fn observe(&mut self, event: &Event) {
        let at = event.at;
        match &event.what {
            What::Routed { arrival, replica, decision } => {
                self.routed(at, arrival, *replica, decision.as_ref());
            }
            What::Rejected { arrival, rejection } => self.rejected(at, arrival, *rejection),
            What::StepStarted { start, ends, blocks } => {
                self.detail(at, start.replica, ReplicaEntry::StepBegan { takes: ends - at });
                self.started(at, start);
                self.blocks(at, start.replica, blocks);
            }
            What::StepEnded { end: StepEnd { replica, emitted }, blocks } => {
                self.detail(at, *replica, ReplicaEntry::StepEnded);
                let running = &self.replicas[*replica as usize].state().running;
                let decode =
                    running.len() - running.iter().rev().take_while(|r| r.prefilled.is_none()).count();
                let joined: Vec<RequestId> = emitted.iter().skip(decode).map(|token| token.request).collect();
                let finished: Vec<RequestId> =
                    emitted.iter().filter(|token| token.last).map(|token| token.request).collect();
                self.ended(at, *replica, &joined, &finished);
                self.blocks(at, *replica, blocks);
            }
        }
    }

    fn blocks(&mut self, at: u64, replica: u32, changes: &[BlockChange]) {
        for &change in changes {
            self.detail(at, replica, ReplicaEntry::Block(change));
        }
    }

    fn detail(&mut self, at: u64, replica: u32, entry: ReplicaEntry) {
        if self.is_detailed() {
            self.push(at, replica, entry);
        }
    }

    fn push(&mut self, at: u64, replica: u32, entry: ReplicaEntry) {
        self.replicas[replica as usize].push(at, &entry);
    }

    /// Where everything stood once all had happened that happens until `time`.
    pub fn seek(&self, time: Time) -> State {
        let (arrivals, mut read) = self.arrivals.seek(time.0);
        let mut replicas = Vec::with_capacity(arrivals.replicas as usize);
        for stream in &self.replicas[..arrivals.replicas as usize] {
            let (state, bytes) = stream.seek(time.0);
            replicas.push(state);
            read += bytes;
        }
        State {
            at: time.0,
            setting: arrivals.setting.expect("it is the first that is told"),
            arrived: arrivals.arrived,
            rejected: arrivals.rejected,
            last: arrivals.routed,
            replicas,
            read,
        }
    }

    /// When a request arrived, and what was decided, and why.
    pub fn arrival(&self, request: RequestId) -> Option<(Time, ArrivalEntry)> {
        let is = |entry: &ArrivalEntry| entry.arrival().is_some_and(|arrival| arrival.request == request);
        let mut cursor = self.arrivals.after(|state| state.arrived <= request);
        cursor.find(|(_, entry)| is(entry)).map(|(at, entry)| (Time(at), entry))
    }

    /// Every arrival and every change of who decides, in order of time.
    pub fn arrivals(&self) -> impl Iterator<Item = (Time, ArrivalEntry)> {
        self.arrivals.iter().map(|(at, entry)| (Time(at), entry))
    }

    /// Everything that happened on a replica, in order of time.
    pub fn replica(&self, index: usize) -> impl Iterator<Item = (Time, ReplicaEntry)> {
        self.replicas[index].iter().map(|(at, entry)| (Time(at), entry))
    }

    /// How many replicas there have been.
    pub fn replicas(&self) -> usize {
        self.replicas.len()
    }

    /// When the last thing happened that it tells.
    pub fn end(&self) -> Time {
        let ends = self.replicas.iter().map(Stream::end);
        Time(ends.fold(self.arrivals.end(), u64::max))
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.arrivals.bytes().len() + self.replicas.iter().map(|stream| stream.bytes().len()).sum::<usize>()
    }

    /// Those of them that tell of arrivals and decisions.
    pub fn arrival_bytes(&self) -> usize {
        self.arrivals.bytes().len()
    }

    /// Bytes that the checkpoints take besides, about.
    pub fn checkpoint_bytes(&self) -> usize {
        self.arrivals.checkpoint_bytes() + self.replicas.iter().map(Stream::checkpoint_bytes).sum::<usize>()
    }
}

impl PartialEq for RunLog {
    /// Whether they say the same, to the byte.
    fn eq(&self, other: &RunLog) -> bool {
        self.blocks == other.blocks
            && self.arrivals.bytes() == other.arrivals.bytes()
            && self.replicas.iter().map(Stream::bytes).eq(other.replicas.iter().map(Stream::bytes))
    }
}

/// What the event-driven loop tells makes a log without details.
impl Observer for RunLog {
    fn routed(&mut self, at: u64, arrival: &Arrival, replica: u32, decision: Option<&Decision>) {
        let (arrival, decision) = (*arrival, decision.cloned());
        self.arrivals.push(at, &ArrivalEntry::Routed { arrival, replica, decision });
        self.push(at, replica, ReplicaEntry::Queued { request: arrival.request });
    }

    fn rejected(&mut self, at: u64, arrival: &Arrival, rejection: Rejection) {
        self.arrivals.push(at, &ArrivalEntry::Rejected { arrival: *arrival, rejection });
    }

    fn started(&mut self, at: u64, start: &StepStart) {
        let StepStart { replica, continued, admitted, preempted, evicted, .. } = start;
        for &request in preempted {
            self.push(at, *replica, ReplicaEntry::Preempted { request });
        }
        if *evicted > 0 {
            self.push(at, *replica, ReplicaEntry::Evicted { blocks: *evicted });
        }
        if let Some(one) = *continued {
            let (request, computed, recomputed) = (one.request, one.computed, one.recomputed);
            self.push(at, *replica, ReplicaEntry::Continued { request, computed, recomputed });
        }
        for one in admitted {
            let entry = ReplicaEntry::Admitted {
                request: one.request,
                cached: one.cached,
                computed: one.computed,
                recomputed: one.recomputed,
                first: one.first,
            };
            self.push(at, *replica, entry);
        }
    }

    fn ended(&mut self, at: u64, replica: u32, joined: &[RequestId], finished: &[RequestId]) {
        for &request in joined {
            let first = self.replicas[replica as usize].state().owes_first_token(request);
            self.push(at, replica, ReplicaEntry::Prefilled { request, first });
        }
        for &request in finished {
            self.push(at, replica, ReplicaEntry::Finished { request });
        }
    }
}
