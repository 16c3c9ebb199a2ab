#!/usr/bin/env bash
# The main job on whatever is here: starts a server of its own in dev mode, lets a real MCP client do a data-science
# session over HTTP with a bearer token, saves the plots to demo-output/, and stops the server again.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'demo: %s\n' "$*" >&2; }

OUT=demo-output
STATE=.cache/demo
mkdir -p "$OUT" "$STATE"
rm -f "$OUT"/plot-*.png "$STATE"/server.log

# With an engine at hand kernels run in containers, for which an image is needed once.
WHERE=()
if ! bin/cellblock doctor --check engine >/dev/null 2>&1; then
	if [ -n "${DOCKER_HOST:-}" ]; then
		say "no engine answers at DOCKER_HOST; going on with the local sandbox"
		WHERE=(--provisioner local)
	fi
elif ! bin/cellblock doctor --check image >/dev/null 2>&1; then
	say "a container engine is here, but not the kernels' image: building it once (make image)"
	if ! scripts/image.sh >"$STATE/image.log" 2>&1; then
		say "the image could not be built (see $STATE/image.log); going on with the local sandbox"
		WHERE=(--provisioner local)
	fi
fi

RUN=$(mktemp -d /tmp/cb-demo.XXXXXX)
bin/cellblock serve --addr 127.0.0.1:0 --data-dir "$STATE/data" --run-dir "$RUN" --on-shutdown stop "${WHERE[@]}" >"$STATE/server.out" 2>"$STATE/server.log" &
SERVER=$!
trap 'kill $SERVER 2>/dev/null || true; wait $SERVER 2>/dev/null || true; rm -rf "$RUN"' EXIT

# The server says "ready" on stderr when it serves; tail ends with the server.
READY=$(timeout 60 tail -n +1 -f --pid=$SERVER "$STATE/server.log" | grep -m1 'is ready at' || true)
if [ -z "$READY" ]; then
	say "the server did not come up:"
	cat "$STATE/server.log" >&2
	exit 1
fi
URL=$(sed -E 's/.*(http:\/\/[^ ]+\/mcp).*/\1/' <<<"$READY")
say "${READY%% · token*}"
[ -x bin/datascience ] && [ bin/datascience -nt examples/datascience/main.go ] || go build -o bin/datascience ./examples/datascience
bin/datascience -url "$URL" -token-file "$STATE/data/dev_token.txt" -out "$OUT"

cat <<END

The plots are PNG files that you can open:
$(for f in "$OUT"/plot-*.png; do echo "  $PWD/$f"; done)

To use it from Claude, start the server and add it:
  bin/cellblock serve
  claude mcp add --transport http cellblock http://127.0.0.1:8787/mcp --header "Authorization: Bearer \$(bin/cellblock token)"
Claude Desktop starts it by itself; put this into its configuration:
  {"mcpServers": {"cellblock": {"command": "$PWD/bin/cellblock", "args": ["stdio"]}}}
END
