//! Everything that can happen to the page.

use super::Bench;
use crate::coldstart::Settings;
use crate::engine::RequestId;
use crate::params::Config;
use crate::ui::fork;
use crate::ui::study::Act;
use crate::worker::Told;

/// Which way a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// To what happened before.
    Past,
    /// To what happens next.
    Future,
}

/// Everything that can happen to the page.
#[derive(Clone, Debug)]
pub enum Action {
    /// The address has this query.
    Open(String),
    /// A control's text was changed.
    Edit {
        /// The parameter.
        key: &'static str,
        /// The text.
        text: String,
    },
    /// All parameters at once: a preset, or the defaults.
    Apply(Box<Config>),
    /// The same again, from the start.
    Restart,
    /// The reader wants no motion.
    Still,
    /// Go on.
    Play,
    /// Stop.
    Pause,
    /// Show the result, without the replay.
    Skip,
    /// Show this moment, in picoseconds.
    Seek(u64),
    /// Show the next instant at which anything happened, or the one before.
    Step(Toward),
    /// How fast, as a factor.
    Speed(f64),
    /// So many seconds went by on the reader's clock.
    Tick(f64),
    /// Give up what is not done yet.
    Cancel,
    /// A lane's worker said something.
    Heard(usize, Told),
    /// A lane's worker died; why.
    Died(usize, String),
    /// Start a lane anew.
    Revive(usize),
    /// Explain a request; `None`: the latest.
    Select(Option<RequestId>),
    /// The cold start is asked about something else.
    Cold(Settings),
    /// Something happened to the sweep.
    Study(Act),
    /// Something happened to the fork.
    Fork(fork::Act),
    /// The notices have been read.
    Dismiss,
    /// Prices are being measured, are, or cannot be.
    Bench(Bench),
}
