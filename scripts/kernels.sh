#!/usr/bin/env bash
# Installs kernels of ours on this machine, for the sandbox (the local provisioner), where this user's Jupyter has its own:
# bash, csharp, javascript (with typescript) and r, each if what it needs is here. `cellblock doctor` says which languages there are.
#
#   scripts/kernels.sh              installs those that can work here, and says what the others need
#   scripts/kernels.sh bash csharp  installs these, and fails if one cannot work
#   scripts/kernels.sh --remove     removes all of them
#
#   JUPYTER_DATA_DIR   another folder than ~/.local/share/jupyter
set -euo pipefail
cd "$(dirname "$0")/.."

kernels=${JUPYTER_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/jupyter}/kernels
say() { echo "kernels: $*" >&2; }

# python is the first interpreter that has ipykernel, as the server looks for it.
python=
for candidate in "${CELLBLOCK_PYTHON:-}" "$PWD/.cache/venv/bin/python" /usr/bin/python3 "$(command -v python3 || true)"; do
	if [ -n "$candidate" ] && "$candidate" -c 'import ipykernel.kernelapp' 2>/dev/null; then python=$candidate && break; fi
done

# lacks prints what is to be installed for a language before its kernel; nothing if all of it is here.
lacks() {
	case $1 in
	bash) [ -n "$python" ] || echo python3-ipykernel ;;
	csharp)
		[ -n "$python" ] || echo python3-ipykernel
		command -v mono >/dev/null || echo mono-runtime
		command -v mcs >/dev/null || echo mono-mcs
		[ -e /usr/lib/mono/4.5/Mono.CSharp.dll ] || echo libmono-csharp4.0c-cil
		;;
	r) Rscript -e 'stopifnot(requireNamespace("IRkernel"))' >/dev/null 2>&1 || echo r-cran-irkernel ;;
	javascript)
		node -e "require('vm').constants.USE_MAIN_CONTEXT_DEFAULT_LOADER || process.exit(1)" 2>/dev/null || echo "nodejs (20.12 or newer)"
		command -v npm >/dev/null || echo npm
		;;
	*) echo "kernels: there is no kernel of ours for \"$1\"; use some of: bash csharp javascript r" >&2; exit 2 ;;
	esac
}

install_kernel() {
	if [ "$1" = javascript ]; then
		scripts/node.sh "$kernels"
		return
	fi
	local folder=$kernels/cellblock-$1
	rm -rf "$folder"
	mkdir -p "$folder"
	cp -R images/executor/"$1"/* "$folder"
	if [ "$1" != r ]; then
		cp images/executor/terminal/*.py "$folder"
		sed -i "s|\"python3\"|\"$python\"|" "$folder/kernel.json"
	fi
	if [ "$1" = csharp ]; then mcs -optimize+ -r:Mono.CSharp -out:"$folder/driver.exe" "$folder/driver.cs"; fi
	say "$1 is in $folder"
}

if [ "${1:-}" = --remove ]; then
	rm -rf "$kernels"/cellblock-{bash,csharp,javascript,r,typescript}
	exit
fi
status=0
for language in "${@:-bash csharp javascript r}"; do
	for one in $language; do
		missing=$(lacks "$one" | xargs)
		if [ -z "$missing" ]; then
			install_kernel "$one"
		else
			say "$one needs: apt-get install $missing"
			if [ $# -gt 0 ]; then status=1; fi
		fi
	done
done
exit $status
