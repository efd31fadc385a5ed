# What every script here shares: where things are, which versions, how to speak, how to install.
# Sourced, never run. The caller has `set -euo pipefail`.
# shellcheck shell=bash
set -E # the ERR trap below also holds inside functions

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${WARMROUTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/warmroute}
LOG=$CACHE/last-step.log
CARGO_BIN=${CARGO_HOME:-$HOME/.cargo}/bin

# Pinned. wasm-bindgen's command must be of exactly the crate's version, so it is read from the lock file.
TRUNK=0.21.14    # 0.22 needs a newer Rust than this crate does
WASM_PACK=0.15.1
BINARYEN=132     # wasm-opt; the one Trunk.toml names
PLAYWRIGHT=1.60.0 # the last that runs on the node 18 of Debian 12
LIGHTHOUSE=12.8.2
AXE=4.14.1
HTML_VALIDATE=10.9.0
HTML_VALIDATE_18=9.7.1 # the last that runs on node 18
GECKODRIVER=0.37.1
WASM_BINDGEN=$(awk '/^name = "wasm-bindgen"$/ { getline; gsub(/[^0-9.]/, ""); print }' "$ROOT/Cargo.lock")
RUST_VERSION=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")

# The test files that also run in a browser: tests/web*.rs, as options for cargo.
WEB_TESTS=()
for file in "$ROOT"/tests/web*.rs; do file=${file##*/} && WEB_TESTS+=(--test "${file%.rs}"); done

mkdir -p "$CACHE/bin"
export PATH="$CACHE/bin:$CARGO_BIN:$PATH"
trap 'say "failed: ${BASH_SOURCE[0]}, line $LINENO: $BASH_COMMAND"' ERR

say() { printf '%s\n' "==> $*" >&2; }
die() { say "error: $*"; trap - ERR; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; } # at_least WANTED FOUND

# limit SECONDS COMMAND…: under a time limit where the system has one (macOS has none).
limit() { if have timeout; then timeout -k 5 "$@"; else shift && "$@"; fi </dev/null; }

# quietly COMMAND…: output to the log; its end is shown if the command fails.
quietly() { "$@" </dev/null >"$LOG" 2>&1 || { tail -n 30 "$LOG" >&2; return 1; }; }

# step LABEL COMMAND…: says what is done and how long it took.
step() {
  local label=$1 began=$SECONDS
  shift
  say "$label"
  "$@"
  say "$label: $((SECONDS - began)) s"
}

# ensure LABEL CHECK INSTALL: nothing where CHECK passes; otherwise INSTALL, and CHECK again.
# CHECK really uses the thing, so a half-done or damaged install is seen and done anew.
ensure() {
  if $2 >/dev/null 2>&1; then say "have $1"; return; fi
  step "installing $1" "$3"
  $2 >"$LOG" 2>&1 || { tail -n 30 "$LOG" >&2; die "$1 was installed, and still does not work"; }
}

# attempt LABEL CHECK INSTALL: like ensure, for what only some gates need: where it cannot be had, they are skipped.
attempt() {
  if $2 >/dev/null 2>&1; then say "have $1"; return; fi
  say "installing $1"
  if (trap - ERR && $3) && $2 >/dev/null 2>&1; then say "installed $1"
  else say "could not install $1: what needs it is skipped"; fi
}

# as_root COMMAND…: as root, by sudo where that is needed and there.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else die "needs root, and there is no sudo; please run as root: $*"; fi
}

# apt_install PACKAGE…: on Debian and its kin; elsewhere says what to install.
apt_install() {
  have apt-get || die "please install (Debian's names): $*"
  [ -n "${apt_updated:-}" ] || { quietly as_root apt-get -qq update || true; apt_updated=1; }
  quietly as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@"
}
