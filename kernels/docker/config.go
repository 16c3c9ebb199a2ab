// Package docker runs each kernel in a container of a Docker or Podman engine.
//
// The container's first process is the shim, mounted into any image. A container has no network, a read-only root, no
// capabilities, no way to gain privileges, the engine's default seccomp profile, a user that is not root, and the limits
// of its Spec; what the engine did with each is read back at launch, and a limit that it silently ignored is refused.
//
// The shim's stream travels over a Unix socket in a folder that host and container share or, where engine and server
// share no filesystem, over the container's attached stdin and stdout (see Carrier).
package docker

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"cellblock/internal/fault"
)

// Carrier is how the shim's stream reaches the server.
type Carrier string

const (
	// CarrierAuto chooses: socket where the engine runs on this very system, else stdio.
	CarrierAuto Carrier = "auto"
	// CarrierSocket is a Unix socket in a folder that is bind-mounted into the container.
	CarrierSocket Carrier = "socket"
	// CarrierStdio is the container's attached stdin and stdout.
	CarrierStdio Carrier = "stdio"
)

// Files is how a folder of the server appears in the container.
type Files string

const (
	// FilesAuto chooses: bind where the engine sees the server's folders, shared where it runs the server's own container, else volume.
	FilesAuto Files = "auto"
	// FilesBind mounts the server's own folders.
	FilesBind Files = "bind"
	// FilesVolume keeps them in named volumes of the engine.
	FilesVolume Files = "volume"
	// FilesShared mounts folders of the volume that the server's own container has its data in. Only FilesAuto chooses it.
	FilesShared Files = "shared"
)

// DefaultUID is who kernels run as when the server is root and nothing else is configured: above the accounts that
// people get, below what distributions hand out to services, and within the 65,536 ids of a user namespace.
const DefaultUID = 59437

// Config says which engine to use and how. It must not change once given to New.
type Config struct {
	// Host is the engine's address, "unix:///run/docker.sock", "tcp://…" or "npipe://…". Empty: the one that Find picks.
	Host string
	// Installation names this installation in its containers' labels, so that several can share an engine:
	// [A-Za-z0-9._-]{1,64}.
	Installation string
	// RunDir is a folder of the server for the kernels' sockets. It is made if it is missing.
	RunDir string
	// Slot is this process's place among those that use the installation at once. List names the kernels of its slot;
	// Attach finds those of any.
	Slot string
	// Shim is the path of the static cellblock-shim. Where the engine's processor is another one, or the server does not
	// run on Linux, the file Shim + "-linux-" + GOARCH is taken if it exists.
	Shim string
	// Carrier is how the stream travels. Empty means CarrierAuto.
	Carrier Carrier
	// Files is how the workspace and the shim get into the container. Empty means FilesAuto.
	Files Files
	// DataDir is the server's data folder, in which all workspaces are. Empty: it is not known, and shared is no choice.
	DataDir string
	// UID and GID are who kernels run as when the server is root. 0 means DefaultUID. A server that is not root runs them
	// as itself.
	UID, GID int
	// MountRoots are the folders of this host below which all mounts of kernels must lie.
	MountRoots []string
	// Images are the images that Health asks for.
	Images []string
	// AllowUnenforced launches although the engine does not enforce some limit or restriction; Capabilities names it.
	AllowUnenforced bool
	// Logger is told what happens behind the caller's back. Nil means slog.Default.
	Logger *slog.Logger
}

var installationRule = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// check refuses what can never work and fills in what was left out.
func (c Config) check() (Config, error) {
	if !installationRule.MatchString(c.Installation) {
		return c, fault.New(fault.Invalid, "installation %q does not match %s", c.Installation, installationRule)
	}
	switch c.Carrier {
	case "":
		c.Carrier = CarrierAuto
	case CarrierAuto, CarrierSocket, CarrierStdio:
	default:
		return c, fault.New(fault.Invalid, "there is no carrier %q", c.Carrier).WithHint("Use auto, socket or stdio.")
	}
	switch c.Files {
	case "":
		c.Files = FilesAuto
	case FilesAuto, FilesBind, FilesVolume:
	default:
		return c, fault.New(fault.Invalid, "there is no way %q to mount files", c.Files).WithHint("Use auto, bind or volume.")
	}
	if c.UID < 0 || c.GID < 0 {
		return c, fault.New(fault.Invalid, "uid %d, gid %d: neither may be negative", c.UID, c.GID)
	}
	if c.UID == 0 {
		c.UID = DefaultUID
	}
	if c.GID == 0 {
		c.GID = c.UID
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	var err error
	if c.RunDir, err = filepath.Abs(c.RunDir); err != nil {
		return c, fault.New(fault.Invalid, "run folder: %w", err)
	}
	return c, nil
}

// runAs returns who a kernel is on the server's side: the server itself unless that is root. On Windows there is no such
// thing, and the configured user is taken.
func (c Config) runAs() (uid, gid int) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return c.UID, c.GID
	}
	return os.Geteuid(), os.Getegid()
}
