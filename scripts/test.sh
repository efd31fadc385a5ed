#!/usr/bin/env bash
# All tests: what check.sh checks, the browser tests, the built page in headless Chromium, and its gates (gates.sh).
# Installs what is missing. Ends with one line that sums all results, as cargo test would print it.
set -euo pipefail
for lib in common rust tools; do source "$(dirname "${BASH_SOURCE[0]}")/lib/$lib.sh"; done
cd "$ROOT"

step "setup" setup_tests
end_turn

trap - ERR # from here on a step may fail, and the others still run
passed=0 failed=0 ignored=0 broken=()

# tally: the sums "passed failed ignored" of all results in cargo's or node's (TAP) output on stdin; nothing if none.
tally() {
  awk '/^test result: / {
      found = 1; sub(/^test result: [^.]*\. /, "")
      n = split($0, parts, "; ")
      for (i = 1; i <= n; i++) { split(parts[i], p, " "); sum[p[2]] += p[1] }
    }
    /^# (pass|fail|cancelled|skipped|todo) [0-9]+$/ { found = 1; sum[$2] += $3 }
    END { if (found) print sum["passed"] + sum["pass"], sum["failed"] + sum["fail"] + sum["cancelled"],
      sum["ignored"] + sum["skipped"] + sum["todo"] }'
}

# run LABEL COMMAND…: shows the output and adds up its results. A step that fails with no failed test, or that
# passes with no test at all where one is expected, or skips a file that is not for a browser, is broken, and counts as one failure.
run() {
  local label=$1 out status=0 began=$SECONDS p=0 f=0 i=0 sums
  shift
  out=$(mktemp)
  say "$label"
  "$@" 2>&1 | tee "$out" || status=$?
  say "$label: $((SECONDS - began)) s"
  sums=$(tally <"$out")
  if grep -q '^This test suite is only configured to run in' "$out"; then status=1; fi
  rm -f "$out"
  read -r p f i <<<"${sums:-0 0 0}"
  passed=$((passed + p)) failed=$((failed + f)) ignored=$((ignored + i))
  if { [ "$status" != 0 ] && [ "$f" = 0 ]; } || { [ "$label" != "$BUILD" ] && [ "$p" = 0 ]; }; then
    broken+=("$label") failed=$((failed + 1))
  fi
}
BUILD="the page, built in release"

run "checks and native tests" scripts/check.sh
run "tests in the browser" env WASM_BINDGEN_TEST_WEBDRIVER_JSON="$(webdriver_json)" \
  wasm-pack test --headless --chrome --chromedriver "$CHROMEDRIVER" --mode no-install -- --locked "${WEB_TESTS[@]}"
run "$BUILD" trunk build --release --locked
run "the built page in the browser" node --test --test-reporter=tap tests/browser/*.test.mjs
# All but Firefox's, whose driver takes long to build: `scripts/gates.sh firefox`.
run "gates" scripts/gates.sh lighthouse size motion axe markup keyboard address workers print

for step in "${broken[@]+"${broken[@]}"}"; do say "broken: $step"; done
verdict=ok
[ "$failed" = 0 ] || verdict=FAILED
echo "test result: $verdict. $passed passed; $failed failed; $ignored ignored; 0 measured; 0 filtered out; finished in $SECONDS.00s"
[ "$verdict" = ok ]
