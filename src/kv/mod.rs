//! Paged key/value memory.
pub mod store;

/// A block's index in its replica's pool.
pub type BlockId = u32;
