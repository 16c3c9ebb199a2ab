package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"cellblock/internal/fault"
)

// Kinds of engine, as Find reports them.
const (
	KindDocker = "docker"
	KindPodman = "podman"
)

// minAPI is the oldest version of the engine's API that we use: that of Docker 19.03.
const minAPI = "1.40"

// probeTime bounds how long one engine may take to answer, so that a dead one does not hold up the next.
const probeTime = 10 * time.Second

// Find returns the address and the kind of the engine to use: what DOCKER_HOST names if it is set, else the first of the
// well-known sockets of Docker, rootless Docker, Podman, Docker Desktop, Colima and their like (Sockets) behind which an
// engine answers. The error is about the most promising of them, and its hint says what to do.
func Find(ctx context.Context) (host, kind string, err error) {
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		kind, err := probe(ctx, host)
		if err != nil {
			return "", "", fmt.Errorf("DOCKER_HOST: %w", err)
		}
		return host, kind, nil
	}
	return findAmong(ctx, Sockets())
}

// Sockets are the addresses that Find tries where DOCKER_HOST is not set, the likeliest first.
func Sockets() []string { return candidates(os.Getenv, runtime.GOOS) }

// findAmong returns the first host that answers.
func findAmong(ctx context.Context, hosts []string) (string, string, error) {
	var denied, other error
	for _, host := range hosts {
		kind, err := probe(ctx, host)
		switch {
		case err == nil:
			return host, kind, nil
		case errors.Is(err, errNoSocket):
		case errors.Is(err, fs.ErrPermission) && denied == nil:
			denied = err
		case other == nil:
			other = err
		}
	}
	for _, err := range []error{ctx.Err(), denied, other} {
		if err != nil {
			return "", "", engineError("", err)
		}
	}
	return "", "", fault.New(fault.Unavailable, "no container engine answers at the usual sockets, and DOCKER_HOST is not set").
		WithHint("Start Docker or Podman, or set DOCKER_HOST to the engine's socket.")
}

// candidates lists the sockets to try, the likeliest first.
func candidates(getenv func(string) string, goos string) []string {
	if goos == "windows" {
		return []string{"npipe:////./pipe/docker_engine", "npipe:////./pipe/podman-machine-default"}
	}
	hosts := []string{"unix:///var/run/docker.sock"}
	add := func(dir string, names ...string) {
		for _, name := range names {
			if dir != "" {
				hosts = append(hosts, "unix://"+filepath.Join(dir, name))
			}
		}
	}
	run, home := getenv("XDG_RUNTIME_DIR"), getenv("HOME")
	add(run, "docker.sock")
	add(home, ".docker/run/docker.sock", ".docker/desktop/docker.sock")
	add(run, "podman/podman.sock")
	add("/run", "podman/podman.sock")
	add(home, ".colima/default/docker.sock", ".colima/docker.sock", ".config/colima/default/docker.sock",
		".orbstack/run/docker.sock", ".rd/docker.sock", ".local/share/containers/podman/machine/podman.sock")
	return hosts
}

var errNoSocket = errors.New("there is no such socket")

// probe asks the engine at host what it is.
func probe(ctx context.Context, host string) (kind string, err error) {
	api, err := connect(host)
	if err != nil {
		return "", err
	}
	defer api.Close()
	return identify(ctx, api)
}

// connect makes a client for host without talking to it, except that a socket which does not exist is noticed.
func connect(host string) (*client.Client, error) {
	if path, ok := strings.CutPrefix(host, "unix://"); ok {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.Unavailable, "no container engine at %s: %w", host, errNoSocket).
				WithHint("Start Docker or Podman there, or correct the address (docker.host, else DOCKER_HOST).")
		}
	}
	if strings.HasPrefix(host, "ssh://") {
		return nil, fault.New(fault.Unavailable, "engines behind ssh are not supported: %s", host).
			WithHint("Forward the engine's socket: ssh -nNT -L /tmp/engine.sock:/run/docker.sock HOST, then DOCKER_HOST=unix:///tmp/engine.sock.")
	}
	api, err := client.NewClientWithOpts(client.WithTLSClientConfigFromEnv(), client.WithHost(host), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fault.New(fault.Invalid, "engine address %q: %w", host, err).WithHint("Write it as unix:///path/to/docker.sock or tcp://host:port.")
	}
	return api, nil
}

// identify returns the kind of engine behind api, or why it cannot be used. A ping says enough, and Podman takes a second of
// processor time to say its version: it looks up the packages of all its parts.
func identify(ctx context.Context, api *client.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	ping, err := api.Ping(ctx)
	if err != nil {
		return "", engineError(api.DaemonHost(), err)
	}
	if versions.LessThan(ping.APIVersion, minAPI) {
		return "", fault.New(fault.Unavailable, "the engine at %s is too old: API %s, at least %s is needed", api.DaemonHost(), ping.APIVersion, minAPI).
			WithHint("Upgrade the engine: Docker 19.03 or later, Podman 4 or later.")
	}
	response, err := get(ctx, api, "/_ping")
	if err != nil {
		return "", engineError(api.DaemonHost(), err)
	}
	defer response.Body.Close()
	if response.Header.Get("Libpod-Api-Version") != "" {
		return KindPodman, nil
	}
	return KindDocker, nil
}

// get asks the engine behind api for what its client has no method for, or tells too little of.
func get(ctx context.Context, api *client.Client, path string) (*http.Response, error) {
	address, err := client.ParseHostURL(api.DaemonHost())
	if err != nil {
		return nil, err
	}
	switch address.Scheme {
	case "unix", "npipe":
		address = &url.URL{Scheme: "http", Host: "engine"} // the transport knows the way
	case "tcp":
		address.Scheme = "http"
		if os.Getenv(client.EnvOverrideCertPath) != "" {
			address.Scheme = "https"
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	return api.HTTPClient().Do(request)
}
