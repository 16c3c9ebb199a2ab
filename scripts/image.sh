#!/usr/bin/env bash
# Builds the image that Python kernels run in, cellblock-python:latest, and prints its size.
#
#   scripts/image.sh                 with docker, or podman where there is no docker
#   ENGINE=podman scripts/image.sh
#
#   DOCKER_HOST        the engine to use
#   CELLBLOCK_IMAGE    another name for the image
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/engine-cli.sh

image=${CELLBLOCK_IMAGE:-cellblock-python:latest}
scripts/base-image.sh

args=(build --file Dockerfile.executor --target python --tag "$image")
# An engine without its bridge network (a kernel without netfilter) builds with the host's.
if [ "${engine[0]}" = docker ]; then
	docker network inspect bridge >/dev/null 2>&1 || args+=(--network host)
else
	args+=(--network host)
fi
echo "image: building $image" >&2
"${engine[@]}" "${args[@]}" .
size=$("${engine[@]}" image inspect --format '{{.Size}}' "$image")
echo "image: $image: $((size / 1000000)) MB" >&2
