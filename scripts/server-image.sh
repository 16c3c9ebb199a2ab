#!/usr/bin/env bash
# Builds the image of the server from the programs of this tree. No base image is needed, so no registry is.
#
#   ENGINE       docker or podman; default: docker where it answers, else podman
#   DOCKER_HOST  the engine to use
#   ARCH         the engine's processor in Go's words (default: this machine's)
#   TAG          what it is called (default: cellblock:latest)
#   CA_FILE      certificates that the server trusts (default: this machine's)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/engine-cli.sh
TAG=${TAG:-cellblock:latest}
ARCH=${ARCH:-$(go env GOARCH)}
CA_FILE=${CA_FILE:-/etc/ssl/certs/ca-certificates.crt}
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

mkdir -p "$context/programs/tmp" "$context/folders/data" "$context/folders/run/cellblock"
chmod 1777 "$context/programs/tmp"
chmod 700 "$context/folders/data" "$context/folders/run/cellblock"
for program in cellblock cellblock-shim; do
	CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$context/programs/$program" "./cmd/$program"
done
if [ -r "$CA_FILE" ]; then
	install -D -m 644 "$CA_FILE" "$context/programs/etc/ssl/certs/ca-certificates.crt"
else
	echo "server-image: $CA_FILE is missing: the server will trust no identity provider over https" >&2
fi
"${engine[@]}" build --build-arg "VERSION=$version" --tag "$TAG" --file Dockerfile "$context" >&2
echo "$TAG is cellblock $version"
