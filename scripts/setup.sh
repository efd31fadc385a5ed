#!/usr/bin/env bash
# Installs what the page needs to be built (`scripts/setup.sh`), or to be built and tested (`scripts/setup.sh tests`),
# or for the gates (`scripts/setup.sh gates`).
# Costs seconds where all is there. serve.sh and test.sh do the same before they start.
set -euo pipefail
for lib in common rust tools; do source "$(dirname "${BASH_SOURCE[0]}")/lib/$lib.sh"; done
step "setup of the ${1:-page}" "setup_${1:-page}"
end_turn
