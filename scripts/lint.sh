#!/usr/bin/env bash
# Static analysis: gofmt, go vet, staticcheck.
set -euo pipefail
cd "$(dirname "$0")/.."
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { printf 'gofmt would change:\n%s\n' "$unformatted"; exit 1; }
go vet ./...
GOOS=darwin go vet ./cmd/cellblock
GOOS=windows go vet ./cmd/cellblock
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
