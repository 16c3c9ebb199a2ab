#!/usr/bin/env bash
# Starts a private container engine for tests and for development, apart from any engine that the machine already runs,
# and prints how to reach it. Needs root; needs no systemd.
#
#   scripts/engine.sh docker DIR    a dockerd whose data, state and socket lie in DIR, and its daemon.json if there is one
#   scripts/engine.sh podman DIR    a podman service, likewise
#   scripts/engine.sh stop DIR      stops exactly what was started in DIR (what it stored stays)
#
# The last line on stdout is DOCKER_HOST=unix://…, so that `export "$(scripts/engine.sh docker DIR)"` works. Asked again
# for an engine that runs, it only prints that line. Logs: DIR/dockerd.log, DIR/podman.log.
set -euo pipefail

say() { echo "engine: $*" >&2; }
usage() {
	sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

# alive PIDFILE NAME: the process in PIDFILE runs and is a NAME.
alive() {
	local pid
	pid=$(cat "$1" 2>/dev/null) && [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ]
}

# ping SOCKET: the engine behind SOCKET answers.
ping() { [ -S "$1" ] && curl --silent --fail --max-time 5 --unix-socket "$1" http://engine/_ping >/dev/null; }

# await SOCKET PIDFILE NAME LOG: returns when the engine answers, fails when it ended or after 60 s.
await() {
	local deadline=$((SECONDS + 60))
	until ping "$1"; do
		# It is not called by its name yet at once, so only that it is gone counts.
		if ! kill -0 "$(cat "$2")" 2>/dev/null && ! ping "$1"; then
			return 1
		fi
		if [ "$SECONDS" -ge "$deadline" ]; then
			say "$3 does not answer after 60 s"
			return 1
		fi
		sleep 0.1
	done
}

need() {
	command -v "$1" >/dev/null || {
		say "$1 is missing; type: apt-get install $2"
		exit 1
	}
}

launch_dockerd() {
	local dir=$1
	shift
	rm -f "$dir/docker.sock"
	if [ -e "$dir/daemon.json" ]; then set -- --config-file "$dir/daemon.json" "$@"; fi
	setsid dockerd --data-root "$dir/docker" --exec-root "$dir/docker-exec" --pidfile "$dir/dockerd.engine.pid" \
		--host "unix://$dir/docker.sock" --group "$(id -g)" "$@" >"$dir/dockerd.log" 2>&1 </dev/null &
	echo $! >"$dir/dockerd.pid"
	await "$dir/docker.sock" "$dir/dockerd.pid" dockerd
}

start_docker() {
	local dir=$1
	need dockerd docker.io
	if alive "$dir/dockerd.pid" dockerd && ping "$dir/docker.sock"; then
		say "dockerd runs already"
	else
		say "starting dockerd in $dir"
		rm -f "$dir/dockerd.engine.pid"
		# A host whose kernel has no netfilter cannot give containers a bridge. Kernels have no network anyway, and
		# images are then built with the host's (see scripts/image.sh).
		launch_dockerd "$dir" || {
			stop_one "$dir/dockerd.pid" dockerd
			say "dockerd did not start; again without bridge and iptables"
			launch_dockerd "$dir" --iptables=false --ip6tables=false --bridge=none
		} || {
			tail -20 "$dir/dockerd.log" >&2
			exit 1
		}
	fi
	echo "DOCKER_HOST=unix://$dir/docker.sock"
}

# hard LETTER: the hard limit of ulimit, as a number that podman understands (-1: none).
hard() {
	local limit
	limit=$(ulimit -H "-$1")
	if [ "$limit" = unlimited ]; then limit=-1; fi
	echo "$limit"
}

# podman_config writes the service's own configuration: a runtime that runs on this host's cgroups, and the limits that
# the host sets, because podman's own are higher and a host may not let it raise them.
podman_config() {
	local dir=$1 runtime=crun nofile nproc
	nofile=$(hard n) nproc=$(hard u)
	# Podman lowers its own to the number of pids, and could not raise a container's above that again.
	if [ "$nproc" = -1 ] || [ "$nproc" -gt "$(cat /proc/sys/kernel/pid_max)" ]; then
		nproc=$(cat /proc/sys/kernel/pid_max)
	fi
	# crun of Debian 12 fails on cgroup v1.
	if command -v runc >/dev/null && [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
		runtime=runc
	fi
	cat >"$dir/containers.conf" <<-CFG
		[containers]
		default_ulimits = ["nofile=$nofile:$nofile", "nproc=$nproc:$nproc"]
		[engine]
		runtime = "$runtime"
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		tmp_dir = "$dir/podman-tmp"
	CFG
	cat >"$dir/storage.conf" <<-CFG
		[storage]
		driver = "overlay"
		graphroot = "$dir/podman"
		runroot = "$dir/podman-run"
	CFG
}

start_podman() {
	local dir=$1
	need podman podman
	if alive "$dir/podman.pid" podman && ping "$dir/podman.sock"; then
		say "podman runs already"
	else
		say "starting the podman service in $dir"
		podman_config "$dir"
		rm -f "$dir/podman.sock"
		# In its own folder: conmon leaves a file there, "oom", for each container that ran out of memory. And without dpkg's
		# data: whoever asks Podman what it is has it look up the packages of its parts there, 0.4 s of processor time.
		cd "$dir"
		DPKG_ADMINDIR=/nonexistent CONTAINERS_CONF="$dir/containers.conf" CONTAINERS_STORAGE_CONF="$dir/storage.conf" \
			setsid podman system service --time=0 "unix://$dir/podman.sock" >"$dir/podman.log" 2>&1 </dev/null &
		echo $! >"$dir/podman.pid"
		await "$dir/podman.sock" "$dir/podman.pid" podman || {
			tail -20 "$dir/podman.log" >&2
			exit 1
		}
	fi
	echo "DOCKER_HOST=unix://$dir/podman.sock"
}

# stop_one PIDFILE NAME: TERM, and KILL after 15 s.
stop_one() {
	local pid deadline=$((SECONDS + 15))
	if alive "$1" "$2"; then
		pid=$(cat "$1")
		say "stopping $2 ($pid)"
		kill "$pid" 2>/dev/null || true
		while alive "$1" "$2"; do
			if [ "$SECONDS" -ge "$deadline" ]; then
				kill -9 "$pid" 2>/dev/null || true
				break
			fi
			sleep 0.1
		done
	fi
	rm -f "$1"
}

[ $# = 2 ] || usage
mkdir -p "$2"
dir=$(cd "$2" && pwd -P)
if [ ${#dir} -gt 90 ]; then
	say "$dir is too long: a socket's path has at most 107 bytes"
	exit 2
fi
case $1 in
docker) start_docker "$dir" ;;
podman) start_podman "$dir" ;;
stop)
	stop_one "$dir/podman.pid" podman
	stop_one "$dir/dockerd.pid" dockerd
	;;
*) usage ;;
esac
