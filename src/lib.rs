//! warmroute: which replica should get this request?
pub mod engine;
pub mod kv;
pub mod model;
