#!/usr/bin/env bash
# Builds images that kernels run in, targets of Dockerfile.executor, and prints their sizes. Each is cellblock-TARGET:latest.
#
#   scripts/image.sh [target…]          builds python, or the targets that are named (all: every one), unless an image is there
#                                       that was built from these very files
#   scripts/image.sh --force [target…]  builds them anyway, for newer packages
#   scripts/image.sh --check [target…]  only tells, by its exit status, whether they are there and current
#   scripts/image.sh --targets          lists the targets
#
#   ENGINE             docker or podman; default: docker where it answers, else podman
#   DOCKER_HOST        the engine to use
#   CELLBLOCK_IMAGE    another name for the image, of one target
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# targets are the stages that have languages.
targets() { awk '/^FROM /{name=$4} /^LABEL cellblock.languages=/{print name}' Dockerfile.executor; }

# text_of prints one stage. stages lists those that a target is made of, each behind those that it needs.
text_of() { awk -v name="$1" '/^FROM /{on=($4==name)} on' Dockerfile.executor; }
stages() {
	local other
	for other in $(text_of "$1" | sed -n 's/^FROM \([a-z-]*\) AS .*/\1/p; s/^COPY --from=\([a-z-]*\) .*/\1/p'); do stages "$other"; done
	echo "$1"
}

# recipe is the Dockerfile of a target alone: not every builder leaves out the stages that it does not need.
recipe() {
	local stage
	for stage in $(stages "$1" | awk '!seen[$0]++'); do text_of "$stage"; done
}

# source_of is a hash of all that a target is built from.
source_of() {
	local text path
	text=$(recipe "$1")
	{
		printf '%s\n' "$text"
		for path in $(printf '%s\n' "$text" | grep '^COPY images/' | grep -o 'images/executor/[^ ]*' | grep -v '\[' | sort -u); do
			find "$path" -type f -not -name '*.pyc' -not -name .ca.crt -not -path '*/node_modules/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
		done
	} | sha256sum | cut -c1-16
}

name_of() { echo "${CELLBLOCK_IMAGE:-cellblock-$1:latest}"; }

current() {
	[ "$("${engine[@]}" image inspect --format '{{index .Config.Labels "cellblock.source"}}' "$(name_of "$1")" 2>/dev/null)" = "$(source_of "$1")" ]
}

build() {
	local target=$1 image args
	image=$(name_of "$target")
	args=(build --file - --target "$target" --tag "$image" --label "cellblock.source=$(source_of "$target")")
	if [ "$mode" = --force ]; then args+=(--no-cache); fi
	# An engine without its bridge network (a host without netfilter) builds with the host's.
	if [ "${engine[0]}" = podman ] || ! docker network inspect bridge >/dev/null 2>&1; then
		args+=(--network host)
	fi
	# npm trusts what this host's does, where that is more than Debian's own: behind a proxy that looks into connections.
	if [ -n "${NODE_EXTRA_CA_CERTS:-}" ] && [[ $target =~ ^(node|full)$ ]]; then
		trap 'rm -f images/executor/node/.ca.crt' EXIT
		cp "$NODE_EXTRA_CA_CERTS" images/executor/node/.ca.crt
	fi
	echo "image: building $image" >&2
	recipe "$target" | "${engine[@]}" "${args[@]}" .
}

mode=
case ${1:-} in
--targets) targets; exit ;;
--check | --force) mode=$1; shift ;;
-*) usage ;;
esac
wanted=("${@:-python}")
if [ "${wanted[*]}" = all ]; then mapfile -t wanted < <(targets); fi
if [ -n "${CELLBLOCK_IMAGE:-}" ] && [ ${#wanted[@]} -ne 1 ]; then usage; fi
for target in "${wanted[@]}"; do
	targets | grep -qx -- "$target" || { echo "image: there is no target \"$target\"; use some of: $(targets | xargs)" >&2; exit 2; }
done

. scripts/lib/engine-cli.sh
stale=()
for target in "${wanted[@]}"; do
	if [ "$mode" = --force ] || ! current "$target"; then stale+=("$target"); fi
done
if [ "$mode" = --check ]; then [ ${#stale[@]} -eq 0 ]; exit; fi
if [ ${#stale[@]} -gt 0 ]; then scripts/base-image.sh; fi
for target in ${stale[@]+"${stale[@]}"}; do build "$target"; done
for target in "${wanted[@]}"; do
	size=$("${engine[@]}" image inspect --format '{{.Size}}' "$(name_of "$target")")
	echo "image: $(name_of "$target"): $((size / 1000000)) MB" >&2
done
