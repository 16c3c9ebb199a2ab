#!/usr/bin/env bash
# Installs the kernel for JavaScript and TypeScript, as two kernelspecs; scripts/kernels.sh calls it. Needs Node.js and npm, which
# fetches the packages that package-lock.json pins.
#
#   scripts/node.sh FOLDER      FOLDER is where kernelspecs are, …/jupyter/kernels
#   scripts/node.sh --packages  only fetches the packages into the sources, for the tests
set -euo pipefail
cd "$(dirname "$0")/../images/executor/node"

# Nothing of what is fetched is run: the packages bring what they need built, zeromq for every system there is.
packages() {
	npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error --prefix "$1" >&2
	find "$1/node_modules/zeromq/build" -mindepth 1 -maxdepth 1 -type d ! -name linux ! -name darwin -exec rm -rf {} +
}

case ${1:-} in
--packages) packages "$PWD"; exit ;;
-* | "") sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
mkdir -p "$1"
new=$(mktemp -d "$1/.cellblock-XXXXXX")
trap 'rm -rf "$new"' EXIT
cp -R kernel.mjs shared.mjs front user types package.json package-lock.json kernelspecs/javascript/kernel.json "$new"
packages "$new"
chmod -R a+rX "$new"
rm -rf "$1"/cellblock-{javascript,typescript}
mv "$new" "$1/cellblock-javascript"
trap - EXIT
# Its program is the other one's.
mkdir "$1/cellblock-typescript"
sed 's|/../javascript/|/../cellblock-javascript/|' kernelspecs/typescript/kernel.json >"$1/cellblock-typescript/kernel.json"
echo "kernels: javascript and typescript are in $1" >&2
