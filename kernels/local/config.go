// Package local runs each kernel in a bubblewrap sandbox on this host; it needs no container engine.
//
// A sandbox has user, pid, mount, network, ipc, uts and cgroup namespaces of its own. Inside there is a read-only system
// (the host's /usr and what programs need of /etc), the workspace at /workspace, small tmpfs, and the shim as pid 1. It
// has no capabilities, cannot gain privileges, and a seccomp filter refuses the system calls that sandboxes are escaped
// with. Kernels never run as root: when the server does, they get a user of their own.
//
// Kernels outlive the server. Nothing ties a sandbox to the process that launched it; what is needed to find it again
// lies in a folder of the state folder (see state.go), and a process counts as the one meant only if pid, start time and
// boot are the same.
//
// The shim's stream is a Unix socket in the run folder. The server makes it and hands the listening descriptor down, so
// that neither the socket nor its folder exists inside the sandbox.
//
// Memory, CPU and pids are bounded by cgroups where there are any to be had (see cgroup.go); Capabilities says by what.
// Package local works on Linux only; on other systems New fails.
package local

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"cellblock/internal/fault"
)

// Sandbox is what isolates kernels from the host.
type Sandbox string

const (
	// SandboxBubblewrap is bubblewrap, the default.
	SandboxBubblewrap Sandbox = "bwrap"
	// SandboxNone isolates nothing: user code can do whatever the kernel's user can. Limits of size still hold.
	SandboxNone Sandbox = "none"
)

// DefaultUID is who kernels run as when the server is root and nothing else is configured: above the accounts that
// people get, below what distributions hand out to services, and within the 65,536 ids of a user namespace. It is the
// docker provisioner's too, so that a workspace can move from one to the other.
const DefaultUID = 59437

// name is the provisioner's name, in Refs and messages.
const name = "local"

// Config says where things are and who kernels run as. It must not change once given to New.
type Config struct {
	// StateDir keeps what finds running kernels again, one folder for each, and stands for the installation: nothing is
	// known of what another StateDir launched. It is made, mode 0700, if it is missing.
	StateDir string
	// Slot is this process's place among those that use the installation at once. List names the kernels of its slot;
	// Attach finds those of any.
	Slot string
	// RunDir holds the kernels' sockets. It is made, mode 0700, if it is missing.
	RunDir string
	// ShimPath is the static cellblock-shim.
	ShimPath string
	// Sandbox isolates kernels. Empty means SandboxBubblewrap.
	Sandbox Sandbox
	// Bwrap is bubblewrap's program. Empty: "bwrap", looked up in PATH.
	Bwrap string
	// UID and GID are who kernels run as when the server is root; 0 means DefaultUID. A server that is not root runs them
	// as itself.
	UID, GID int
	// ReadOnlyPaths are files and folders of the host that kernels may read at the same path, beside the system's:
	// a virtual environment, /opt.
	ReadOnlyPaths []string
	// MountRoots are the folders of the host below which all mounts of kernels must lie.
	MountRoots []string
	// AllowUnenforced launches although the host took a limit and then does not hold it; Capabilities warns of it.
	AllowUnenforced bool
	// Logger is told what happens behind the caller's back. Nil means slog.Default.
	Logger *slog.Logger
}

// check refuses what can never work and fills in what was left out.
func (c *Config) check() error {
	for what, path := range map[string]*string{"StateDir": &c.StateDir, "RunDir": &c.RunDir, "ShimPath": &c.ShimPath} {
		if *path == "" {
			return fault.New(fault.Invalid, "%s is empty", what)
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fault.New(fault.Invalid, "%s: %w", what, err)
		}
		*path = abs
	}
	if c.Sandbox == "" {
		c.Sandbox = SandboxBubblewrap
	}
	if c.Sandbox != SandboxBubblewrap && c.Sandbox != SandboxNone {
		return fault.New(fault.Invalid, "sandbox %q is neither %q nor %q", c.Sandbox, SandboxBubblewrap, SandboxNone)
	}
	if c.UID < 0 || c.GID < 0 {
		return fault.New(fault.Invalid, "uid %d, gid %d: neither may be negative", c.UID, c.GID)
	}
	if c.Bwrap == "" {
		c.Bwrap = "bwrap"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c.checkReadOnlyPaths()
}

// checkReadOnlyPaths keeps the server's own folders out of what kernels see.
func (c *Config) checkReadOnlyPaths() error {
	c.ReadOnlyPaths = slices.Clone(c.ReadOnlyPaths)
	for i, path := range c.ReadOnlyPaths {
		if !filepath.IsAbs(path) {
			return fault.New(fault.Invalid, "read-only path %q is not absolute", path)
		}
		path = filepath.Clean(path)
		c.ReadOnlyPaths[i] = path
		for _, own := range []string{c.StateDir, c.RunDir, workspacePath, runPath, tmpPath, "/proc", "/dev", "/sys"} {
			if within(own, path) {
				return fault.New(fault.Invalid, "read-only path %q would hide or show %s", path, own).
					WithHint("Name the folders that kernels need one by one.")
			}
		}
	}
	return nil
}

// within tells whether path is folder or lies in it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
