//! How many replicas there should be: the [`Scaler`] trait, one file per scaler, the registry.
//!
//! A scaler sees samples and nothing else, at its own pace, and every [`ScaleDecision`] says how it came
//! about. What turns a decision into replicas is in [`life`](super::life).

use serde::{Deserialize, Serialize};

mod apa;
mod behaviour;
mod derivative;
mod dynamo;
mod fixed;
mod hpa;
mod keda;
mod kpa;
mod oracle;
mod predictive;
mod registry;
mod series;
mod wva;

pub use apa::{Apa, ApaConfig, ApaMetric};
pub use behaviour::{Behaviour, Settle};
pub use derivative::{Derivative, DerivativeConfig};
pub use dynamo::{Dynamo, DynamoConfig};
pub use fixed::Fixed;
pub use hpa::{Hpa, HpaConfig};
pub use keda::{Keda, KedaConfig};
pub use kpa::{Kpa, KpaConfig};
pub use oracle::{Oracle, OracleConfig};
pub use predictive::{Predictive, PredictiveConfig};
pub use registry::{Overrides, ScalerKind, Surroundings};
pub use series::Series;
pub use wva::{Wva, WvaConfig};

use super::signals::FleetSample;
use crate::units::{Span, Time};

/// Replicas by what they are up to, at a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Ready: requests are sent to them.
    pub serving: u32,
    /// On their way to that.
    pub starting: u32,
    /// Finishing what they have.
    pub draining: u32,
    /// Requests held at the gateway.
    pub held: u32,
}

impl Counts {
    /// Replicas that serve or will: what Kubernetes calls the scale.
    pub fn live(&self) -> u32 {
        self.serving + self.starting
    }
}

/// How few and how many replicas there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The least; 0: scaling to zero is allowed.
    pub min: u32,
    /// The most.
    pub max: u32,
}

/// What is done about replicas that have been asked for and do not serve yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pending {
    /// They count: as idle where a mean is taken over replicas (as Kubernetes' HPA does), as a reason to wait
    /// where a scaler adds one at a time (as llm-d's does).
    #[default]
    Counted,
    /// They are forgotten: the ratio of those that serve multiplies all that were asked for, or another is added
    /// at every look. A cold start that takes several looks compounds.
    Ignored,
}

/// Why a scaler wants what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleReason {
    /// There is no sample yet, or nothing in it that it reads.
    NoSignal,
    /// The signal is near enough to its target.
    Tolerated,
    /// What the formula says.
    Formula,
    /// The short window says so.
    Panic,
    /// Some replica, or the spare capacity of all, is beyond its threshold.
    Saturated,
    /// There is capacity to spare, and one fewer would still have enough.
    Spare,
    /// One fewer would not have enough.
    Unsafe,
    /// Nothing is beyond a threshold.
    Steady,
    /// Replicas are on their way: first these.
    AwaitsPending,
    /// Requests wait and there is no replica.
    Activation,
}

/// What kept a decision from what was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// As few as allowed.
    Min,
    /// As many as allowed.
    Max,
    /// How fast it may grow.
    UpRate,
    /// How fast it may shrink.
    DownRate,
    /// It grows only if it wanted to all along the window.
    UpWindow,
    /// It shrinks only to the most that it wanted in the window.
    DownWindow,
    /// The last change is too recent.
    Cooldown,
    /// Zero is for a fleet that has been idle for a while.
    NotIdle,
}

/// A number that a decision was made with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Term {
    /// What it is, in a few words.
    pub name: &'static str,
    /// How much.
    pub value: f64,
}

/// How many replicas there should be, and everything that led to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaleDecision {
    /// When, in picoseconds.
    pub at: u64,
    /// Who decided.
    pub scaler: ScalerKind,
    /// What there was.
    pub counts: Counts,
    /// What the rule itself asked for.
    pub wanted: u32,
    /// What it came to.
    pub desired: u32,
    /// Why.
    pub reason: ScaleReason,
    /// What kept it from what was wanted.
    pub limit: Option<Limit>,
    /// The rule with its numbers: `ceil(4 × 0.9 ÷ 0.8) = 5`.
    pub formula: String,
    /// The numbers.
    pub terms: Vec<Term>,
}

/// A rule that says how many replicas there should be. It keeps state; it never looks at a clock, and draws
/// nothing.
pub trait Scaler {
    /// Which it is.
    fn kind(&self) -> ScalerKind;

    /// The time between two decisions.
    fn interval(&self) -> Span;

    /// The shortest time that it averages over: a scrape must be no longer, or the window would be empty.
    fn shortest_window(&self) -> Option<Span> {
        None
    }

    /// How long a fleet must have been idle before it may go to zero; `None`: never.
    fn idle_before_zero(&self) -> Option<Span> {
        None
    }

    /// A sample has become visible. They come in order.
    fn observe(&mut self, sample: &FleetSample);

    /// Decides.
    fn decide(&mut self, now: Time, counts: Counts, bounds: Bounds) -> ScaleDecision;
}

/// A decision in the making.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub wanted: u32,
    pub reason: ScaleReason,
    pub formula: String,
    pub terms: Vec<Term>,
}

impl Draft {
    /// What a formula gives.
    fn of(wanted: u32, formula: String) -> Draft {
        Draft { wanted, reason: ScaleReason::Formula, formula, terms: Vec::new() }
    }

    /// To leave things as they are.
    fn stay(live: u32, reason: ScaleReason, formula: impl Into<String>) -> Draft {
        Draft { wanted: live, reason, formula: formula.into(), terms: Vec::new() }
    }

