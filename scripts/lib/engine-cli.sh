# Sourced: sets the array "engine" to the command line of the container engine that scripts shall use.
#
#   ENGINE        "docker" or "podman"; default: docker where its command and its daemon answer, else podman
#   DOCKER_HOST   names the engine's socket, for both

case ${ENGINE:-} in
docker) engine=(docker) ;;
podman) engine=(podman) ;;
"")
	if command -v docker >/dev/null && docker version >/dev/null 2>&1; then
		engine=(docker)
	elif command -v podman >/dev/null; then
		engine=(podman)
	else
		echo "no container engine answers; type: scripts/engine.sh docker DIR, or install Docker or Podman" >&2
		exit 1
	fi
	;;
*)
	echo "ENGINE must be docker or podman, not \"$ENGINE\"" >&2
	exit 2
	;;
esac
if [ "${engine[0]}" = podman ] && [ -n "${DOCKER_HOST:-}" ]; then
	engine=(podman --remote --url "$DOCKER_HOST")
fi
