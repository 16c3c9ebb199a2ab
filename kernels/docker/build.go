package docker

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"

	"cellblock/internal/fault"
)

// An image is made of another by running programs in a container of it, one after another, and committing what has become of
// it. So there are no images in between that could be left behind, a build is cancelled by removing its container, and Docker
// and Podman do the same. Nothing of it goes through a shell.

// Build says how an image is made.
type Build struct {
	// Name is what the image is called, Base the image that it is made of. Without a name the steps are run, and no image is made.
	Name, Base string
	// Labels and Env ("NAME=value") are added to the base's.
	Labels map[string]string
	Env    []string
	// Steps are run in their order, as root of the container, until one fails.
	Steps []Step
	// Files are in ScratchDir while the steps run, by their names there.
	Files map[string][]byte
	// Network is the engine's network that the steps have. Empty: its bridge, or the host's where the engine has none.
	Network string
	// Memory is how many bytes the steps may use, Size by how much the image may grow; while the steps run it is twice as much.
	// Reserve is how much of the engine's disk is left alone, where that is this system's. 0: no limit.
	Memory, Size, Reserve int64
	// Limit is how long the container lives at most, also when nobody is there to end it.
	Limit time.Duration
}

// Step is one program.
type Step struct {
	Argv, Env []string
}

// derivedPrefix begins the names of images that a server made of others, and removes when nobody uses them.
const derivedPrefix = "cellblock-derived-"

// ScratchDir is a folder that only a build has. It is removed before the image is made.
const ScratchDir = "/cellblock-build"

const (
	// buildPrefix begins the names of builds' containers, the process's slot comes next. An image gets the labels of the container
	// that it was made of, and further containers get those of the image, so a label would not do.
	buildPrefix = "cellblock-build-"
	// buildPIDs bounds the processes of a build.
	buildPIDs = 1024
	// commitTime bounds how long an engine may take to make an image of a container.
	commitTime = 10 * time.Minute
)

// buildCapabilities are what installing packages takes: unpacking files for their owners, and becoming an unprivileged user
// for downloads.
var buildCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP", "SETGID", "SETUID"}

// StepError is the end of a step that did not succeed.
type StepError struct {
	Step Step
	// ExitCode is the program's; 126 and 127 are those of one that is not there.
	ExitCode int
}

// Error says which program it was.
func (e *StepError) Error() string {
	return fmt.Sprintf("%s ended with exit code %d", strings.Join(e.Step.Argv[:1], " "), e.ExitCode)
}

// BuildImage makes an image and returns it. What the steps print goes to log. When a step fails the error is a *StepError; the
// image that would be too large is a fault.Invalid, and too full a disk is Unavailable. Whatever fails, and when ctx ends, nothing of the build is left.
func (p *Provisioner) BuildImage(ctx context.Context, b Build, log io.Writer) (Image, error) {
	e, err := p.engine(ctx)
	if err != nil {
		return Image{}, err
	}
	base, err := e.image(ctx, b.Base)
	if err != nil {
		return Image{}, err
	}
	if err := e.checkDisk(b, 0); err != nil {
		return Image{}, err
	}
	config, host, err := p.buildContainer(ctx, e, b)
	if err != nil {
		return Image{}, err
	}
	name := buildPrefix + p.cfg.Slot + "-" + rand.Text()
	c := p.sweeper.create(ctx, e, config, host, name)
	defer p.discard(ctx, debt{e: e, name: name, creation: c, clean: func() error { return nil }})
	if _, err := c.wait(ctx); err != nil {
		return Image{}, imageError(e.host, b.Base, err)
	}
	b.Steps = b.steps(base)
	running, stop := e.watchBuild(ctx, name, b)
	err = e.runSteps(running, name, b, log)
	if err := cmp.Or(stop(), err); err != nil {
		return Image{}, err
	}
	if b.Name == "" {
		return Image{}, nil
	}
	if err := e.checkMade(ctx, name, b); err != nil {
		return Image{}, err
	}
	return p.commit(ctx, e, name, b, base)
}

