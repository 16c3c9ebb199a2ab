package docker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// clearTime bounds how long clearing up behind a failed launch may hold up its caller.
const clearTime = 15 * time.Second

// exitTime is how long an engine may take to say that a container has ended whose stream has.
const exitTime = 3 * time.Second

var idRule = regexp.MustCompile(`^[a-z0-9]{8,32}$`)

// Launch creates and starts a container, and returns when its shim can be dialled.
func (p *Provisioner) Launch(ctx context.Context, spec kernels.Spec) (kernels.Handle, error) {
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	e, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.usable(e); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.On(e.info.NCPU)
	l := &launch{p: p, e: e, spec: spec}
	h, err := l.run(ctx)
	if err != nil {
		err = l.explain(ctx, err)
		l.undo(ctx)
		return nil, err
	}
	return h, nil
}

// checkSpec refuses a Spec that breaks its rules.
func checkSpec(spec kernels.Spec) error {
	switch {
	case !idRule.MatchString(spec.ID):
		return fault.New(fault.Invalid, "kernel id %q does not match %s", spec.ID, idRule)
	case len(spec.Kernelspec.Argv) == 0:
		return fault.New(fault.Invalid, "kernelspec %q has no argv", spec.Kernelspec.Name)
	case spec.Image == "":
		return fault.New(fault.Invalid, "no image is named for kernelspec %q", spec.Kernelspec.Name)
	case !filepath.IsAbs(spec.Workspace):
		return fault.New(fault.Invalid, "workspace %q is not an absolute path", spec.Workspace)
	}
	return nil
}

// launch is one Launch under way: what there is already, so that it can be undone.
type launch struct {
	p       *Provisioner
	e       *engine
	spec    kernels.Spec
	carrier carrier
	handle  *handle
	// creation is nil until the engine was asked for the container, and when it said that it is somebody else's. created
	// is the container's id.
	creation *creation
	created  string
}

func (l *launch) run(ctx context.Context) (*handle, error) {
	asked, err := l.create(ctx)
	if err != nil {
		return nil, err
	}
	inspect, err := l.e.api.ContainerInspect(ctx, l.created)
	if err != nil {
		return nil, err
	}
	if err := l.p.refuse(configWeaknesses(asked, inspect.HostConfig)); err != nil {
		return nil, err
	}
	if err := l.carrier.prepare(ctx); err != nil {
		return nil, err
	}
	if err := l.e.api.ContainerStart(ctx, l.created, container.StartOptions{}); err != nil {
		return nil, err
	}
	l.handle = l.p.newHandle(l.e, l.spec.ID, l.created, l.carrier)
	if err := l.await(ctx); err != nil {
		return nil, err
	}
	if err := l.verify(ctx); err != nil {
		return nil, err
	}
	return l.handle, nil
}

// create makes the container from a plan, and returns what was asked of the engine.
func (l *launch) create(ctx context.Context) (*container.HostConfig, error) {
	plan, err := l.plan(ctx)
	if err != nil {
		return nil, err
	}
	config, host := plan.config()
	l.creation = l.p.sweeper.create(ctx, l.e, config, host, containerName(l.spec.ID))
	response, err := l.creation.wait(ctx)
	if err != nil {
		if cerrdefs.IsConflict(err) {
			l.creation = nil
			return nil, fault.New(fault.Conflict, "there is a kernel %s already: %w", l.spec.ID, err)
		}
		return nil, err
	}
	l.created = response.ID
	for _, warning := range response.Warnings {
		l.p.cfg.Logger.Warn("container engine", "kernel", l.spec.ID, "warning", warning)
	}
	return host, nil
}

