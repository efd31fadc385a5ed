# The Rust toolchain and its wasm32 target. Sourced, after common.sh.
# The ordinary way is rustup. Where rustup's servers cannot be reached, Debian's rustc serves, with a
# wasm std built here from Debian's own source: see wasm_from_debian. WARMROUTE_DEBIAN_RUST=1 chooses that way.
# shellcheck shell=bash

TARGET=wasm32-unknown-unknown
DEBIAN_TOOLCHAIN=warmroute-debian # rustup's name for Debian's rustc under /usr
DEBIAN_RUST=(rustc-web cargo-web rust-web-src rust-web-clippy rustfmt-web lld-22)

setup_rust() {
  ensure "a C linker" linker_works install_linker
  if [ -n "${WARMROUTE_DEBIAN_RUST:-}" ]; then ensure "Debian's Rust" using_debian_rust use_debian_rust; fi
  ensure "Rust, $RUST_VERSION or newer" rust_works install_rust
  ensure "the wasm32 target" wasm_works install_wasm
  ensure "rustfmt and clippy" components_work install_components
  forget_stale_wasm
}

linker_works() { have cc; }
install_linker() { apt_install gcc libc6-dev; }

rust_works() {
  have cargo && at_least "$RUST_VERSION" "$(cd "$ROOT" && rustc --version | awk '{ print $2 }')"
}
install_rust() {
  if have rustup; then
    limit 600 rustup toolchain install stable --profile minimal --no-self-update &&
      (cd "$ROOT" && rustup override set stable) && rust_works && return
  fi
  use_debian_rust || die "please install Rust $RUST_VERSION or newer (rustup does it)"
}

# Debian's Rust, under a name that rustup and plain cargo know in this clone.
use_debian_rust() {
  apt_install "${DEBIAN_RUST[@]}" || return 1
  if have rustup; then
    rustup toolchain link "$DEBIAN_TOOLCHAIN" /usr
    rustup override set "$DEBIAN_TOOLCHAIN" --path "$ROOT"
  fi
}

# Compiles a small library and a test to wasm, with LTO, which needs every rlib of std, whole.
wasm_works() (
  cd "$ROOT" && dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT &&
    cat >"$dir/lib.rs" <<'RUST' &&
#[unsafe(no_mangle)]
pub extern "C" fn f(n: u32) -> usize { std::collections::HashMap::from([(n, format!("{n}"))])[&n].len() }
#[test]
fn t() { assert_eq!(f(1), 1) }
RUST
    rustc --edition 2024 --target $TARGET -O -C lto -C panic=abort --crate-type cdylib -o "$dir/lib.wasm" "$dir/lib.rs" &&
    rustc --edition 2024 --target $TARGET --test -o "$dir/test.wasm" "$dir/lib.rs" &&
    [ "$(head -c 4 "$dir/lib.wasm" | tail -c 3)" = asm ]
)

install_wasm() {
  if have rustup && ! using_debian_rust; then
    # A damaged target counts as installed: it is taken away first.
    (cd "$ROOT" && limit 60 rustup target remove $TARGET >/dev/null 2>&1) || true
    (cd "$ROOT" && limit 180 rustup target add $TARGET) && wasm_works >/dev/null 2>&1 && return
    say "rustup could not bring the wasm32 target; trying Debian's Rust"
  fi
  use_debian_rust || die "please run: rustup target add $TARGET"
  wasm_from_debian
}

using_debian_rust() { (cd "$ROOT" && [ "$(rustc --print sysroot)" = /usr ]); }

# Debian's compiler has no wasm32-unknown-unknown std, but its source is packaged: build it, once.
# Bitcode is embedded, or LTO would fail. Rlibs are copied last, so a half-done build leaves none.
wasm_from_debian() {
  local build=$CACHE/std-build lib=/usr/lib/rustlib/$TARGET/lib toolchain=()
  have rustup && toolchain=("+$DEBIAN_TOOLCHAIN")
  rm -rf "$build" && mkdir -p "$build/src"
  printf '[package]\nname = "only_std"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n' >"$build/Cargo.toml"
  echo '#![no_std]' >"$build/src/lib.rs"
  (
    cd "$build" || exit
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Cembed-bitcode=yes CARGO_TARGET_DIR=$build/target \
      quietly cargo "${toolchain[@]}" build --release --target $TARGET \
      -Zbuild-std=std,panic_abort,panic_unwind,test
    rm -f "target/$TARGET/release/deps/"libonly_std*
  )
  as_root rm -rf "$lib"
  as_root mkdir -p "$lib" /usr/lib/rustlib/x86_64-unknown-linux-gnu/bin
  as_root cp "$build/target/$TARGET/release/deps/"*.rlib "$lib/"
  as_root ln -sf /usr/lib/llvm-22/bin/lld /usr/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld
  rm -rf "$build"
}

components_work() { (cd "$ROOT" && cargo fmt --version && cargo clippy --version); }
install_components() {
  if using_debian_rust; then use_debian_rust
  else limit 180 rustup component add rustfmt clippy || die "please run: rustup component add rustfmt clippy"; fi
}

# What was compiled against another std cannot be linked with this one, and cargo does not notice.
forget_stale_wasm() {
  local std stamp=$ROOT/target/wasm-std
  # shellcheck disable=SC2012 # names and times of known plain files
  std=$(cd "$ROOT" && rustc -V && ls -l --time-style=+%s "$(rustc --print target-libdir --target $TARGET)" 2>/dev/null | cksum)
  if [ "$(cat "$stamp" 2>/dev/null)" != "$std" ]; then
    rm -rf "$ROOT/target/$TARGET"
    mkdir -p "$ROOT/target" && printf '%s\n' "$std" >"$stamp"
  fi
}
