//! What routers remember of what they sent: a radix tree of prompts, an index of blocks by the hash of
//! all that leads to them, and what makes either forget.

mod blocks;
mod lru;
mod radix;

pub use blocks::{BlockIndex, chain, chained};
pub use lru::Lru;
pub use radix::{Match, RadixIndex};
