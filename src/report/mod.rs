//! Results as people and programs read them: JSON, CSV and tables.

mod csv;
mod json;
mod prediction;
mod spread;
mod table;

pub use csv::to_csv;
pub use json::{Report, join_json, to_json};
pub use prediction::{Over, Prediction, Under, grain, prediction};
pub use spread::{Spread, spread_json, spread_table};
pub use table::{Better, Column, columns, markdown, percent, winners};
