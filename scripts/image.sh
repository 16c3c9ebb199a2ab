#!/usr/bin/env bash
# Builds the image that Python kernels run in, cellblock-python:latest, and prints its size.
#
#   scripts/image.sh            does nothing when the image is there and was built from these very files
#   scripts/image.sh --force    builds it anyway, for newer packages
#   scripts/image.sh --check    only tells, by its exit status, whether it is there and current
#
#   ENGINE             docker or podman; default: docker where it answers, else podman
#   DOCKER_HOST        the engine to use
#   CELLBLOCK_IMAGE    another name for the image
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/engine-cli.sh

image=${CELLBLOCK_IMAGE:-cellblock-python:latest}
source=$(cat Dockerfile.executor images/executor/* | sha256sum | cut -c1-16)

current() {
	[ "$("${engine[@]}" image inspect --format '{{index .Config.Labels "cellblock.source"}}' "$image" 2>/dev/null)" = "$source" ]
}

case ${1:-} in
--check)
	current
	exit
	;;
--force) ;;
"")
	if current; then
		echo "image: $image is there and current" >&2
		exit 0
	fi
	;;
*)
	sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
scripts/base-image.sh

args=(build --file Dockerfile.executor --target python --tag "$image" --label "cellblock.source=$source")
if [ "${1:-}" = --force ]; then args+=(--no-cache); fi
# An engine without its bridge network (a host without netfilter) builds with the host's.
if [ "${engine[0]}" = podman ] || ! docker network inspect bridge >/dev/null 2>&1; then
	args+=(--network host)
fi
echo "image: building $image" >&2
"${engine[@]}" "${args[@]}" .
size=$("${engine[@]}" image inspect --format '{{.Size}}' "$image")
echo "image: $image: $((size / 1000000)) MB" >&2