    /// With its numbers.
    fn with(mut self, terms: &[(&'static str, f64)]) -> Draft {
        self.terms.extend(terms.iter().map(|&(name, value)| Term { name, value }));
        self
    }

    /// The decision after a rule's stabilisation and rates.
    fn settled(
        self,
        now: Time,
        scaler: ScalerKind,
        counts: Counts,
        settle: &mut Settle,
        bounds: Bounds,
    ) -> ScaleDecision {
        let (desired, limit) = settle.settle(now, counts.live(), self.wanted, bounds);
        self.decide(now, scaler, counts, desired, limit, bounds)
    }

    /// The decision that it becomes, within bounds.
    fn decide(
        self,
        at: Time,
        scaler: ScalerKind,
        counts: Counts,
        desired: u32,
        limit: Option<Limit>,
        bounds: Bounds,
    ) -> ScaleDecision {
        let within = desired.clamp(bounds.min, bounds.max);
        let limit = match within.cmp(&desired) {
            core::cmp::Ordering::Less => Some(Limit::Max),
            core::cmp::Ordering::Greater => Some(Limit::Min),
            core::cmp::Ordering::Equal => limit,
        };
        let Draft { wanted, reason, formula, terms } = self;
        ScaleDecision { at: at.0, scaler, counts, wanted, desired: within, reason, limit, formula, terms }
    }
}

/// Whole replicas for a number of them, rounded up. A sum of parts may be a hair above a whole number that
/// it is exactly on paper: a billionth is not worth a replica.
fn whole(replicas: f64) -> u32 {
    (replicas - 1e-9).ceil().max(0.0) as u32
}

/// A number in a formula: four significant digits, no zeros at the end.
fn text(x: f64) -> String {
    crate::units::trimmed(x, 4)
}

/// A decision in words, with its numbers.
pub fn explain(decision: &ScaleDecision) -> String {
    let Counts { serving, starting, draining, .. } = decision.counts;
    let mut has = format!("{serving} serve");
    if starting > 0 {
        has += &format!(", {starting} on their way");
    }
    if draining > 0 {
        has += &format!(", {draining} draining");
    }
    let why = match decision.reason {
        ScaleReason::NoSignal => "nothing is known yet",
        ScaleReason::Tolerated => "near enough to the target",
        ScaleReason::Formula => "the formula",
        ScaleReason::Panic => "the short window panics",
        ScaleReason::Saturated => "beyond a threshold",
        ScaleReason::Spare => "one fewer is enough",
        ScaleReason::Unsafe => "one fewer would not be enough",
        ScaleReason::Steady => "within all thresholds",
        ScaleReason::AwaitsPending => "what was asked for is not there yet",
        ScaleReason::Activation => "requests wait and nobody serves",
    };
    let held = match decision.limit {
        None => "",
        Some(Limit::Min) => "; no fewer are allowed",
        Some(Limit::Max) => "; no more are allowed",
        Some(Limit::UpRate) => "; it may not grow faster",
        Some(Limit::DownRate) => "; it may not shrink faster",
        Some(Limit::UpWindow) => "; it has not wanted more for long enough",
        Some(Limit::DownWindow) => "; it has not wanted fewer for long enough",
        Some(Limit::Cooldown) => "; the last change is too recent",
        Some(Limit::NotIdle) => "; zero is for an idle fleet",
    };
    let formula = if decision.formula.is_empty() { String::new() } else { format!(": {}", decision.formula) };
    format!("{} → {} ({has}; {why}{formula}{held})", decision.counts.live(), decision.desired)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::autoscale::signals::{Means, ReplicaSample};

    /// A sample of a fleet of so many equal replicas, `second` seconds into the run.
    pub fn sample(second: u64, serving: u32, each: ReplicaSample) -> FleetSample {
        let replicas: Vec<ReplicaSample> =
            (0..serving).map(|replica| ReplicaSample { replica, ..each }).collect();
        FleetSample {
            at: seconds(second).0,
            window: 5.0,
            serving,
            waiting: serving * each.waiting,
            running: serving * each.running,
            mean: (serving > 0).then_some(Means {
                occupancy: each.occupancy,
                kv: each.kv,
                busy: each.busy,
                compute: each.compute,
                memory: each.memory,
            }),
            replicas,
            ..FleetSample::default()
        }
    }

    /// So many seconds into the run.
    pub fn seconds(second: u64) -> Time {
        Time::from_seconds(second as f64).expect("tests are short")
    }

    /// Bounds that do not matter.
    pub const FREE: Bounds = Bounds { min: 1, max: 1000 };

    /// So many replicas serve and so many start.
    pub fn counts(serving: u32, starting: u32) -> Counts {
        Counts { serving, starting, ..Counts::default() }
    }

    #[test]
    fn whole_numbers_on_paper_stay_whole() {
        assert_eq!((whole(4.0), whole(4.000_000_000_1), whole(4.001), whole(-3.0)), (4, 4, 5, 0));
        assert_eq!(whole(10.0 * (0.1 + 0.2)), 3);
        assert_eq!((text(0.8), text(12.0), text(1234.56)), ("0.8".into(), "12".into(), "1235".into()));
    }

    #[test]
    fn a_decision_is_told_in_words() {
        let draft = Draft {
            wanted: 9,
            reason: ScaleReason::Formula,
            formula: "ceil(4 × 2.2) = 9".into(),
            terms: vec![],
        };
        let decision = draft.decide(seconds(15), ScalerKind::Hpa, counts(3, 1), 8, Some(Limit::UpRate), FREE);
        assert_eq!(
            explain(&decision),
            "4 → 8 (3 serve, 1 on their way; the formula: ceil(4 × 2.2) = 9; it may not grow faster)"
        );
    }
}
