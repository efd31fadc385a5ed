//! The two sets of constants, and where each comes from.

use super::{PiecePrice, StepPrice};

/// The chapter's four-thread CPU, fitted to its published rows.
pub const CHAPTER_CPU: StepPrice = StepPrice {
    prefill: PiecePrice { base: 20_000_000_000, per_token: 300_000_000, per_pair: 0 },
    decode: PiecePrice { base: 15_000_000_000, per_token: 5_000_000_000, per_pair: 0 },
};

/// This project's engine in a browser.
pub const TINYGPT_WASM: StepPrice = StepPrice {
    prefill: PiecePrice { base: 300_000_000, per_token: 600_000_000, per_pair: 300_000 },
    decode: PiecePrice { base: 300_000_000, per_token: 700_000_000, per_pair: 300_000 },
};
