#!/usr/bin/env bash
# Runs the tests of workspaces' quotas in a Linux that has them, user-mode Linux: a process like others, with this machine's
# files as its root. Most machines' own Linux can do it too, and then `go test` is enough.
#
# Needs root and Debian's packages user-mode-linux, xfsprogs, e2fsprogs and kmod; --install installs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

packages="user-mode-linux xfsprogs e2fsprogs kmod"
if [ "${1:-}" = --install ]; then
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi
for program in linux.uml mkfs.xfs mkfs.ext4 insmod; do
	command -v "$program" >/dev/null || { echo "quota.sh: no $program; install: $packages" >&2; exit 69; }
done

work=$(mktemp -d /var/tmp/cellblock-quota.XXXXXX)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/quota.test" ./sessions/quota
go test -c -o "$work/sessions.test" ./sessions

cat >"$work/init" <<END
#!/bin/bash
export PATH=$PATH HOME=$HOME GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE) TMPDIR=/mnt CELLBLOCK_TEST_QUOTA=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/shm
for at in /dev/shm /run /mnt; do mount -t tmpfs -o mode=1777 none \$at; done
for module in fs/quota/quota_tree fs/quota/quota_v2 drivers/block/loop; do
	insmod /usr/lib/uml/modules/*/kernel/\$module.ko
done
(cd $PWD/sessions/quota && $work/quota.test) && (cd $PWD/sessions && $work/sessions.test -test.run Quota) && echo quota.sh: passed
halt -f
END
chmod +x "$work/init"
timeout "${QUOTA_TIMEOUT:-300}" linux.uml mem=1G rootfstype=hostfs rootflags=/ rw init="$work/init" con=null con0=fd:0,fd:1 quiet </dev/null 2>&1 |
	tee "$work/log"
grep -q '^quota.sh: passed' "$work/log"
