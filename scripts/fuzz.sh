#!/usr/bin/env bash
# Runs every fuzzer of the repository, one after the other. FUZZTIME is how long each (1m), FUZZ a part of the names of those
# that are wanted. What breaks one is left in its package's testdata/fuzz, where go test runs it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=()
found=0
while IFS=: read -r file name; do
	[[ $name == *"${FUZZ:-}"* ]] || continue
	found=$((found + 1))
	package=./$(dirname "$file")
	printf '=== %s %s\n' "$package" "$name"
	said=$(mktemp)
	# Go would spend most of the time on making inputs smaller that do nothing wrong: a second each, for all that are new.
	if ! go test -run '^$' -fuzz "^$name\$" -fuzzminimizetime 20x -fuzztime "${FUZZTIME:-1m}" "$package" 2>&1 | tee "$said"; then
		# Go's fuzzing ends now and then with the error that its time is over, and has found nothing.
		grep -q 'context deadline exceeded' "$said" && ! grep -qE 'Failing input|panic' "$said" || failed+=("$package $name")
	fi
	rm -f "$said"
done < <(git ls-files '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed 's/func //' | sort)
[ "$found" -gt 0 ] || { echo "fuzz: no fuzzer has '${FUZZ:-}' in its name" >&2; exit 1; }
[ ${#failed[@]} -eq 0 ] || { printf 'fuzz: failed: %s\n' "${failed[@]}" >&2; exit 1; }
printf 'fuzz: %d fuzzers found nothing\n' "$found"
