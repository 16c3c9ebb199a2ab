#!/usr/bin/env bash
# go test, where a test that failed is run once more when all others have ended, and only its second failure counts: two
# processors carry forty packages, engines and browsers at once, and time alone may fail a test there. It is named either
# way. More than a dozen failures (a test and those around it count each), a data race, a panic, and a package that fails beside its tests (leaked goroutines) are
# final.
#   scripts/test-again.sh 'PACKAGES' FLAGS...
set -euo pipefail
events=$(mktemp)
trap 'rm -f "$events"' EXIT
packages=$1
shift
export GORACE="${GORACE:-} suppressions='$PWD/scripts/races.txt'"
gotestsum=$(go tool -n gotestsum) # by its own name: "go tool" calls it a success when the tool is killed
"$gotestsum" --format standard-quiet --jsonfile "$events" \
	--rerun-fails=1 --rerun-fails-max-failures=12 --rerun-fails-abort-on-data-race --packages="$packages" -- "$@"

# The second run of a package of which no test failed has no test in it, so it always passes.
/usr/bin/python3 - "$events" <<'CHECK'
import json, sys
tests, packages = set(), set()
for line in open(sys.argv[1]):
    event = json.loads(line)
    if event["Action"] == "fail":
        (tests if "Test" in event else packages).add(event["Package"])
beside = sorted(packages - tests)
if beside:
    sys.exit("failed beside their tests, see above: " + ", ".join(beside))
CHECK
