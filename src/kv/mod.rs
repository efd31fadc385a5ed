//! KV memory as the scheduler sees it ([`blocks`], [`prefix`]) and as the model does ([`store`]).

mod block;
pub mod blocks;
mod eviction;
pub mod prefix;
pub mod store;

/// A block's number in its replica's pool.
pub type BlockId = u32;
