#!/usr/bin/env bash
# Everything that needs no browser: format, lints and documentation with warnings as errors, native tests.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
cd "$ROOT"

step "format" cargo fmt --check
step "clippy, native" cargo clippy --quiet --locked --all-targets -- -D warnings
step "clippy, wasm32" \
  cargo clippy --quiet --locked --target wasm32-unknown-unknown --lib --bin app --bin worker --example bench "${WEB_TESTS[@]}" -- -D warnings
step "clippy, prerender" cargo clippy --quiet --locked --lib --bin prerender --features prerender -- -D warnings
RUSTDOCFLAGS="-D warnings" step "documentation" cargo doc --quiet --locked --no-deps --lib --document-private-items
step "native tests" cargo test --locked --no-fail-fast
