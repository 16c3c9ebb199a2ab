#!/usr/bin/env bash
# Static analysis: gofmt, go vet, golangci-lint (staticcheck among others: .golangci.yml), and govulncheck where its database can be had.
set -euo pipefail
cd "$(dirname "$0")/.."
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { printf 'gofmt would change:\n%s\n' "$unformatted"; exit 1; }
go vet ./...
GOOS=darwin go vet ./...
GOOS=windows go vet ./...
go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run --max-issues-per-linter 0 --max-same-issues 0 ./...
said=$(go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./... 2>&1) && code=0 || code=$?
case "$said" in
*"govulncheck: fetching vulnerabilities"*) echo "SKIP govulncheck: its database cannot be had here: $(tail -1 <<<"$said")" ;;
*) printf '%s\n' "$said"; exit "$code" ;;
esac
