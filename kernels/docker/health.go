package docker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	cerrdefs "github.com/containerd/errdefs"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
)

// Health returns nil when the engine answers, enforces what it must, and has the images of Config.Images or
// Require.
func (p *Provisioner) Health(ctx context.Context) error {
	e, err := p.engine(ctx)
	if err != nil {
		return err
	}
	// The engine was there once; is it now?
	if _, err := identify(ctx, e.api); err != nil {
		return err
	}
	if err := p.usable(e); err != nil {
		return err
	}
	p.mu.Lock()
	wanted := p.images
	p.mu.Unlock()
	for _, image := range wanted {
		if _, err := e.image(ctx, image); err != nil {
			return p.withNearest(ctx, image, err)
		}
	}
	return nil
}

// withNearest has the error of an image that is not there name the one that was probably meant.
func (p *Provisioner) withNearest(ctx context.Context, image string, err error) error {
	missing, ok := errors.AsType[*fault.Error](err)
	if !ok || !cerrdefs.IsNotFound(err) {
		return err
	}
	var there []string
	list, _ := p.Images(ctx, "") // without it the error is what it was
	for _, i := range list {
		there = append(there, strings.TrimSuffix(i.Name, ":latest"))
	}
	if near := nearest.Of(strings.TrimSuffix(image, ":latest"), there); near != "" {
		missing.Hint = "Did you mean " + near + "? " + missing.Hint
	}
	return missing
}

// Require names the images that Health asks for from now on, instead of those of Config.Images.
func (p *Provisioner) Require(images []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.images = images
}

// usable returns why kernels cannot be launched on an engine that answers.
func (p *Provisioner) usable(e *engine) error {
	if e.kind == KindPodman && e.carrier == CarrierStdio {
		return fault.New(fault.Unavailable, "Podman at %s ends a container's stdin when the server detaches: its kernels would not outlive a connection", e.host).
			WithHint("Run the server on the system where Podman runs, or use Docker.")
	}
	if err := p.refuse(e.weaknesses); err != nil {
		return err
	}
	_, _, err := p.shimFor(e)
	return err
}

// engineError turns an error of the engine's client into one that says what to do. Host may be empty.
func engineError(host string, err error) error {
	var f *fault.Error
	if err == nil || errors.As(err, &f) {
		return err
	}
	at := ""
	if host != "" {
		at = " at " + host
	}
	switch {
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Cancelled, "given up while waiting for the container engine%s: %w", at, err)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Unavailable, "no permission to use the container engine%s: %w", at, err).
			WithHint("%s", permissionHint(host))
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Unavailable, "the container engine%s does not answer in time: %w", at, err).
			WithHint("Look at the engine's own log; restart it if it hangs.")
	case connectionLost(err):
		return unreachable(at, err)
	case noSpace(err):
		full := diskFull("%s", err)
		full.Err = err
		return full
	}
	return fault.New(fault.Unavailable, "the container engine%s failed: %w", at, err).
		WithHint("Look at the engine's own log; cellblock doctor checks the rest.")
}

// permissionHint says how the socket of an engine may be used. Someone who mounts a socket that is not there gets a folder.
func permissionHint(host string) string {
	socket := strings.TrimPrefix(host, "unix://")
	if info, err := os.Stat(socket); err == nil && info.IsDir() {
		return "It is a folder: the socket that was to be mounted there is not on the engine's host. Remove the folder there, and name the socket (DOCKER_SOCKET for compose.yaml)."
	}
	return "Add yourself to its group and log in again: sudo usermod -aG docker $USER; a server in a container is given the group: " +
		"DOCKER_GID=$(stat -c %g SOCKET) docker compose up -d. Or use rootless Docker or Podman."
}

// unreachable is the error of an engine to which there is no connection. Where nobody listens, the words of the client and of the
// system for that say no more.
func unreachable(at string, err error) error {
	f := fault.New(fault.Unavailable, "the container engine%s does not answer", at)
	if !nobodyListens(err) {
		f.Message += ": " + err.Error()
	}
	f.Err = err
	return f.WithHint("Start Docker or Podman there, or name the engine to use (docker.host, else DOCKER_HOST); cellblock doctor tells whether it answers.")
}

// nobodyListens reports whether err is that of an engine's address behind which there is no process. Its client forgets the cause.
func nobodyListens(err error) bool {
	return strings.Contains(err.Error(), "Cannot connect to the Docker daemon") || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// imageError says what to do about an image that the engine does not have.
func imageError(host, image string, err error) error {
	if !cerrdefs.IsNotFound(err) {
		return engineError(host, err)
	}
	f := fault.New(fault.Unavailable, "the engine at %s has no image %s", host, image)
	f.Err = err // its own words say the same
	if strings.HasPrefix(image, derivedPrefix) {
		return f.WithHint("It has been removed, most likely because nobody had used it for long: make it again from the same packages (create_image). Or close the session (close_session keeps its files), and name another image in its next call.")
	}
	return f.
		WithHint("Build it: make image (scripts/image.sh), with DOCKER_HOST=%s; or pull it if it is somebody else's.", host)
}
