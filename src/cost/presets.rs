//! The two sets of constants, and where each comes from.

use super::{PiecePrice, StepPrice};

/// The chapter's four-thread CPU, fitted to the published times, rates, goodputs and reuse ([`crate::chapter`]; `cargo run --release --example fit_chapter_cpu` searches, `… check`
/// prints the fit). One set of constants cannot have all of it: the published round-robin row is
/// slower against the other two than its reuse explains.
pub const CHAPTER_CPU: StepPrice = StepPrice {
    prefill: PiecePrice { base: 3_800_000_000, per_token: 368_000_000, per_pair: 32_000 },
    decode: PiecePrice { base: 640_000_000, per_token: 3_080_000_000, per_pair: 4_300_000 },
};

/// This project's own engine in a browser: the medians of five rounds of `scripts/measure_price.mjs`
/// (the page's own "Measure this machine" in headless Chromium 156, one thread with simd128) on a
/// shared two-core machine, 2026-11-30. Within a round the fit was off by at most 24 % for a prefill
/// and 22 % for a decode; between rounds single constants differ by more, since a fit can trade one for another.
pub const TINYGPT_WASM: StepPrice = StepPrice {
    prefill: PiecePrice { base: 0, per_token: 209_000_000, per_pair: 145_000 },
    decode: PiecePrice { base: 166_000_000, per_token: 227_000_000, per_pair: 459_000 },
};
