//! Request state, scheduling and sampling.
pub mod sampling;
