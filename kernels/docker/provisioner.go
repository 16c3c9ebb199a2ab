package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/mounts"
)

// Name is the provisioner's name in Refs.
const Name = "docker"

// refVersion is the version of refData.
const refVersion = 1

// Between two attempts to list: Podman's list fails while one of its containers is being removed.
const firstListPause, lastListPause = 25 * time.Millisecond, 1600 * time.Millisecond

// refData is what a Ref of ours carries.
type refData struct {
	Container string `json:"container"`
}

// Provisioner runs kernels in containers. See the package's documentation.
type Provisioner struct {
	cfg     Config
	started time.Time

	meeting chan struct{} // held while the engine is being met
	mu      sync.Mutex    // guards met and images
	met     *engine
	images  []string // that Health asks for

	shimOnce sync.Once
	shim     shimFile
	shimErr  error

	volumes    sync.Mutex // held while a volume is being filled
	shimVolume string     // the one that was full
	shimMade   string     // what tells it from another of its name
	movesOnce  sync.Once

	mounts  mounts.Finder
	sweeper sweeper
}

// New returns a provisioner without talking to the engine: that happens when it is first needed, so that a server can
// start before its engine does. The error is of kind Invalid.
func New(cfg Config) (*Provisioner, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	p := &Provisioner{cfg: cfg, images: cfg.Images, started: time.Now(), meeting: make(chan struct{}, 1)}
	p.mounts.Roots = cfg.MountRoots
	p.sweeper.start(cfg.Logger)
	return p, nil
}

// Name is "docker", for Podman too.
func (p *Provisioner) Name() string { return Name }

// engine returns the engine, which is met at the first call that finds it there.
func (p *Provisioner) engine(ctx context.Context) (*engine, error) {
	select {
	case p.meeting <- struct{}{}:
		defer func() { <-p.meeting }()
	case <-ctx.Done():
		return nil, engineError(p.cfg.Host, ctx.Err())
	}
	if e := p.known(); e != nil {
		return e, nil
	}
	e, err := meet(ctx, p.cfg)
	if err != nil {
		return nil, err
	}
	if err := p.shareOwnVolume(ctx, e); err != nil {
		_ = e.api.Close()
		return nil, engineError(e.host, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.met = e
	p.cfg.Logger.Info("container engine", "host", e.host, "kind", e.kind, "version", e.info.ServerVersion,
		"carrier", e.carrier, "files", e.files)
	return e, nil
}

// known returns the engine if it has been met.
func (p *Provisioner) known() *engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.met
}

// Attach finds a kernel's container by its Ref.
func (p *Provisioner) Attach(ctx context.Context, ref kernels.Ref) (kernels.Handle, error) {
	var data refData
	if ref.Provisioner != Name || ref.Version != refVersion || json.Unmarshal(ref.Data, &data) != nil || data.Container == "" {
		return nil, fault.New(fault.Invalid, "this is no reference to a container: %s version %d", ref.Provisioner, ref.Version)
	}
	e, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	inspect, err := e.api.ContainerInspect(ctx, data.Container)
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, fmt.Errorf("container %s: %w", data.Container, kernels.ErrGone)
	case err != nil:
		return nil, engineError(e.host, err)
	case inspect.Config.Labels[labelInstallation] != p.cfg.Installation || inspect.Config.Labels[labelKernel] != ref.KernelID:
		return nil, fmt.Errorf("container %s is another installation's: %w", data.Container, kernels.ErrGone)
	case !inspect.State.Running:
		return nil, fmt.Errorf("container %s does not run any more: %w", data.Container, kernels.ErrGone)
	}
	c, err := carrierOf(e, inspect)
	if err != nil {
		return nil, err
	}
	return p.newHandle(e, ref.KernelID, inspect.ID, c), nil
}

