#!/usr/bin/env bash
# The engine's speed beside candle's and beside its own matrix products alone: bench.sh [native] [node] [chromium] [--quick]
# Installs what is missing, builds both sides, runs them pair by pair, and prints tables; without a host named, on all three.
# A whole run is kept as benches/RESULTS.md. Takes about ten minutes, and the first build of candle as long again; run it
# while the machine does nothing else.
set -euo pipefail
for lib in common rust tools; do source "$(dirname "${BASH_SOURCE[0]}")/lib/$lib.sh"; done
cd "$ROOT"

BUILT=$ROOT/target/bench # the two native programs, and the folder that is served to Chromium

# build SIDE FOLDER MADE OPTION…: the side's program from the crate in FOLDER, natively and as a wasm module; cargo
# leaves it as MADE in the target folder.
build() {
  local side=$1 folder=$2 made=$3
  shift 3
  (cd "$folder" && cargo build --quiet --locked --release "$@" && cargo build --quiet --locked --release --target "$TARGET" "$@")
  cp "$CARGO_TARGET_DIR/release/$made" "$BUILT/$side"
  wasm-bindgen --target web --no-typescript --out-name side --out-dir "$BUILT/web/$side" \
    "$CARGO_TARGET_DIR/$TARGET/release/$made.wasm"
}

step "setup" setup_bench
end_turn
mkdir -p "$BUILT/web"
CARGO_TARGET_DIR=$ROOT/target step "building the engine's side" build ours . examples/bench --example bench
CARGO_TARGET_DIR=$ROOT/target/peer step "building candle's side" build peer benches/peer peer
cp benches/driver/sides.mjs benches/driver/page.html "$BUILT/web/"
mv "$BUILT/web/page.html" "$BUILT/web/index.html"
step "measuring" node benches/driver/run.mjs --ours "$BUILT/ours" --peer "$BUILT/peer" --folder "$BUILT/web" "$@"
