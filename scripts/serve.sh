#!/usr/bin/env bash
# Builds the page in release and serves it on http://127.0.0.1:8080, or on the next port that is free.
# Installs what is missing, and builds again when a file changes.
set -euo pipefail
for lib in common rust tools; do source "$(dirname "${BASH_SOURCE[0]}")/lib/$lib.sh"; done
cd "$ROOT"

busy() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

step "setup" setup_page
end_turn

port=8080
while busy "$port"; do
  say "port $port is busy, taking the next"
  port=$((port + 1))
done
say "building; then the page is on http://127.0.0.1:$port (end with Ctrl-C)"
# Not into dist/: a served page looks for its server, to load anew when a file changes, and a hosted one must not.
exec trunk serve --release --locked --address 127.0.0.1 --port "$port" --dist target/served
