// Package kernels says what a Jupyter kernel is to cellblock and how to talk to one.
//
// A Provisioner launches kernels; each runs beside a shim, in a container or sandbox of its own. A Handle stands for one
// launched kernel and gives connections to its shim. A Client speaks Jupyter over such a connection: it sends execute
// requests and routes what the kernel answers to their Executions.
package kernels

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"

	"cellblock/kernels/stream"
)

// Kernelspec describes how a kernel is started (jupyter_client, "Kernel specs").
type Kernelspec struct {
	// Name is the kernelspec's name, for example "python3".
	Name string `json:"name"`
	// DisplayName is for people.
	DisplayName string `json:"display_name"`
	// Language is what the kernel runs, in lower case: "python", "javascript", "bash".
	Language string `json:"language"`
	// Argv is the command; "{connection_file}" in an element is replaced by the connection file's path.
	Argv []string `json:"argv"`
	// Env is added to the kernel's environment.
	Env map[string]string `json:"env,omitempty"`
	// InterruptMode is "signal" (the default when empty) or "message".
	InterruptMode string `json:"interrupt_mode,omitempty"`
	// Transport is "ipc" (the default when empty), or "tcp" for kernels that know no other.
	Transport string `json:"transport,omitempty"`
	// Waits tells that the kernel waits while nobody reads its IOPub. Others drop what they cannot send.
	Waits bool `json:"waits,omitempty"`
}

// Limits bound what a kernel and everything it starts may use. Zero means no limit.
type Limits struct {
	// Memory is in bytes; swap is never added to it.
	Memory int64 `json:"memory" koanf:"memory"`
	// CPUs is in cores; it also sets the threads of BLAS and OpenMP: see ThreadEnv.
	CPUs float64 `json:"cpus" koanf:"cpus"`
	// PIDs bounds processes and threads.
	PIDs int64 `json:"pids" koanf:"pids"`
	// FileSize bounds one file, in bytes.
	FileSize int64 `json:"file_size" koanf:"file_size"`
	// Tmp is the size of the tmpfs at /tmp, in bytes.
	Tmp int64 `json:"tmp" koanf:"tmp"`
	// Files bounds open file descriptors of one process.
	Files int64 `json:"files" koanf:"files"`
}

// Spec is what to launch.
type Spec struct {
	// ID is the kernel's id, made by the caller, unique within the installation: [a-z0-9]{8,32}. It names the container
	// and the run folder.
	ID string
	// Kernelspec says which kernel.
	Kernelspec Kernelspec
	// Image is what it runs in; provisioners without images ignore it.
	Image string
	// Workspace is a folder on this host, owned by the user that the kernel will run as (see Capabilities.UID). It
	// appears as /workspace, the kernel's working directory and the only place that is kept.
	Workspace string
	// Limits are the profile's.
	Limits Limits
	// Mounts are folders of this host that the kernel sees besides its workspace.
	Mounts []Mount
	// Runtime is the OCI runtime that runs the container; empty: the engine's own choice. Provisioners without containers
	// refuse any other with Unavailable.
	Runtime string
	// Devices are devices of this host that the kernel may use: names of the Container Device Interface
	// ("nvidia.com/gpu=all") or paths ("/dev/fuse"). Provisioners that cannot give them refuse them with Unavailable.
	Devices []string
	// Env is added to the kernel's environment, after the kernelspec's.
	Env map[string]string
	// Egress has the shim open a proxy on the sandbox's loopback, and tell the kernel of it by HTTP_PROXY and the like. Whether
	// anything can be reached through it is decided where the connections come out (Client.ServeEgress).
	Egress bool
	// Authorities are certificates (PEM) that programs trust besides those of the image, where Egress is set.
	Authorities string
	// Patience is how long the kernel goes on when no server is connected to it; then its shim ends it. 0: for ever.
	Patience time.Duration
	// Labels are kept with the kernel where the provisioner can (container labels). No secrets.
	Labels map[string]string
}

// Mount is a folder of this host inside a kernel's container or sandbox.
type Mount struct {
	// Source is its absolute path on this host, Target where it appears inside.
	Source, Target string
	// Writable tells that the kernel may change what is in it.
	Writable bool
}

// ErrGone is what Attach returns when the kernel that a Ref names does not run any more.
var ErrGone = errors.New("the kernel is gone")

// Provisioner launches, finds again and stops kernels (jupyter_client, "Customizing the kernel's runtime environment").
// Its methods may be called concurrently.
type Provisioner interface {
	// Name is "docker", "local", …: the same that its Refs carry.
	Name() string

	// Launch starts a shim and its kernel. It returns as soon as the shim can be dialled; the kernel may still be
	// starting, and whether it comes up is the Client's to find out. When Launch fails nothing is left behind, and the
	// error is a *fault.Error: Unavailable with a hint for the operator (no engine, no image, no bwrap, a limit that the
	// host would silently ignore), or Invalid for a Spec that breaks its rules. When ctx ends first, likewise.
	Launch(ctx context.Context, spec Spec) (Handle, error)

	// Attach finds again a kernel that this or an earlier server process launched. It returns ErrGone (wrapped) if it
	// does not run any more, Invalid if the Ref is not one of this provisioner's.
	Attach(ctx context.Context, ref Ref) (Handle, error)

	// List returns everything that this installation launched and that still runs, also what nobody tracks.
	List(ctx context.Context) ([]Ref, error)

	// Health returns nil when Launch could work now, else a *fault.Error whose hint says what the operator must do.
	Health(ctx context.Context) error

	// Capabilities says which limits are really enforced here.
	Capabilities() Capabilities

	// Close releases what the provisioner holds in this process. Kernels go on running.
	Close() error
}

