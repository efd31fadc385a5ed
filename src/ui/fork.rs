//! Another future of a lane: the same run up to a moment, and from there on one thing is different.
//!
//! A worker of its own runs it, the scheduler without tensors at the modelled clock's prices. That is the
//! same schedule as with tensors, so up to the moment it is the lane's own run, which
//! [`Fork::agreement`] compares event by event.

use std::rc::Rc;

use super::lane::{Lane, Status};
use super::playback::Log;
use super::words::flags;
use crate::params::{ClockKind, Config, Problem};
use crate::policy::PolicyKind;
use crate::runlog::Change;
use crate::sim::{Event, Summary, What};
use crate::units::PICOS_PER_SECOND;
use crate::worker::Told;

/// How often a worker that dies is replaced before the page says so.
const TRIES: u32 = 1;

/// Another future.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The lane that it is a future of: its place, and its policy up to the moment.
    pub of: (usize, PolicyKind),
    /// The moment, in picoseconds: everything that happens then has happened.
    pub at: u64,
    /// What is different.
    pub change: Change,
    /// Replicas that there are at one time or the other.
    pub replicas: u32,
    /// The run.
    pub future: Lane,
    /// What the lane comes to without the change, by the worker that ran the other.
    pub original: Option<Rc<Summary>>,
    died: u32,
}

/// What can happen to it.
#[derive(Clone, Debug)]
pub enum Act {
    /// Fork at the moment shown.
    Ask {
        /// Which lane.
        lane: usize,
        /// What is different.
        change: Change,
    },
    /// Its worker said something.
    Heard(Told),
    /// Its worker died; why.
    Died(String),
    /// Run it again.
    Again,
    /// Away with it.
    Drop,
}

/// How two runs compare up to the moment at which they part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// All events are the same: so many.
    Same(usize),
    /// The first that is not the same was so many events after the beginning.
    Differs(usize),
}

/// Why a configuration's runs cannot be forked, if they cannot.
pub fn obstacle(config: &Config) -> Option<&'static str> {
    (config.clock == ClockKind::Measured).then_some(
        "The clock is a stop-watch: what its steps took cannot be measured again to the same \
         picosecond, so no second run is the same up to a moment. Under the modelled clock one is.",
    )
}

impl Fork {
    /// A future of a lane from a moment on, not run yet; or what is wrong with the change.
    pub fn new(
        of: (usize, PolicyKind),
        at: u64,
        change: Change,
        config: &Config,
        run: u32,
    ) -> Result<Fork, Problem> {
        let (changed, policy) = change.check(config, of.1)?;
        let replicas = config.replicas.max(changed.replicas);
        Ok(Fork { of, at, change, replicas, future: Lane::new(policy, run), original: None, died: 0 })
    }

    /// The command line that comes to the same two futures.
    pub fn command(&self, config: &Config) -> String {
        let change = match &self.change {
            Change::Policy(policy) => format!("policy={}", policy.name()),
            Change::Parameter { key, value } => format!("{key}={value}"),
            Change::Replicas(replicas) => format!("replicas={replicas}"),
            Change::Objectives(new) if new.ttft == config.slo_ttft => format!("slo_itl={}", new.itl),
            Change::Objectives(new) => format!("slo_ttft={}", new.ttft),
        };
        // A picosecond is the clock's grain, so so many digits are the moment itself.
        let (whole, part) = (self.at / PICOS_PER_SECOND, self.at % PICOS_PER_SECOND);
        let policy = self.of.1.name();
        let flags = flags(config, &["policy", "backend"]);
        format!("warmroute fork --at {whole}.{part:012} --change {change} --policy {policy}{flags}")
    }

    /// The run that its worker should be doing; `None`: none.
    pub fn wanted(&self) -> Option<u32> {
        (!self.future.settled()).then_some(self.future.run)
    }

    /// Takes what happened; `run` is a number for another try.
    pub fn act(&mut self, act: Act, run: u32) {
        match act {
            Act::Heard(Told::Original { run, summary }) if run == self.future.run => {
                self.original = Some(summary.into());
            }
            Act::Heard(Told::Failed { message }) => self.died(message, run),
            Act::Heard(told) => {
                self.future.hear(told);
            }
            Act::Died(why) => self.died(why, run),
            Act::Again => self.again(run),
            Act::Ask { .. } | Act::Drop => {}
        }
    }

    fn died(&mut self, why: String, run: u32) {
        if self.future.settled() {
            return;
        }
        self.died += 1;
        if self.died > TRIES {
            self.future.status = Status::Dead(why);
        } else {
            self.again(run);
        }
    }

    fn again(&mut self, run: u32) {
        self.future = Lane::new(self.future.policy, run);
        self.original = None;
    }

    /// How it compares with its lane up to the moment; `None`: they are not known so far.
    pub fn agreement(&self, lane: &Lane) -> Option<Agreement> {
        let known = |lane: &Lane| lane.settled() || lane.progress.at > self.at;
        (known(lane) && known(&self.future)).then(|| agreement(&lane.log, &self.future.log, self.at))
    }
}

fn agreement(one: &Log, other: &Log, until: u64) -> Agreement {
    let (ours, theirs) = (one.until(until), other.until(until));
    let same = one.iter().zip(other.iter()).take(ours.max(theirs)).take_while(|(a, b)| same(a, b)).count();
    if same == ours && same == theirs { Agreement::Same(same) } else { Agreement::Differs(same) }
}

/// Whether two events are the same, whatever the tokens say: without tensors they say something else.
fn same(one: &Event, other: &Event) -> bool {
    match (&one.what, &other.what) {
        (What::StepEnded { end: a, blocks }, What::StepEnded { end: b, blocks: others }) => {
            let emitted = a.emitted.iter().map(|token| (token.request, token.last));
            one.at == other.at
                && a.replica == b.replica
                && blocks == others
                && emitted.eq(b.emitted.iter().map(|token| (token.request, token.last)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests;