// buildContainer is the container that the steps run in: it waits, until it is removed or its time is up.
func (p *Provisioner) buildContainer(ctx context.Context, e *engine, b Build) (*container.Config, *container.HostConfig, error) {
	mode, err := e.buildNetwork(ctx, b.Network)
	if err != nil {
		return nil, nil, err
	}
	config := &container.Config{
		Image: b.Base, User: "0:0", WorkingDir: "/", Hostname: "cellblock",
		Entrypoint: []string{"sleep"}, Cmd: []string{strconv.Itoa(int(b.Limit.Seconds()) + 1)},
		Labels: map[string]string{labelInstallation: p.cfg.Installation},
	}
	if e.kind != KindPodman {
		config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	}
	pids := int64(buildPIDs)
	host := &container.HostConfig{
		NetworkMode: mode, CapDrop: []string{"ALL"}, CapAdd: buildCapabilities, SecurityOpt: []string{"no-new-privileges"},
		LogConfig: container.LogConfig{Type: "none"},
		Resources: container.Resources{Memory: b.Memory, PidsLimit: &pids, Ulimits: e.ulimits},
	}
	return config, host, nil
}

// buildNetwork chooses the network of a build.
func (e *engine) buildNetwork(ctx context.Context, wanted string) (container.NetworkMode, error) {
	if wanted != "" {
		return container.NetworkMode(wanted), nil
	}
	_, err := e.api.NetworkInspect(ctx, "bridge", network.InspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err): // a host without netfilter
		return "host", nil
	case err != nil:
		return "", engineError(e.host, err)
	}
	return "bridge", nil
}

// runSteps starts the container and runs the steps in it.
func (e *engine) runSteps(ctx context.Context, id string, b Build, log io.Writer) error {
	if err := e.api.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return engineError(e.host, err)
	}
	if err := e.putFiles(ctx, id, b.Files); err != nil {
		return engineError(e.host, err)
	}
	for _, step := range b.Steps {
		if err := e.runStep(ctx, id, step, log); err != nil {
			return err
		}
	}
	return nil
}

// systemPath is where a step's programs are looked for before the folders of the base's own PATH. Those begin with /usr/local/bin,
// where package managers put what they install: a package with a program called "rm" would have that run by the next step.
const systemPath = "/usr/sbin:/usr/bin:/sbin:/bin"

// steps are the build's, and the one that removes ScratchDir.
func (b Build) steps(base image.InspectResponse) []Step {
	search := "PATH=" + systemPath
	if c := base.Config; c != nil {
		for _, entry := range c.Env {
			if own, ok := strings.CutPrefix(entry, "PATH="); ok {
				search += ":" + own
			}
		}
	}
	var all []Step
	for _, s := range append(slices.Clip(b.Steps), Step{Argv: []string{"rm", "-rf", ScratchDir}}) {
		s.Env = append([]string{search}, s.Env...)
		all = append(all, s)
	}
	return all
}