// List asks the engine for the running containers of this process's slot. What it finds of ended ones that an earlier
// process in it launched, it takes away: nobody is left who would.
func (p *Provisioner) List(ctx context.Context) ([]kernels.Ref, error) {
	e, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	ours := filters.NewArgs(filters.Arg("label", labelInstallation+"="+p.cfg.Installation), filters.Arg("label", labelKernel))
	options := container.ListOptions{Filters: ours, All: true}
	containers, err := e.api.ContainerList(ctx, options)
	for pause := firstListPause; cerrdefs.IsInternal(err) && pause <= lastListPause; pause *= 2 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, engineError(e.host, ctx.Err())
		}
		containers, err = e.api.ContainerList(ctx, options)
	}
	if err != nil {
		return nil, engineError(e.host, err)
	}
	refs := make([]kernels.Ref, 0, len(containers))
	for _, c := range containers {
		switch {
		case c.Labels[labelSlot] != p.cfg.Slot:
		case runs(c.State):
			refs = append(refs, newRef(c.Labels[labelKernel], c.ID))
		case time.Unix(c.Created, 0).Before(p.started):
			if err := p.takeAway(ctx, e, c); err != nil {
				p.cfg.Logger.Warn("an ended container could not be removed", "container", c.ID, "error", err)
			}
		}
	}
	p.sweepFolders(ctx, e)
	p.sweepHelpers(ctx, e)
	p.sweepBuilds(ctx, e)
	return refs, nil
}

func runs(state container.ContainerState) bool {
	return state == container.StateRunning || state == container.StatePaused || state == container.StateRestarting
}

// takeAway removes an ended container and its folder here.
func (p *Provisioner) takeAway(ctx context.Context, e *engine, c container.Summary) error {
	if err := remove(ctx, e, c.ID); err != nil && !cerrdefs.IsNotFound(err) {
		return err
	}
	id := c.Labels[labelKernel]
	if !idRule.MatchString(id) {
		return nil // not a name that we would have given to a folder
	}
	return os.RemoveAll(filepath.Join(p.cfg.RunDir, id))
}

func newRef(kernelID, containerID string) kernels.Ref {
	data, err := json.Marshal(refData{Container: containerID})
	if err != nil {
		panic("docker: " + err.Error()) // a string: cannot fail
	}
	return kernels.Ref{Provisioner: Name, Version: refVersion, KernelID: kernelID, Data: data}
}

// Capabilities says what the engine enforces. If it has never answered, it is asked now, for at most a few seconds;
// does it still not answer, nothing is claimed but who kernels would run as.
func (p *Provisioner) Capabilities() kernels.Capabilities {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	e, err := p.engine(ctx)
	if err != nil {
		uid, gid := p.cfg.runAs()
		return kernels.Capabilities{Images: true, UID: uid, GID: gid, Warnings: []string{fault.Text(err)}}
	}
	return e.capabilities()
}

func (e *engine) capabilities() kernels.Capabilities {
	c := kernels.Capabilities{
		FileSize: "RLIMIT_FSIZE", Network: "an empty network namespace", Filesystem: "a container with a read-only root",
		Processes: "a pid namespace", Images: true, Cores: e.info.NCPU, UID: e.user.uid, GID: e.user.gid,
	}
	limits := !(hasSecurity(e.info, "rootless") && e.info.CgroupVersion == "1")
	set := func(field *string, enforced bool) {
		if limits && enforced {
			*field = "cgroup v" + orElse(e.info.CgroupVersion, "1")
		}
	}
	set(&c.Memory, e.info.MemoryLimit)
	set(&c.CPU, e.info.CPUCfsQuota)
	set(&c.PIDs, e.info.PidsLimit)
	c.ReportsOOM = c.Memory != ""
	for _, w := range e.weaknesses {
		c.Warnings = append(c.Warnings, "The container engine does not enforce "+w+".")
	}
	c.Warnings = slices.Clip(c.Warnings)
	return c
}

// Close stops what clears up behind failed launches. Kernels and their handles stay.
func (p *Provisioner) Close() error {
	p.sweeper.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.met == nil {
		return nil
	}
	return p.met.api.Close()
}

var _ kernels.Provisioner = (*Provisioner)(nil)
