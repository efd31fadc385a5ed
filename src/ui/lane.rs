//! One policy's run, as far as its worker has told it.

use std::rc::Rc;

use super::playback::{Chunks, Log};
use crate::policy::PolicyKind;
use crate::worker::{Finished, MAX_EVENTS, Point, Progress, Told};

/// How a lane's worker is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Its worker loads, or has not taken the job up yet.
    Starting,
    /// It computes.
    Running,
    /// It has come to the end.
    Done(Rc<Finished>),
    /// Its worker died; why.
    Dead(String),
    /// It cannot be run with these parameters; why.
    Refused(String),
    /// The reader ended it.
    Cancelled,
}

/// One policy's run.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The policy.
    pub policy: PolicyKind,
    /// The number of its run; what other runs still say is not heard.
    pub run: u32,
    /// How its worker is doing.
    pub status: Status,
    /// What happened so far.
    pub log: Log,
    /// How its figures went.
    pub points: Chunks<Point>,
    /// How far it has come.
    pub progress: Progress,
}

impl Lane {
    /// A run that has not begun.
    pub fn new(policy: PolicyKind, run: u32) -> Lane {
        Lane {
            policy,
            run,
            status: Status::Starting,
            log: Log::default(),
            points: Chunks::default(),
            progress: Progress::default(),
        }
    }

    /// Whether nothing more will come of it.
    pub fn settled(&self) -> bool {
        !matches!(self.status, Status::Starting | Status::Running)
    }

    /// What came of it, once it is done.
    pub fn finished(&self) -> Option<&Rc<Finished>> {
        match &self.status {
            Status::Done(finished) => Some(finished),
            _ => None,
        }
    }

    /// Whether more happened than is kept for the replay.
    pub fn truncated(&self) -> bool {
        self.log.len() >= MAX_EVENTS
    }

    /// Takes what its worker told; whether nothing more will come of it by that.
    pub fn hear(&mut self, told: Told) -> bool {
        if self.settled() {
            return false;
        }
        match told {
            Told::Started { run } if run == self.run => self.status = Status::Running,
            Told::Slice { run, progress, events, points } if run == self.run => {
                self.progress = progress;
                self.log.push(events);
                self.points.push(points);
            }
            Told::Finished { run, finished } if run == self.run => {
                self.status = Status::Done(finished.into());
            }
            Told::Refused { message } => self.status = Status::Refused(message),
            Told::Failed { message } => self.status = Status::Dead(message),
            _ => {}
        }
        self.settled()
    }
}
