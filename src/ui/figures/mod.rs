//! What the chapter's figures show: small runs and look-ups by the core, without web types, so that they are
//! tested natively. Nothing here is a picture's own arithmetic: prices, decisions, blocks and records are the
//! scheduler's.

pub mod blocks;
pub mod hot;
pub mod moved;
pub mod prefixes;
pub mod work;
