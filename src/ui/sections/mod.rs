//! The parts of the page, in its order; one component a file.

pub mod chapter;
pub mod cold_start;
mod cold_start_control;
mod controls;
mod fit;
mod fork;
mod glossary;
mod notices;
mod opening;
mod prices;
mod race;
mod results;
pub mod worth;
mod worth_controls;
mod worth_replicas;
mod worth_results;

pub use cold_start::ColdStart;
pub use controls::Controls;
pub use fork::ForkHere;
pub use glossary::Glossary;
pub use notices::Notices;
pub use opening::Opening;
pub use prices::Prices;
pub use race::Race;
pub use results::Results;
pub use worth::Worth;

use yew::prelude::*;

use super::reducible::Shared;
use super::state::Action;

/// What most sections are given.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The page's state.
    pub state: Shared,
    /// What changes it.
    pub dispatch: Callback<Action>,
}
