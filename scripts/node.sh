#!/usr/bin/env bash
# Installs the kernel for JavaScript and TypeScript on this machine, as Jupyter kernelspecs: for all users when run as root, else
# for this one. Needs Node.js 20.12 or newer and npm, which fetches the packages that package-lock.json pins.
#
#   scripts/node.sh [FOLDER]    FOLDER is where the kernelspecs go, …/jupyter/kernels
#   scripts/node.sh --packages  only fetches the packages into the sources, for the tests
set -euo pipefail
cd "$(dirname "$0")/../images/executor/node"

say() { printf 'node: %s\n' "$*" >&2; }
die() { say "$1"; shift; for line in "$@"; do say "  $line"; done; exit 1; }

command -v node >/dev/null && node -e "require('vm').constants.USE_MAIN_CONTEXT_DEFAULT_LOADER || process.exit(1)" 2>/dev/null ||
	die "Node.js 20.12 or newer is missing." "Debian, Ubuntu: apt-get install nodejs npm; elsewhere: your distribution's packages."
command -v npm >/dev/null || die "npm is missing." "Debian, Ubuntu: apt-get install npm"

# Nothing of what is fetched is run: the packages bring what they need built.
packages() {
	npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error --prefix "$1" >&2
	# zeromq comes built for every system there is.
	find "$1/node_modules/zeromq/build" -mindepth 1 -maxdepth 1 -type d ! -name linux ! -name darwin -exec rm -rf {} +
}

if [ "${1:-}" = --packages ]; then
	packages "$PWD"
	exit
fi

if [ -n "${1:-}" ]; then
	kernels=$1
elif [ "$(id -u)" = 0 ]; then
	kernels=/usr/local/share/jupyter/kernels
else
	kernels=${JUPYTER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/jupyter}/kernels
fi
mkdir -p "$kernels"
new=$(mktemp -d "$kernels/.node-XXXXXX")
trap 'rm -rf "$new"' EXIT
cp -R kernel.mjs shared.mjs front user types package.json package-lock.json "$new"
packages "$new"
cp kernelspecs/javascript/kernel.json "$new"
chmod -R a+rX "$new"
rm -rf "$kernels/javascript" "$kernels/typescript"
mv "$new" "$kernels/javascript"
trap - EXIT
mkdir -p "$kernels/typescript"
cp kernelspecs/typescript/kernel.json "$kernels/typescript" # its program is the other one's
say "installed in $kernels: javascript, typescript"
