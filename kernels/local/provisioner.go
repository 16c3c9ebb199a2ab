//go:build linux

package local

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/mounts"
)

// Provisioner launches kernels in sandboxes on this host.
type Provisioner struct {
	cfg     Config
	user    user
	system  system
	cgroups cgroups
	nproc   bool // RLIMIT_NPROC counts each user namespace apart
	bwrap   bwrap
	health  healthCache
	mounts  mounts.Finder

	mu      sync.Mutex
	handles map[*handle]struct{}
	told    map[string]bool // the kernels whose folders cannot be read, of which the log has been told
}

var _ kernels.Provisioner = (*Provisioner)(nil)

// New returns a provisioner for an installation. It looks once at what the host can enforce. Whether kernels can be
// launched is for Health to say; New fails, Invalid, for a Config that breaks its rules and for folders that are unsafe.
func New(cfg Config) (*Provisioner, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	for _, dir := range []string{cfg.StateDir, cfg.RunDir} {
		if err := privateDir(dir); err != nil {
			return nil, fault.New(fault.Invalid, "%w", err)
		}
	}
	closeInherited()
	p := &Provisioner{
		cfg: cfg, user: kernelUser(cfg), system: readSystem(os.DirFS("/")), handles: map[*handle]struct{}{}, told: map[string]bool{},
		cgroups: findCgroups(context.Background(), cfg.StateDir, cfg.Logger), nproc: countsByNamespace(),
	}
	p.mounts.Roots = cfg.MountRoots
	if p.cfg.Sandbox == SandboxNone && p.user.drop {
		if err := os.Chmod(cfg.RunDir, 0o711); err != nil { // to be passed, not listed
			return nil, fault.New(fault.Invalid, "%w", err)
		}
	}
	p.bwrap = findBwrap(context.Background(), cfg.Bwrap)
	return p, nil
}

// closeInherited keeps descriptors that whoever started the server left open from kernels. Go's own are closed on exec
// anyway.
var closeInherited = sync.OnceFunc(func() {
	dirs, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, d := range dirs {
		if fd, err := strconv.Atoi(d.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
})

// countsByNamespace tells whether RLIMIT_NPROC bounds the user's processes of one user namespace (Linux 5.14), so that it
// can bound a sandbox. Before, it bounds all of the user's together.
func countsByNamespace() bool {
	var u unix.Utsname
	return unix.Uname(&u) == nil && atLeast(unix.ByteSliceToString(u.Release[:]), 5, 14)
}

// Name returns "local".
func (*Provisioner) Name() string { return name }

// socketName is a kernel's socket in the run folder.
func socketName(id string) string { return id + ".sock" }

func (p *Provisioner) socketPath(id string) string {
	return filepath.Join(p.cfg.RunDir, socketName(id))
}

// bareDir is what a kernel without a sandbox has for home and sockets.
func (p *Provisioner) bareDir(id string) string { return filepath.Join(p.cfg.RunDir, id) }

// refData is what a Ref holds beside the kernel's id: enough to know that the kernel found is the one meant.
type refData struct {
	Boot string   `json:"boot"`
	Main identity `json:"main"`
}

func newRef(id string, st state) kernels.Ref {
	data, err := json.Marshal(refData{Boot: st.Boot, Main: st.Main})
	if err != nil {
		panic("local: " + err.Error())
	}
	return kernels.Ref{Provisioner: name, Version: refVersion, KernelID: id, Data: data}
}

// Attach finds a kernel by its folder in the state folder.
func (p *Provisioner) Attach(_ context.Context, ref kernels.Ref) (kernels.Handle, error) {
	var want refData
	if ref.Provisioner != name || ref.Version != refVersion || !idRule.MatchString(ref.KernelID) || json.Unmarshal(ref.Data, &want) != nil {
		return nil, fault.New(fault.Invalid, "not a reference of the local provisioner, version %d: %q %d %.40q",
			refVersion, ref.Provisioner, ref.Version, ref.KernelID)
	}
	e, err := openEntry(p.cfg.StateDir, ref.KernelID, unix.LOCK_SH)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, gone(ref.KernelID)
	case errors.Is(err, errBusy):
		return nil, fault.New(fault.Busy, "kernel %s is being launched or taken away", ref.KernelID)
	case err != nil:
		return nil, fault.New(fault.Unavailable, "kernel %s: %w", ref.KernelID, err)
	}
	h, err := p.attach(e, want)
	if err != nil {
		_ = e.close()
		return nil, err
	}
	return h, nil
}

func (p *Provisioner) attach(e *entry, want refData) (*handle, error) {
	st, err := e.load()
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errCopied) {
		return nil, gone(e.id)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "%w", err)
	}
	if st.Boot != want.Boot || st.Main != want.Main || !st.alive() {
		return nil, gone(e.id)
	}
	h, err := newHandle(p, e, st)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "kernel %s: %w", e.id, err)
	}
	return h, nil
}

