//go:build linux

package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cellblock/internal/timerslack"
	"cellblock/kernels/seccomp"
	"cellblock/kernels/stream"
)

// LaunchArg as the first argument makes the shim's binary the one that becomes the kernel: see Launch.
const LaunchArg = "launch"

// statusFD is where Launch says what went wrong. A successful exec closes it.
const statusFD = 3

// exitNotLaunched is the exit code of a Launch that failed, the shell's for a command that cannot be run.
const exitNotLaunched = 127

// launchSpec is Launch's argument. The environment is the kernel's already.
type launchSpec struct {
	Argv    []string       `json:"argv"`
	Dir     string         `json:"dir"`
	Rlimits stream.Rlimits `json:"rlimits"`
	Seccomp bool           `json:"seccomp"`
}

// Launch turns this process into the kernel that arg describes. What a kernel must have and its shim must not (limits,
// the OOM killer's preference) can only be set between fork and exec, where Go lets nobody run: so the shim starts
// itself, and this is that. It returns an exit code if it fails.
func Launch(arg string) int {
	unix.CloseOnExec(statusFD)
	err := launch(arg)
	_, _ = unix.Write(statusFD, []byte(err.Error()))
	return exitNotLaunched
}

func launch(arg string) error {
	var s launchSpec
	if err := json.Unmarshal([]byte(arg), &s); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	if err := os.Chdir(s.Dir); err != nil {
		return fmt.Errorf("the kernel's working directory: %w", err)
	}
	path, err := lookPath(s.Argv[0], os.Getenv("PATH"))
	if err != nil {
		return err
	}
	// The OOM killer shall take the kernel, not the shim that reports it, and before the kernel what that offers: a copy that saves its
	// variables. Raising one's own is always allowed, but /proc may be read-only.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0)
	runtime.LockOSThread()   // what follows is a thread's, and must be that of exec
	_ = timerslack.Restore() // gVisor has none, and then none was widened
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := resetSignals(); err != nil {
		return fmt.Errorf("signal mask: %w", err)
	}
	env := os.Environ()
	if err := setRlimits(s.Rlimits); err != nil {
		return err
	}
	if s.Seccomp { // last: the kernel is what needs no more than it leaves
		if err := seccomp.Install(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, s.Argv, env))
}

// resetSignals gives the kernel default dispositions and an empty mask, whatever the shim was started with: a shell that
// starts something in the background, for example, lets it ignore SIGINT, and the kernel could not be interrupted.
// Signals that are caught return to default at exec; ignored ones would stay.
func resetSignals() error {
	signal.Notify(make(chan os.Signal, 1))
	if err := setThreadSignals(signalDefault); err != nil {
		return err
	}
	return unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil)
}

// setRlimits sets soft and hard limits. The order matters little: only exec follows. A core file, as large as the kernel
// was, would only fill the workspace.
func setRlimits(r stream.Rlimits) error {
	if err := syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("RLIMIT_CORE 0: %w", err)
	}
	for _, l := range []struct {
		name     string
		resource int
		value    int64
	}{
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, r.FileSize},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, r.Files},
		{"RLIMIT_NPROC", unix.RLIMIT_NPROC, r.PIDs},
		{"RLIMIT_DATA", unix.RLIMIT_DATA, r.Data},
	} {
		if l.value == 0 {
			continue
		}
		v := uint64(l.value)
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: v, Max: v}); err != nil {
			return fmt.Errorf("%s %d: %w", l.name, l.value, err)
		}
	}
	return nil
}

// errNotFound is the error of a command that is in no folder of PATH.
var errNotFound = errors.New("no such command in PATH")

// lookPath finds name as execvp(3) does: in the folders of path unless it holds a slash.
func lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: %w %s", name, errNotFound, path)
}