// plan gathers what the container needs, and makes what has to exist before it.
func (l *launch) plan(ctx context.Context) (plan, error) {
	p := plan{spec: l.spec, installation: l.p.cfg.Installation, slot: l.p.cfg.Slot, kind: l.e.kind, user: l.e.user, ulimits: l.e.ulimits}
	var err error
	if p.extras, err = l.p.extras(ctx, l.e, l.spec); err != nil {
		return p, err
	}
	image, err := l.e.image(ctx, l.spec.Image)
	if err != nil {
		return p, err
	}
	if image.Config != nil {
		p.imageEnv = image.Config.Env
	}
	if p.shim, err = l.p.shimMount(ctx, l.e, l.spec.Image); err != nil {
		return p, err
	}
	if p.workspace, err = l.p.workspaceMount(ctx, l.e, l.spec.Image, l.spec.Workspace); err != nil {
		return p, err
	}
	if l.e.carrier == CarrierStdio {
		p.attachKey = stream.NewAttachKey()
		l.carrier = &stdioCarrier{api: l.e.api, container: containerName(l.spec.ID), key: p.attachKey}
		return p, nil
	}
	p.socket = filepath.Join(l.p.cfg.RunDir, l.spec.ID)
	folder, err := makeSocketDir(p.socket, l.e.user.uid, l.e.user.gid)
	switch {
	case errors.Is(err, fs.ErrExist):
		return p, fault.New(fault.Conflict, "there is a kernel %s already: %w", l.spec.ID, err)
	case err != nil:
		return p, fault.New(fault.Unavailable, "making the kernel's run folder: %w", err).
			WithHint("Check that %s is a folder that the server may write to.", l.p.cfg.RunDir)
	}
	l.carrier = folder
	return p, nil
}

// await returns when the shim can be dialled, or why the container ended instead.
func (l *launch) await(ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with waiting
		select {
		case <-l.handle.exited:
			cancel()
		case <-waiting.Done():
		}
	}()
	err := l.carrier.await(waiting)
	if err == nil {
		return nil
	}
	// The end of the container ends its stream too, a moment before the engine says so.
	timer := time.NewTimer(exitTime)
	defer timer.Stop()
	select {
	case <-l.handle.exited:
		return errExited
	case <-timer.C:
	case <-ctx.Done():
	}
	return err
}

var errExited = errors.New("the container ended at once")

// verify reads back what really binds the container's first process.
func (l *launch) verify(ctx context.Context) error {
	if l.e.carrier != CarrierSocket {
		return nil // not our system's process
	}
	inspect, err := l.e.api.ContainerInspect(ctx, l.created)
	if err != nil {
		return err
	}
	return l.p.refuse(processWeaknesses(l.spec.Limits, readProcess(inspect.State.Pid, l.created)))
}

// explain says for the operator why a launch failed.
func (l *launch) explain(ctx context.Context, err error) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return fault.New(fault.Cancelled, "the launch of kernel %s was given up: %w", l.spec.ID, ctx.Err())
	case ctx.Err() != nil:
		return fault.New(fault.Timeout, "the launch of kernel %s did not end in its time: %w", l.spec.ID, ctx.Err())
	case errors.Is(err, errExited):
		status, logs := l.handle.Status(), strings.TrimSpace(l.handle.Logs(ctx))
		return fault.New(fault.Unavailable, "the kernel's container ended at once (exit code %d%s): %s", status.Code, status.Signal, logs).
			WithHint("Check that the image %s can run %s, and that cellblock-shim is of the same version as cellblock.", l.spec.Image, l.spec.Kernelspec.Argv[0])
	case cutOff(err) && !nobodyListens(err):
		return fault.New(fault.Unavailable, "the container engine at %s went away during a launch: %w", l.e.host, err).
			WithHint("Look whether the engine runs; what the launch had begun is cleared up once it answers.")
	case strings.Contains(err.Error(), "bind source path does not exist") || strings.Contains(err.Error(), "invalid mount config"):
		return fault.New(fault.Unavailable, "the container engine at %s does not see the server's folders: %w", l.e.host, err).
			WithHint("It must see data_dir, run_dir and the folder of cellblock-shim under the same paths: share them with it, or choose folders that it sees.")
	}
	return engineError(l.e.host, err)
}

// cutOff reports whether err is that of a connection which ended in the middle.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || connectionLost(err)
}

// undo removes whatever the launch has made. Where the engine's answer was lost, or it does not answer now, the sweeper
// goes on until it is certain that nothing is left.
func (l *launch) undo(ctx context.Context) {
	if l.handle != nil {
		_ = l.handle.Close()
	}
	clean := func() error { return nil }
	if l.carrier != nil {
		clean = l.carrier.remove
	}
	if l.creation != nil {
		l.p.discard(ctx, debt{e: l.e, name: containerName(l.spec.ID), creation: l.creation, clean: clean})
		return
	}
	if err := clean(); err != nil {
		l.p.cfg.Logger.Warn("clearing up behind a failed launch", "kernel", l.spec.ID, "error", err)
	}
}
