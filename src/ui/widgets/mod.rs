//! Parts that sections are made of.

pub mod plot;
mod surroundings;
