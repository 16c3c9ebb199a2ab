//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// How long a probe's result holds. A failure holds only as long as it takes to ask again because of it.
const (
	healthyFor   = time.Minute
	unhealthyFor = 2 * time.Second
	probeTimeout = 10 * time.Second
)

// bwrap is the bubblewrap of this host.
type bwrap struct {
	path  string // empty: none
	sized bool   // it can bound a tmpfs
}

func findBwrap(ctx context.Context, program string) bwrap {
	path, err := exec.LookPath(program)
	if err != nil {
		return bwrap{}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	return bwrap{path: path, sized: err == nil && atLeast(string(out), 0, 7)}
}

// atLeast compares a version in a text like "bubblewrap 0.8.0".
func atLeast(text string, major, minor int) bool {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return false
	}
	parts := strings.Split(fields[len(fields)-1], ".")
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

// healthCache keeps what the last probe found.
type healthCache struct {
	mu    sync.Mutex
	err   error
	until time.Time
}

// Health says whether a kernel could be launched now: that the shim is there, and bubblewrap too, which is tried.
func (p *Provisioner) Health(ctx context.Context) error {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	if time.Now().Before(p.health.until) {
		return p.health.err
	}
	err := p.checkHealth(ctx)
	if ended(ctx) != nil {
		return givenUp(ctx, "health")
	}
	p.health.err, p.health.until = err, time.Now().Add(healthyFor)
	if err != nil {
		p.health.until = time.Now().Add(unhealthyFor)
	}
	return err
}

func (p *Provisioner) checkHealth(ctx context.Context) error {
	if err := checkShim(p.cfg.ShimPath); err != nil {
		return err
	}
	if p.cfg.Sandbox == SandboxNone {
		return nil
	}
	if p.bwrap.path == "" {
		if p.bwrap = findBwrap(ctx, p.cfg.Bwrap); p.bwrap.path == "" {
			return fault.New(fault.Unavailable, "bubblewrap (%s) is not installed, which kernels are isolated with", p.cfg.Bwrap).
				WithHint("Install it: %s. Or install Docker or Podman. To run kernels without isolation: --sandbox=none.",
					installHint("bubblewrap", "bubblewrap", "bubblewrap"))
		}
	}
	out, err := p.probe(ctx)
	if err == nil {
		return nil
	}
	return classify(strings.TrimSpace(out), err, readHost(os.ReadFile))
}

func checkShim(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fault.New(fault.Unavailable, "the shim: %w", err).WithHint("It belongs beside the server's program: take it from the same archive, or build both with make build.")
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fault.New(fault.Unavailable, "the shim %s is not a program", path).WithHint("Take it from the server's archive, or build both with make build.")
	}
	return nil
}

// probe runs nothing in a sandbox like a kernel's and returns what bubblewrap said.
func (p *Provisioner) probe(ctx context.Context) (string, error) {
	st := stage{turns: &p.mounts}
	box := p.box(&st, kernels.Limits{})
	child, err := p.contents(&box, nil)
	defer func() {
		for _, f := range child {
			_ = f.Close()
		}
	}()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var out strings.Builder
	cmd := exec.CommandContext(ctx, p.bwrap.path, append(box.args(), "--", "/bin/true")...)
	// What bubblewrap started goes with it, and cannot hold the output when it is gone itself. (--die-with-parent would
	// kill the probe when the thread that started it ends.)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = []string{}, "/", &out, &out, child
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: p.user.credential()}
	if p.stages() {
		err = st.start(ctx, cmd)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	err = cmd.Wait()
	return out.String(), err
}

// host is what is known about a host on which bubblewrap does not work.
type host struct {
	appArmor  bool // AppArmor keeps user namespaces from unprivileged programs (Ubuntu 23.10 and later)
	noClone   bool // Debian's switch against unprivileged user namespaces is set
	noUserns  bool // no user namespace may be made at all
	container bool // the server runs in a container
}

// readHost reads what the kernel's switches say.
func readHost(read func(string) ([]byte, error)) host {
	is := func(path, value string) bool {
		b, err := read(path)
		return err == nil && strings.TrimSpace(string(b)) == value
	}
	exists := func(path string) bool { _, err := read(path); return err == nil }
	return host{
		appArmor:  is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
		noClone:   is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
		noUserns:  is("/proc/sys/user/max_user_namespaces", "0"),
		container: exists("/.dockerenv") || exists("/run/.containerenv"),
	}
}

// appArmorProfile allows bubblewrap, and no other program, what Ubuntu took from all.
const appArmorProfile = `printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\n  userns,\n}\n' | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap`

// classify says why bubblewrap does not work here and what the operator must type.
func classify(out string, err error, h host) *fault.Error {
	if out == "" {
		out = fmt.Sprint(err)
	}
	e := fault.New(fault.Unavailable, "bubblewrap does not work on this host: %s", out)
	switch {
	case h.noUserns:
		return e.WithHint("User namespaces are switched off. Type: sudo sysctl -w user.max_user_namespaces=15000")
	case h.noClone:
		return e.WithHint("User namespaces are switched off for plain users. Type: sudo sysctl -w kernel.unprivileged_userns_clone=1")
	case h.appArmor:
		return e.WithHint("AppArmor keeps user namespaces from bubblewrap. Type: %s", appArmorProfile)
	case h.container:
		return e.WithHint("The container that the server runs in forbids namespaces. Use --provisioner docker with the engine's socket, or run the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined.")
	case strings.Contains(out, "proc"):
		return e.WithHint("Something covers parts of /proc, as container engines do. Run the server outside of a container, or use --provisioner docker.")
	}
	return e.WithHint("Try it by hand: bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev true")
}

// installHint names the commands that install a package, by its name on Debian, Fedora and Arch; only this host's where it
// is one of them.
func installHint(debian, fedora, arch string) string {
	release, _ := os.ReadFile("/etc/os-release")
	return installCommand(string(release), debian, fedora, arch)
}

func installCommand(osRelease, debian, fedora, arch string) string {
	commands := map[string]string{
		"debian": "sudo apt-get install " + debian, "fedora": "sudo dnf install " + fedora, "arch": "sudo pacman -S " + arch,
	}
	for line := range strings.Lines(osRelease) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "ID" && key != "ID_LIKE" {
			continue
		}
		for _, id := range strings.Fields(strings.Trim(value, `"`)) {
			if c, ok := commands[id]; ok {
				return c
			}
		}
	}
	return fmt.Sprintf("%s (Debian, Ubuntu), %s (Fedora), %s (Arch)", commands["debian"], commands["fedora"], commands["arch"])
}