// ImageIdentifier is a Provisioner whose images have names that may come to stand for another image.
type ImageIdentifier interface {
	// ImageID returns what the name stands for now.
	ImageID(ctx context.Context, name string) (string, error)
}

// Allower is a Provisioner that can tell in advance what it would refuse.
type Allower interface {
	// Allows returns why a kernel could not have a Spec's mounts, runtime and devices, or not use them as it says: its kernels may
	// not write to a folder that they shall. A doubt is what may be so, and cannot be known from here, or a limit beyond what the machine has. Whether an engine has the
	// devices shows only at the launch. It may hang, whatever the context says, where a mount's file system does not answer.
	Allows(ctx context.Context, spec Spec) (doubt, err error)
}

// WorkspaceKeeper is a Provisioner that may keep workspaces itself, because kernels share no files with this host:
// Spec.Workspace then only names one by its last element, and what the kernel writes is not there.
type WorkspaceKeeper interface {
	// KeepsWorkspaces tells whether it does so here. The error is Unavailable while that cannot be known.
	KeepsWorkspaces(ctx context.Context) (bool, error)

	// Workspaces names those that it keeps, of all installations that work on the same data folder.
	Workspaces(ctx context.Context) ([]string, error)

	// RemoveWorkspace removes one that no kernel uses any more, with all that is in it. One that is not there is no error.
	RemoveWorkspace(ctx context.Context, name string) error

	// RemoveEmptyWorkspace removes one that no kernel uses any more unless something is in it, and tells whether it is gone.
	RemoveEmptyWorkspace(ctx context.Context, name string) (gone bool, err error)
}

// Handle is one launched kernel. Its methods may be called concurrently.
type Handle interface {
	// Ref names the kernel for a later Attach, also by another process.
	Ref() Ref

	// Dial returns a new connection to the shim's stream. The shim serves one at a time: a new one ends the one before.
	// It fails when the shim is gone.
	Dial(ctx context.Context) (net.Conn, error)

	// Stop ends the kernel and its container or sandbox: politely, then TERM once half of grace is over, then KILL. It
	// returns when nothing of it is left running, and is safe to call again. A zero grace kills at once.
	Stop(ctx context.Context, grace time.Duration) error

	// Exited is closed when the container or sandbox (not only the kernel process) has ended; Status then says how.
	Exited() <-chan struct{}

	// Status says how it ended. Only valid once Exited is closed.
	Status() ExitStatus

	// Logs returns the end of what container and shim logged, at most 16 KB, for a kernel that does not come up.
	Logs(ctx context.Context) string

	// Close releases the handle in this process. The kernel goes on running.
	Close() error
}

// ExitStatus says how a container or sandbox ended.
type ExitStatus struct {
	// Code is the exit code, -1 if not known or ended by a signal.
	Code int
	// Signal is the signal's name, or empty.
	Signal string
	// OOM is true when it was killed for memory.
	OOM bool
	// Asked is true when Stop ended it.
	Asked bool
}

// Ref names a launched kernel: opaque to all but its provisioner, versioned, and fit to be stored.
type Ref struct {
	Provisioner string          `json:"provisioner"`
	Version     int             `json:"version"`
	KernelID    string          `json:"kernel_id"`
	Data        json.RawMessage `json:"data,omitempty"`
}

// Capabilities says what a provisioner enforces on this host. An empty string means "not enforced"; otherwise it says by
// what, for people: "cgroup v2", "RLIMIT_DATA".
type Capabilities struct {
	Memory   string `json:"memory"`
	CPU      string `json:"cpu"`
	PIDs     string `json:"pids"`
	FileSize string `json:"file_size"`
	// Network, Filesystem and Processes are what isolates the kernel from the network, from the host's files, and from
	// the host's and other kernels' processes.
	Network    string `json:"network"`
	Filesystem string `json:"filesystem"`
	Processes  string `json:"processes"`
	// ReportsOOM tells whether a kernel killed for memory is reported as such; where memory is bounded by an rlimit the
	// cell gets a MemoryError instead.
	ReportsOOM bool `json:"reports_oom"`
	// Images tells whether Spec.Image matters.
	Images bool `json:"images"`
	// Cores is how many the machine has that kernels run on, which none gets more than (Limits.On); 0 if that is not known.
	Cores int `json:"cores,omitempty"`
	// UID and GID are who the kernel runs as, on the host: the owner that a workspace folder must have.
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Warnings are sentences for the operator about what is weaker than it should be.
	Warnings []string `json:"warnings,omitempty"`
}

// Dialer is the part of a Handle that a Client needs.
type Dialer interface {
	Dial(ctx context.Context) (net.Conn, error)
	Exited() <-chan struct{}
	Status() ExitStatus
}

// Stats is a sample of a kernel's use of its machine, from its shim.
type Stats = stream.Stats

var _ io.Closer = Handle(nil)
