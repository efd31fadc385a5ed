# The tools that build and test the page. Sourced, after common.sh and rust.sh.
# Each is kept in the cache folder under its version, so the next clone finds it.
# shellcheck shell=bash

# All that the page needs to be built; a lock keeps two setups from building the same tools at once.
setup_page() {
  take_turns
  setup_rust
  ensure "wasm-bindgen $WASM_BINDGEN" wasm_bindgen_works install_wasm_bindgen
  ensure "trunk $TRUNK" trunk_works install_trunk
  ensure "node and npm" node_works install_node
  ensure "wasm-opt $BINARYEN" wasm_opt_works install_wasm_opt
  link_tools
}

# What the benchmarks need: both wasm modules and a browser to run them in.
setup_bench() {
  take_turns
  setup_rust
  ensure "wasm-bindgen $WASM_BINDGEN" wasm_bindgen_works install_wasm_bindgen
  ensure "node and npm" node_works install_node
  ensure "playwright-core $PLAYWRIGHT" playwright_works install_playwright
  ensure "a Chromium and its driver" browser_works install_browser
}

# The page's needs, and all that its tests need besides.
setup_tests() {
  setup_page
  ensure "playwright-core $PLAYWRIGHT" playwright_works install_playwright
  ensure "a Chromium and its driver" browser_works install_browser
  ensure "wasm-pack $WASM_PACK" wasm_pack_works install_wasm_pack
  link_tools
}

# The tests' needs, and what the gates ask besides.
setup_gates() {
  setup_tests
  attempt "lighthouse $LIGHTHOUSE" lighthouse_works install_lighthouse
  attempt "axe-core $AXE" axe_works install_axe
  attempt "html-validate $HTML_VALIDATE" html_validate_works install_html_validate
}

# What the gate in Firefox needs besides.
setup_firefox() {
  attempt "Firefox" firefox_works install_firefox
  attempt "geckodriver $GECKODRIVER" geckodriver_works install_geckodriver
  firefox_works || true # in this shell, for FIREFOX
}

take_turns() { if have flock; then exec 9>"$CACHE/lock" && { flock -n 9 || { say "waiting for another setup"; flock 9; }; }; fi; }
end_turn() { rm -rf "$CACHE/build"; exec 9>&-; }

# cargo_install NAME VERSION [OPTION…]: built for a short build, not for speed; the three share what they can.
cargo_install() {
  local name=$1 version=$2
  shift 2
  (
    export CARGO_TARGET_DIR=$CACHE/build CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off
    export CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols
    quietly cargo install "$name" --version "=$version" --root "$CACHE/$name-$version" --force "$@"
  )
  ln -sf "$CACHE/$name-$version/bin/"* "$CACHE/bin/"
}

# says VERSION COMMAND…: the command runs, and prints that version.
says() { local version=$1; shift; "$@" 2>/dev/null | grep -wF -- "$version" >/dev/null; } # it all: who is cut off may fail

wasm_bindgen_works() { says "$WASM_BINDGEN" "$CACHE/bin/wasm-bindgen" --version && "$CACHE/bin/wasm-bindgen-test-runner" --help; }
install_wasm_bindgen() { cargo_install wasm-bindgen-cli "$WASM_BINDGEN" --no-default-features; }

# Without TLS, trunk downloads nothing: it finds its tools on the PATH.
trunk_works() { says "$TRUNK" "$CACHE/bin/trunk" --version; }
install_trunk() { cargo_install trunk "$TRUNK" --locked --no-default-features; }

wasm_pack_works() { says "$WASM_PACK" "$CACHE/bin/wasm-pack" --version; }
install_wasm_pack() { cargo_install wasm-pack "$WASM_PACK" --locked; }

node_works() { have npm && at_least v18 "$(node --version)"; }
install_node() { apt_install nodejs npm; }

# npm_install NAME VERSION
npm_install() {
  local dir=$CACHE/$1-$2
  rm -rf "$dir" && mkdir -p "$dir"
  quietly npm install --prefix "$dir" --no-save --no-audit --no-fund --ignore-scripts "$1@$2"
}

wasm_opt_works() { says "$BINARYEN" "$CACHE/bin/wasm-opt" --version; }
install_wasm_opt() {
  npm_install binaryen "$BINARYEN.0.0"
  ln -sf "$CACHE/binaryen-$BINARYEN.0.0/node_modules/.bin/wasm-opt" "$CACHE/bin/wasm-opt"
}

export WARMROUTE_PLAYWRIGHT=$CACHE/playwright-core-$PLAYWRIGHT/node_modules/playwright-core
playwright_works() { node -e 'require(process.env.WARMROUTE_PLAYWRIGHT).chromium.name()'; }
install_playwright() { npm_install playwright-core "$PLAYWRIGHT"; }

