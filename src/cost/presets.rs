//! The two sets of constants, and where each comes from.

use super::{PiecePrice, StepPrice};

/// The chapter's four-thread CPU, fitted to the published times, rates, goodputs and reuse ([`crate::chapter`]; `cargo run --release --example fit_chapter_cpu` searches, `… check`
/// prints the fit). One set of constants cannot have all of it: the published round-robin row is
/// slower against the other two than its reuse explains.
pub const CHAPTER_CPU: StepPrice = StepPrice {
    prefill: PiecePrice { base: 3_800_000_000, per_token: 368_000_000, per_pair: 32_000 },
    decode: PiecePrice { base: 640_000_000, per_token: 3_080_000_000, per_pair: 4_300_000 },
};

/// This project's engine in a browser.
pub const TINYGPT_WASM: StepPrice = StepPrice {
    prefill: PiecePrice { base: 300_000_000, per_token: 600_000_000, per_pair: 300_000 },
    decode: PiecePrice { base: 300_000_000, per_token: 700_000_000, per_pair: 300_000 },
};
