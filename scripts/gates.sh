#!/usr/bin/env bash
# What is asked of the built page beyond its tests: gates.sh [--keep] [GATE…], a gate being a file of tests/gates (axe, keyboard, …).
# Installs what is missing, builds the page where dist/ is missing or old, asks it all in Chromium and Firefox, and ends
# with a table: gate, found, asked, met. A structural gate that is not met fails it; timings, sizes and scores are printed
# and fail only when far off, by the bounds that stand in the table. --keep writes the sizes found to benches/SIZES.json.
# Takes about ten minutes.
set -euo pipefail
for lib in common rust tools; do source "$(dirname "${BASH_SOURCE[0]}")/lib/$lib.sh"; done
cd "$ROOT"

# Those that measure first, while the machine is quiet.
ALL=(lighthouse size motion axe markup keyboard address workers print firefox)
if [ "${1:-}" = --keep ]; then export WARMROUTE_KEEP=1 && shift; fi
chosen=("$@")
[ "${#chosen[@]}" != 0 ] || chosen=("${ALL[@]}")

# Whether something that the page is made of is newer than it.
old() {
  [ ! -f dist/index.html ] ||
    [ -n "$(find src static index.html Trunk.toml Cargo.toml Cargo.lock .cargo scripts -newer dist/index.html -type f \
      ! -path 'scripts/*.sh' ! -path 'scripts/lib/*' -print -quit)" ]
}

step "setup of the gates" setup_gates
case " ${chosen[*]} " in *" firefox "*) step "setup of Firefox" setup_firefox ;; esac
end_turn
if old; then step "the page, built in release" trunk build --release --locked; fi
WARMROUTE_GATES=$(mktemp) WARMROUTE_WEBDRIVER_JSON=$(webdriver_json)
export WARMROUTE_GATES WARMROUTE_WEBDRIVER_JSON

trap - ERR # from here on a gate may fail, and the others are still asked
failed=0
for name in "${chosen[@]}"; do
  began=$SECONDS
  node --test --test-reporter=tap "tests/gates/$name.test.mjs" || failed=1
  say "$name: $((SECONDS - began)) s"
done
node tests/gates/table.mjs "$WARMROUTE_GATES"
rm -f "$WARMROUTE_GATES"
exit "$failed"