# What the gates ask. Each is found by its folder, so that a test without it can say so and be skipped.
export WARMROUTE_LIGHTHOUSE=$CACHE/lighthouse-$LIGHTHOUSE/node_modules
lighthouse_works() { says "$LIGHTHOUSE" node "$WARMROUTE_LIGHTHOUSE/lighthouse/cli/index.js" --version; }
install_lighthouse() { npm_install lighthouse "$LIGHTHOUSE"; }

export WARMROUTE_AXE=$CACHE/axe-core-$AXE/node_modules/axe-core/axe.min.js
axe_works() { node -e 'if (!require(process.env.WARMROUTE_AXE).version) process.exit(1)'; }
install_axe() { npm_install axe-core "$AXE"; }

if have node && ! at_least v20.19 "$(node --version)"; then HTML_VALIDATE=$HTML_VALIDATE_18; fi
export WARMROUTE_HTML_VALIDATE=$CACHE/html-validate-$HTML_VALIDATE/node_modules/html-validate
html_validate_works() { says "$HTML_VALIDATE" node "$WARMROUTE_HTML_VALIDATE/bin/html-validate.mjs" --version; }
install_html_validate() { npm_install html-validate "$HTML_VALIDATE"; }

# Sets FIREFOX for the tests.
firefox_works() {
  local found
  for found in "${FIREFOX:-}" firefox-esr firefox /Applications/Firefox.app/Contents/MacOS/firefox; do
    [ -n "$found" ] && have "$found" && export FIREFOX && FIREFOX=$(command -v "$found") && return
  done
  return 1
}
install_firefox() { apt_install firefox-esr; }

export GECKODRIVER_BIN=$CACHE/bin/geckodriver
geckodriver_works() { says "$GECKODRIVER" "$GECKODRIVER_BIN" --version; }
install_geckodriver() { cargo_install geckodriver "$GECKODRIVER" --locked; }

# A browser and a driver of one major version. Sets CHROMIUM and CHROMEDRIVER for the tests.
browser_works() {
  local found
  for found in "${CHROMIUM:-}" "$CACHE/browser/chrome" chromium chromium-browser google-chrome google-chrome-stable \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    [ -n "$found" ] && have "$found" && CHROMIUM=$(command -v "$found") && break
  done
  for found in "${CHROMEDRIVER:-}" "$CACHE/browser/chromedriver" chromedriver; do
    [ -n "$found" ] && have "$found" && CHROMEDRIVER=$(command -v "$found") && break
  done
  export CHROMIUM CHROMEDRIVER
  [ -n "${CHROMIUM:-}" ] && [ -n "${CHROMEDRIVER:-}" ] && [ "$(major "$CHROMIUM")" = "$(major "$CHROMEDRIVER")" ]
}
major() { "$1" --version | grep -oE '[0-9]+\.[0-9.]+' | head -n 1 | cut -d. -f1; }
install_browser() {
  if [ -f /etc/debian_version ] && apt-cache show chromium-driver >/dev/null 2>&1; then
    apt_install chromium chromium-driver && return
  fi
  # Elsewhere: a pair from the browser's makers, into the cache.
  local one
  for one in chrome chromedriver; do
    quietly npx --yes @puppeteer/browsers@2 install "$one@stable" --path "$CACHE/browser" ||
      die "please install Chromium (or Chrome) and the chromedriver of its version"
    find "$CACHE/browser" -type f -name "$one" -exec ln -sf {} "$CACHE/browser/$one" \;
  done
}

# So that plain `trunk`, `wasm-pack` … are found outside these scripts. Tools of the user's own are left alone.
link_tools() {
  local tool
  for tool in "$CACHE/bin/"*; do
    if [ -d "$CARGO_BIN" ] && { [ ! -e "$CARGO_BIN/${tool##*/}" ] || [ -L "$CARGO_BIN/${tool##*/}" ]; }; then
      ln -sf "$(readlink -f "$tool")" "$CARGO_BIN/${tool##*/}"
    fi
  done
  [ "$CARGO_BIN/trunk" -ef "$CACHE/bin/trunk" ] ||
    say "for plain trunk, put this into your shell: export PATH=\"$CACHE/bin:\$PATH\""
}

# webdriver_json: the repository's webdriver.json, with the browsers that were found.
webdriver_json() {
  node -e 'const [from, to, chromium, firefox] = process.argv.slice(1), w = JSON.parse(fs.readFileSync(from));
    w["goog:chromeOptions"].binary = chromium; if (firefox) w["moz:firefoxOptions"].binary = firefox;
    fs.writeFileSync(to, JSON.stringify(w))' "$ROOT/webdriver.json" "$CACHE/webdriver.json" "$CHROMIUM" "${FIREFOX:-}" &&
    echo "$CACHE/webdriver.json"
}
