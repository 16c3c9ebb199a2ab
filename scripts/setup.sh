#!/usr/bin/env bash
# Sets up what cellblock needs on this machine, and says what it will do before it does it. Safe to run again: when
# nothing is missing it changes nothing. Needs Go, Python 3 and make; brings bubblewrap and the Python kernel.
#
#   scripts/setup.sh            install what is missing
#   scripts/setup.sh --tests    also what only tests need
#   scripts/setup.sh --bench    also what others are measured with beside it
#   scripts/setup.sh --check    only say what is missing; exit status 1 if something is
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$1"; shift; for line in "$@"; do say "  $line"; done; exit 1; }

MODULES="ipykernel numpy pandas matplotlib sklearn seaborn"
PIP_PACKAGES="ipykernel numpy pandas matplotlib scikit-learn seaborn"
APT_PACKAGES="python3-ipykernel python3-numpy python3-pandas python3-matplotlib python3-sklearn python3-seaborn fonts-dejavu-core"
DNF_PACKAGES="python3-ipykernel python3-numpy python3-pandas python3-matplotlib python3-scikit-learn python3-seaborn dejavu-sans-fonts"
VENV=.cache/venv

check_go() {
	local need have
	need=$(sed -n 's/^go \([0-9.]*\)$/\1/p' go.mod)
	command -v go >/dev/null || die "Go is missing; cellblock needs Go $need or newer." \
		"Get it from your distribution's backports or from Go's download page, then run this again."
	have=$(go env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
	if [ "$(printf '%s\n%s\n' "$need" "$have" | sort -V | head -n1)" != "$need" ] && [ "$(go env GOTOOLCHAIN)" = local ]; then
		die "Go $have is too old; cellblock needs Go $need or newer." \
			"Install a newer Go, or let Go fetch one: go env -w GOTOOLCHAIN=auto"
	fi
}

# python_ok PYTHON: does this interpreter have everything that a Python kernel and the demo need?
python_ok() {
	[ -x "$1" ] && "$1" - $MODULES >/dev/null 2>&1 <<-'PY'
		import importlib.util, sys
		sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))
	PY
}

kernel_python() {
	local candidate
	for candidate in "${CELLBLOCK_PYTHON:-}" "$PWD/$VENV/bin/python" /usr/bin/python3 "$(command -v python3 || true)"; do
		if [ -n "$candidate" ] && python_ok "$candidate"; then echo "$candidate"; return 0; fi
	done
	return 1
}

# as_root CMD…: runs a command as root if this user may without being asked for a password here; fails otherwise.
may_be_root() { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

system_install() { # system_install "apt packages" "dnf packages"
	may_be_root || return 1
	if command -v apt-get >/dev/null; then
		say "installing with apt-get: $1"
		as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
			as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $1 >/dev/null
	elif command -v dnf >/dev/null; then
		say "installing with dnf: $2"
		as_root dnf install -y -q $2
	else
		return 1
	fi
}

venv_install() {
	say "making a virtual environment in $VENV and installing with pip: $PIP_PACKAGES"
	python3 -m venv "$VENV" && "$VENV/bin/pip" install --quiet --disable-pip-version-check $PIP_PACKAGES
}

# Who has no Node misses these tests alone.
if [ "${1:-}" = --tests ] && command -v npm >/dev/null && [ ! -d images/executor/node/node_modules/zeromq ]; then
	say "fetching the Node kernel's packages from npm, for its tests"
	scripts/node.sh --packages || say "the Node kernel's packages are missing: its tests are left out"
fi

# Who has no jupyter-server misses its rows alone.
if [ "${1:-}" = --bench ] && ! /usr/bin/python3 -c 'import jupyter_client, jupyter_server' 2>/dev/null; then
	system_install "python3-jupyter-client python3-jupyter-server" "python3-jupyter-client python3-jupyter-server" ||
		say "jupyter-server is missing: its rows are left out"
fi

check_go
missing=()
[ "$(uname -s)" != Linux ] || command -v bwrap >/dev/null || missing+=(bubblewrap)
kernel_python >/dev/null || missing+=(python-kernel)

if [ ${#missing[@]} -eq 0 ]; then
	say "nothing to do: Go $(go env GOVERSION | sed 's/^go//'), kernels run $(kernel_python)"
	exit 0
fi
say "missing: ${missing[*]}"
[ "${1:-}" != --check ] || exit 1

for what in "${missing[@]}"; do
	case $what in
	bubblewrap)
		system_install bubblewrap bubblewrap ||
			if [ -S "${DOCKER_HOST#unix://}" ] || [ -S /var/run/docker.sock ]; then
				say "bubblewrap cannot be installed without root; a container engine is here, so it is not needed"
			else
				die "bubblewrap is missing and this user may not install it." \
					"Debian, Ubuntu: sudo apt-get install bubblewrap     Fedora: sudo dnf install bubblewrap"
			fi
		;;
	python-kernel)
		system_install "$APT_PACKAGES" "$DNF_PACKAGES" || venv_install ||
			die "The Python kernel could not be installed." \
				"Debian, Ubuntu: sudo apt-get install $APT_PACKAGES" \
				"anywhere: python3 -m venv $VENV && $VENV/bin/pip install $PIP_PACKAGES"
		kernel_python >/dev/null || venv_install ||
			die "The packages were installed, but no interpreter has all of: $MODULES" \
				"Set CELLBLOCK_PYTHON to one that has."
		;;
	esac
done
say "done: kernels run $(kernel_python)"
