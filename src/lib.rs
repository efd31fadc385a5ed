//! warmroute: which replica should get this request?
pub mod kv;
pub mod model;