func gone(id string) error { return fault.New(fault.NotFound, "kernel %s: %w", id, kernels.ErrGone) }

// alive tells whether any of the kernel's processes runs.
func (st state) alive() bool {
	if boot, err := bootID(); err != nil || boot != st.Boot {
		return false
	}
	all, err := openAll(st)
	if err != nil {
		return true // not known: rather found in vain than taken away
	}
	defer closeAll(all)
	for _, proc := range all {
		if !proc.ended() {
			return true
		}
	}
	return false
}

// List returns the kernels of this process's slot that run. What it finds of dead ones that nobody holds, and of launches
// that a server left half made when it died, it takes away, whichever slot they were of.
func (p *Provisioner) List(ctx context.Context) ([]kernels.Ref, error) {
	dirs, err := os.ReadDir(p.cfg.StateDir)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "state folder: %w", err)
	}
	var refs []kernels.Ref
	for _, d := range dirs {
		if abandoned(d) {
			_ = os.RemoveAll(filepath.Join(p.cfg.StateDir, d.Name()))
		}
		if !d.IsDir() || !idRule.MatchString(d.Name()) {
			continue
		}
		if ended(ctx) != nil {
			return nil, givenUp(ctx, "list")
		}
		if st, ok := p.look(d.Name()); ok && st.Slot == p.cfg.Slot {
			refs = append(refs, newRef(d.Name(), st))
		}
	}
	return refs, nil
}

// look returns the state of a kernel that runs, and sweeps one that does not.
func (p *Provisioner) look(id string) (state, bool) {
	e, err := openEntry(p.cfg.StateDir, id, unix.LOCK_SH)
	if err != nil {
		return state{}, false
	}
	st, err := e.load()
	alive := err == nil && st.alive()
	_ = e.close()
	if !alive && (err == nil || errors.Is(err, os.ErrNotExist)) {
		p.sweep(id)
	} else if err != nil {
		p.tell(id, err)
	}
	return st, alive
}

// tell logs once why a kernel's folder cannot be read: it is looked at again and again, and nothing becomes of it.
func (p *Provisioner) tell(id string, err error) {
	p.mu.Lock()
	told := p.told[id]
	p.told[id] = true
	p.mu.Unlock()
	if !told {
		p.cfg.Logger.Warn("a kernel's folder cannot be read, and is left alone", "kernel", id, "error", err)
	}
}

// sweep takes away what a kernel left, unless somebody has come to hold it meanwhile.
func (p *Provisioner) sweep(id string) {
	e, err := openEntry(p.cfg.StateDir, id, unix.LOCK_EX)
	if err != nil {
		return
	}
	defer e.close()
	st, err := e.load()
	if err == nil && st.alive() {
		return
	}
	if err := p.clear(e, st); err != nil {
		p.cfg.Logger.Warn("what a kernel left cannot be taken away", "kernel", id, "error", err)
		return
	}
	p.cfg.Logger.Info("took away what a kernel left", "kernel", id)
}

// remember and forget keep count of open handles, for Close.
func (p *Provisioner) remember(h *handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handles[h] = struct{}{}
}

func (p *Provisioner) forget(h *handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.handles, h)
}

// Close closes every handle. Kernels go on running.
func (p *Provisioner) Close() error {
	p.mu.Lock()
	open := make([]*handle, 0, len(p.handles))
	for h := range p.handles {
		open = append(open, h)
	}
	p.mu.Unlock()
	for _, h := range open {
		_ = h.Close()
	}
	return nil
}
