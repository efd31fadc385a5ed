//! More replicas, and fewer: what is measured, who decides on it, and how long a decision takes to be of use.
//!
//! - [`signals`]: what a monitoring system sees, at every scrape.
//! - [`scaler`]: who decides, one file each.
//! - [`life`]: from an order to a replica that serves, and to its end; [`bill`] says what that cost.
//! - [`run`]: a run with replicas that come and go, on the same engine as every other.
//! - [`report`]: what it was worth; [`moved`]: which signal moved first.
//! - [`Lab`]: a configuration made into runs.

pub mod bill;
pub mod faults;
mod fleet;
mod lab;
pub mod life;
pub mod moved;
pub mod report;
pub mod reuse;
pub mod run;
pub mod scaler;
mod settings;
pub mod signals;
mod table;

pub use fleet::{Lifecycle, Routed};
pub use lab::Lab;
pub use report::Report;
pub use run::{Run, Scaled, Watcher};
pub use scaler::{ScaleDecision, Scaler, ScalerKind};
pub use settings::Settings;
pub use table::PARAMS;
