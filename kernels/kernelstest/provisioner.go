package kernelstest

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// Provisioner launches fake kernels, in this process. The exported fields may be set before the first Launch.
type Provisioner struct {
	// Options, when not nil, says how the kernel of a Spec behaves.
	Options func(kernels.Spec) KernelOptions
	// LaunchError and HealthError, when not nil, are what these methods return.
	LaunchError, HealthError error
	// LaunchDelay is how long Launch takes.
	LaunchDelay time.Duration

	here *installation
}

// installation is what outlives a Provisioner: the kernels that run.
type installation struct {
	mu      sync.Mutex
	kernels map[string]*Kernel
	specs   []kernels.Spec
}

var (
	installationsMu sync.Mutex
	installations   = map[string]*installation{}
)

// NewProvisioner returns a provisioner with an installation of its own.
func NewProvisioner() *Provisioner {
	return &Provisioner{here: &installation{kernels: map[string]*Kernel{}}}
}

// NewProvisionerIn returns a provisioner of the installation in dir: two of one dir see the same kernels, as the server
// does before and after a restart.
func NewProvisionerIn(dir string) *Provisioner {
	installationsMu.Lock()
	defer installationsMu.Unlock()
	here := installations[dir]
	if here == nil {
		here = &installation{kernels: map[string]*Kernel{}}
		installations[dir] = here
	}
	return &Provisioner{here: here}
}

// Kernel returns the running kernel of an id, or nil, to make trouble with.
func (p *Provisioner) Kernel(id string) *Kernel {
	p.here.mu.Lock()
	defer p.here.mu.Unlock()
	return p.here.kernels[id]
}

// Launched returns every Spec that was launched, in order.
func (p *Provisioner) Launched() []kernels.Spec {
	p.here.mu.Lock()
	defer p.here.mu.Unlock()
	return slices.Clone(p.here.specs)
}

// StopAll stops every kernel of the installation, for the end of a test.
func (p *Provisioner) StopAll() {
	p.here.mu.Lock()
	defer p.here.mu.Unlock()
	for id, k := range p.here.kernels {
		k.Close()
		delete(p.here.kernels, id)
	}
}

// Name returns "fake".
func (p *Provisioner) Name() string { return "fake" }

var validID = regexp.MustCompile(`^[a-z0-9]{8,32}$`)

// Launch starts a fake kernel. A kernelspec whose command does not exist gives a kernel that does not come up.
func (p *Provisioner) Launch(ctx context.Context, spec kernels.Spec) (kernels.Handle, error) {
	switch {
	case p.LaunchError != nil:
		return nil, p.LaunchError
	case !validID.MatchString(spec.ID):
		return nil, fault.New(fault.Invalid, "a kernel id must match %s: %q", validID, spec.ID)
	}
	if info, err := os.Stat(spec.Workspace); err != nil || !info.IsDir() {
		return nil, fault.New(fault.Invalid, "the workspace %q is no folder", spec.Workspace)
	}
	timer := time.NewTimer(p.LaunchDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Cancelled, "the launch was given up: %w", err)
	}
	return p.launch(spec)
}

func (p *Provisioner) launch(spec kernels.Spec) (kernels.Handle, error) {
	p.here.mu.Lock()
	defer p.here.mu.Unlock()
	if p.here.kernels[spec.ID] != nil {
		return nil, fault.New(fault.Invalid, "a kernel %q runs already", spec.ID)
	}
	var o KernelOptions
	if p.Options != nil {
		o = p.Options(spec)
	}
	o.ID = spec.ID
	if argv := spec.Kernelspec.Argv; len(argv) > 0 && strings.HasPrefix(argv[0], "/") {
		if _, err := os.Stat(argv[0]); err != nil {
			o.FailStart = err.Error() // names the path
		}
	}
	k := NewKernel(o)
	p.here.kernels[spec.ID] = k
	p.here.specs = append(p.here.specs, spec)
	return &handle{p.here, spec.ID, k}, nil
}

// Attach finds a kernel again.
func (p *Provisioner) Attach(_ context.Context, ref kernels.Ref) (kernels.Handle, error) {
	if ref.Provisioner != p.Name() || ref.Version != 1 {
		return nil, fault.New(fault.Invalid, "not a kernel of this provisioner: %q version %d", ref.Provisioner, ref.Version)
	}
	k := p.Kernel(ref.KernelID)
	if k == nil || isExited(k) {
		return nil, fmt.Errorf("%s: %w", ref.KernelID, kernels.ErrGone)
	}
	return &handle{p.here, ref.KernelID, k}, nil
}

// List returns the kernels that run.
func (p *Provisioner) List(context.Context) ([]kernels.Ref, error) {
	p.here.mu.Lock()
	defer p.here.mu.Unlock()
	var refs []kernels.Ref
	for id, k := range p.here.kernels {
		if !isExited(k) {
			refs = append(refs, kernels.Ref{Provisioner: p.Name(), Version: 1, KernelID: id})
		}
	}
	return refs, nil
}

func isExited(k *Kernel) bool {
	select {
	case <-k.Exited():
		return true
	default:
		return false
	}
}

// Health returns HealthError.
func (p *Provisioner) Health(context.Context) error { return p.HealthError }

// Capabilities says that nothing is enforced, and that kernels run as whoever tests.
func (p *Provisioner) Capabilities() kernels.Capabilities {
	return kernels.Capabilities{ReportsOOM: true, UID: os.Getuid(), GID: os.Getgid()}
}

// Close does nothing: the kernels go on.
func (p *Provisioner) Close() error { return nil }

// handle is one fake kernel.
type handle struct {
	here *installation
	id   string
	*Kernel
}

func (h *handle) Ref() kernels.Ref {
	return kernels.Ref{Provisioner: "fake", Version: 1, KernelID: h.id}
}

// Stop ends the kernel; a fake one needs no grace.
func (h *handle) Stop(context.Context, time.Duration) error {
	h.endProcess(stream.Exit{Code: 0, Asked: true})
	h.Kernel.Close()
	h.here.mu.Lock()
	defer h.here.mu.Unlock()
	if h.here.kernels[h.id] == h.Kernel {
		delete(h.here.kernels, h.id)
	}
	return nil
}

func (h *handle) Logs(context.Context) string { return h.opts.FailStart }

// Close releases the handle; the kernel goes on.
func (h *handle) Close() error { return nil }

var (
	_ kernels.Provisioner = (*Provisioner)(nil)
	_ kernels.Handle      = (*handle)(nil)
)
