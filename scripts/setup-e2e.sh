#!/usr/bin/env bash
# Installs the MCP clients of others that the end-to-end tests use (e2e/npm) into .cache/npm, if they are not there in the
# versions of the lock, and BokehJS. Runs no script of theirs. Safe to run again, and at the same time.
set -euo pipefail
cd "$(dirname "$0")/.."

# Of BokehJS the tests need one file; what it was built from is a hundred times as large.
bokeh=3.10.0
bokeh_sum=423a583ccf106b3422cca24ca5b631868621507a690e7850bb7495ae6b94a632

say() { printf 'setup-e2e: %s\n' "$*" >&2; }

target=.cache/npm
mkdir -p "$target"
if command -v flock >/dev/null; then # the tests of two packages may start at once
	exec 9>"$target/.lock"
	flock 9
fi
want=$(cat e2e/npm/package.json e2e/npm/package-lock.json | cksum)" $bokeh"
[ "$(cat "$target/.installed" 2>/dev/null)" != "$want" ] || exit 0
command -v npm >/dev/null || {
	say "npm is missing. Debian, Ubuntu: sudo apt-get install nodejs npm     Fedora: sudo dnf install nodejs-npm"
	exit 1
}
say "installing the MCP clients of others into $target"
cp e2e/npm/package.json e2e/npm/package-lock.json e2e/npm/.npmrc "$target/"
npm ci --prefix "$target" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
archive=$(cd "$target" && npm pack --silent "@bokeh/bokehjs@$bokeh")
echo "$bokeh_sum  $target/$archive" | sha256sum --check --quiet >&2
mkdir -p "$target/node_modules/@bokeh/bokehjs"
tar -xzf "$target/$archive" -C "$target/node_modules/@bokeh/bokehjs" --strip-components=3 package/build/js/bokeh.min.js
rm "$target/$archive"
echo "$want" >"$target/.installed"