// putFiles makes ScratchDir, with a build's files.
func (e *engine) putFiles(ctx context.Context, id string, files map[string][]byte) error {
	folder := archiveOf(&tar.Header{Name: path.Base(ScratchDir) + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	if err := e.api.CopyToContainer(ctx, id, path.Dir(ScratchDir), folder, container.CopyToContainerOptions{}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		archive := archiveOf(&tar.Header{Name: path.Base(name), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}, files[name])
		if err := e.api.CopyToContainer(ctx, id, ScratchDir, archive, container.CopyToContainerOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// runStep runs a program in a container, and copies what it prints.
func (e *engine) runStep(ctx context.Context, id string, step Step, log io.Writer) error {
	run, err := e.api.ContainerExecCreate(ctx, id, container.ExecOptions{
		User: "0:0", Cmd: step.Argv, Env: step.Env, WorkingDir: "/", AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return engineError(e.host, err)
	}
	stream, err := e.api.ContainerExecAttach(ctx, run.ID, container.ExecAttachOptions{})
	if err != nil {
		return engineError(e.host, err)
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, stream.Close)()
	_, copyErr := stdcopy.StdCopy(log, log, stream.Reader)
	if err := ctx.Err(); err != nil {
		return engineError(e.host, err)
	}
	code, err := e.exitOf(ctx, id, run.ID)
	switch {
	case err != nil:
		return engineError(e.host, errors.Join(err, copyErr))
	case code != 0:
		return &StepError{step, code}
	}
	return nil
}

// commit makes an image of a build's container. Once begun it is not given up half-way: whoever cancels meanwhile finds the
// image made, and removed.
func (p *Provisioner) commit(ctx context.Context, e *engine, id string, b Build, base image.InspectResponse) (Image, error) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	options := container.CommitOptions{Reference: b.Name, Config: b.config(base)}
	if e.kind == KindPodman { // which only wants to have been given one
		options.Changes = instructions(options.Config)
	}
	done, err := e.api.ContainerCommit(detached, id, options)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Image{}, errors.Join(engineError(e.host, err), e.removeImage(detached, b.Name))
	}
	return p.Image(detached, done.ID)
}

// config is the image's: the base's own, with what the build adds.
func (b Build) config(base image.InspectResponse) *container.Config {
	config := &container.Config{Entrypoint: []string{}, Labels: map[string]string{}}
	if c := base.Config; c != nil {
		config.User, config.WorkingDir, config.Cmd, config.Env = c.User, c.WorkingDir, c.Cmd, slices.Clone(c.Env)
		config.Entrypoint = slices.Concat([]string{}, c.Entrypoint)
		config.Labels = maps.Clone(c.Labels)
	}
	if config.Labels == nil {
		config.Labels = map[string]string{}
	}
	maps.Copy(config.Labels, b.Labels)
	config.Env = append(config.Env, b.Env...)
	return config
}

// instructions say a configuration in the words of a Dockerfile.
func instructions(c *container.Config) []string {
	lines := []string{"USER " + c.User, "WORKDIR " + orElse(c.WorkingDir, "/"), "ENTRYPOINT " + jsonOf(c.Entrypoint), "CMD " + jsonOf(slices.Concat([]string{}, c.Cmd))}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		lines = append(lines, "LABEL "+strconv.Quote(name)+"="+strconv.Quote(c.Labels[name]))
	}
	for _, entry := range c.Env {
		name, value, _ := strings.Cut(entry, "=")
		lines = append(lines, "ENV "+name+"="+strconv.Quote(value))
	}
	return lines
}

func jsonOf(list []string) string {
	b, err := json.Marshal(list)
	if err != nil {
		panic("docker: " + err.Error()) // strings: cannot fail
	}
	return string(b)
}

// TagImage gives an image another name.
func (p *Provisioner) TagImage(ctx context.Context, name, other string) error {
	e, err := p.engine(ctx)
	if err != nil {
		return err
	}
	if err := e.api.ImageTag(ctx, name, other); err != nil {
		return imageError(e.host, name, err)
	}
	return nil
}

// RemoveImage takes a name from an image, and the image away with its last name. The error is a fault.Conflict while a container
// uses it. An image that is not there is removed.
func (p *Provisioner) RemoveImage(ctx context.Context, name string) error {
	e, err := p.engine(ctx)
	if err != nil {
		return err
	}
	return e.removeImage(ctx, name)
}

func (e *engine) removeImage(ctx context.Context, name string) error {
	_, err := e.api.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
	switch {
	case err == nil || cerrdefs.IsNotFound(err):
		return nil
	case cerrdefs.IsConflict(err):
		return fault.New(fault.Conflict, "the image %s is in use: %w", name, err)
	}
	return engineError(e.host, err)
}

// sweepBuilds removes containers of builds that nobody waits for: an earlier process's in this slot, and any whose time is up.
func (p *Provisioner) sweepBuilds(ctx context.Context, e *engine) {
	ours := filters.NewArgs(filters.Arg("label", labelInstallation+"="+p.cfg.Installation), filters.Arg("name", buildPrefix))
	list, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: ours})
	if err != nil {
		return
	}
	for _, c := range list {
		made := time.Unix(c.Created, 0)
		mine := slices.ContainsFunc(c.Names, func(n string) bool { return strings.HasPrefix(strings.TrimPrefix(n, "/"), buildPrefix+p.cfg.Slot+"-") })
		left := mine && made.Before(p.started.Truncate(time.Second))
		if !left && (runs(c.State) || time.Since(made) < helperGrace) {
			continue
		}
		if err := remove(ctx, e, c.ID); err != nil && !cerrdefs.IsNotFound(err) {
			p.cfg.Logger.Warn("the container of a build could not be removed", "container", c.ID, "error", err)
		}
	}
}
