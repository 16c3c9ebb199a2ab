#!/usr/bin/env bash
# Makes sure that the engine has debian:trixie-slim, the base of our images.
#
#   scripts/base-image.sh            with docker, or podman where there is no docker
#   ENGINE=podman scripts/base-image.sh
#
# It is pulled where a registry answers, else made with debootstrap, slimmed as Debian's own slim images are, and
# imported. Debootstrapping needs root. Nothing is done when the image is there already.
#
#   DOCKER_HOST        the engine to use (docker's own meaning; for podman, a unix socket)
#   CELLBLOCK_MIRROR   the Debian mirror for debootstrap, and for apt in the image (default: debootstrap's own)
#   CELLBLOCK_PULL     seconds to wait for a pull (default 60; 0: do not try)
set -euo pipefail
. "$(dirname "$0")/lib/engine-cli.sh"

image=debian:trixie-slim
suite=trixie
mirror=${CELLBLOCK_MIRROR:-}
pull_seconds=${CELLBLOCK_PULL:-60}

say() { echo "base-image: $*" >&2; }

pull() {
	[ "$pull_seconds" -gt 0 ] || return 1
	say "pulling $image (at most ${pull_seconds}s)"
	timeout "$pull_seconds" "${engine[@]}" pull --quiet "$image" >/dev/null 2>&1
}

# slim removes what Debian's slim images leave out, and tells dpkg to go on leaving it out.
slim() {
	local root=$1 dir
	cat >"$root/etc/dpkg/dpkg.cfg.d/slim" <<-'CFG'
		path-exclude /usr/share/doc/*
		path-include /usr/share/doc/*/copyright
		path-exclude /usr/share/info/*
		path-exclude /usr/share/linda/*
		path-exclude /usr/share/lintian/overrides/*
		path-exclude /usr/share/locale/*
		path-exclude /usr/share/man/*
	CFG
	find "$root/usr/share/doc" ! -type d ! -name copyright -delete
	find "$root/usr/share/doc" -type d -empty -delete
	for dir in info linda lintian/overrides locale man; do
		rm -rf "${root:?}/usr/share/$dir"
		mkdir -p "$root/usr/share/$dir"
	done
	find "$root/var/cache" "$root/var/log" -type f -delete
	rm -rf "$root"/var/lib/apt/lists/* "$root"/tmp/*
}

# configure sets apt up for images: no services started, no caches kept. Its sources are those of debootstrap.
configure() {
	local root=$1
	cat >"$root/etc/apt/apt.conf.d/image" <<-'CFG'
		Acquire::Languages "none";
		APT::AutoRemove::SuggestsImportant "false";
		DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
	CFG
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	: >"$root/etc/machine-id"
	echo 'LANG=C.UTF-8' >"$root/etc/default/locale"
	rm -f "$root/etc/hostname" "$root/etc/resolv.conf"
}

bootstrap() {
	command -v debootstrap >/dev/null || {
		say "$image cannot be pulled and debootstrap is missing; type: apt-get install debootstrap"
		exit 1
	}
	[ "$(id -u)" = 0 ] || {
		say "$image cannot be pulled, and making it with debootstrap needs root; type: sudo $0"
		exit 1
	}
	local work
	work=$(mktemp -d "${TMPDIR:-/tmp}/cellblock-base.XXXXXX")
	# shellcheck disable=SC2064 # the folder's name is meant as it is now
	trap "rm -rf --one-file-system '$work'" EXIT
	say "making $image with debootstrap (about two minutes)"
	debootstrap --variant=minbase --include=ca-certificates "$suite" "$work/root" ${mirror:+"$mirror"} >"$work/log" 2>&1 || {
		tail -20 "$work/log" "$work/root/debootstrap/debootstrap.log" >&2 2>/dev/null
		say "debootstrap failed"
		exit 1
	}
	configure "$work/root"
	slim "$work/root"
	tar -C "$work/root" --numeric-owner --one-file-system --xattrs --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -c . |
		"${engine[@]}" import --change 'CMD ["bash"]' --change 'ENV LANG=C.UTF-8' - "$image" >/dev/null
}

if "${engine[@]}" image inspect "$image" >/dev/null 2>&1; then
	say "$image is there"
	exit 0
fi
pull || bootstrap
say "$image: $("${engine[@]}" image inspect --format '{{.Size}}' "$image") bytes"
