//! The page's sections.

pub mod cold_start;
mod cold_start_control;
