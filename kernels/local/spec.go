//go:build linux

package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// maxConfig bounds the shim's configuration, which travels as one environment variable (execve(2): 128 KiB).
const maxConfig = 120 << 10

// checkSpec refuses a Spec that breaks its rules.
func (p *Provisioner) checkSpec(spec kernels.Spec) error {
	switch k := spec.Kernelspec; {
	case !idRule.MatchString(spec.ID):
		return fault.New(fault.Invalid, "kernel id %q does not match %s", spec.ID, idRule)
	case len(k.Argv) == 0 || k.Argv[0] == "":
		return fault.New(fault.Invalid, "kernelspec %q has no argv", k.Name)
	case k.Transport != "" && k.Transport != "ipc" && k.Transport != "tcp":
		return fault.New(fault.Invalid, "kernelspec %q: transport %q is neither ipc nor tcp", k.Name, k.Transport)
	case k.InterruptMode != "" && k.InterruptMode != "signal" && k.InterruptMode != "message":
		return fault.New(fault.Invalid, "kernelspec %q: interrupt mode %q is neither signal nor message", k.Name, k.InterruptMode)
	}
	for _, env := range []map[string]string{spec.Kernelspec.Env, spec.Env} {
		if err := checkEnv(env); err != nil {
			return err
		}
	}
	if err := p.checkWorkspace(spec.Workspace); err != nil {
		return err
	}
	return p.checkProgram(spec.Kernelspec)
}

func checkEnv(env map[string]string) error {
	for k, v := range env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return fault.New(fault.Invalid, "environment variable %q: a name holds no '=', and neither name nor value a NUL", k)
		}
	}
	return nil
}

// checkWorkspace makes sure that the workspace is what the Spec promises: a folder, not a link to one, of the kernel's
// user.
func (p *Provisioner) checkWorkspace(path string) error {
	if !filepath.IsAbs(path) {
		return fault.New(fault.Invalid, "workspace %q is not an absolute path", path)
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return fault.New(fault.Invalid, "workspace: %w", err)
	case !info.IsDir():
		return fault.New(fault.Invalid, "workspace %s is not a folder", path)
	case !p.user.owns(info):
		return fault.New(fault.Invalid, "workspace %s does not belong to uid %d, which kernels run as", path, p.user.uid)
	}
	return nil
}

// Check returns why kernels of a kernelspec cannot be launched here, without trying: its program is missing, or is not
// where the sandbox shows it. The error is Unavailable, and its hint says what to do.
func (p *Provisioner) Check(k kernels.Kernelspec) error { return p.checkProgram(k) }

// checkProgram makes sure that there is the program that a kernelspec starts, where the kernel will see it.
func (p *Provisioner) checkProgram(k kernels.Kernelspec) error {
	program, err := p.findProgram(k.Argv[0])
	if err != nil {
		return fault.New(fault.Unavailable, "kernel %s: no program %q on this host", k.Name, k.Argv[0]).
			WithHint("%s", kernelHint(k.Language))
	}
	if p.cfg.Sandbox == SandboxNone {
		return nil
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return fault.New(fault.Unavailable, "kernel %s: %w", k.Name, err)
	}
	for _, path := range []string{program, real} {
		if !p.system.shows(path, p.cfg.ReadOnlyPaths) {
			return fault.New(fault.Unavailable, "kernel %s: the sandbox does not show %s", k.Name, path).
				WithHint("Add the folder that it belongs to to the read-only paths of the local provisioner.")
		}
	}
	return nil
}

func (p *Provisioner) findProgram(program string) (string, error) {
	if strings.Contains(program, "/") {
		return exec.LookPath(program)
	}
	for _, dir := range filepath.SplitList(searchPath(p.cfg.ReadOnlyPaths)) {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// kernelHint says where a language's kernel comes from.
func kernelHint(language string) string {
	switch language {
	case "python":
		return "Install it: " + installHint("python3-ipykernel", "python3-ipykernel", "python-ipykernel") + ", or name an interpreter that has ipykernel."
	case "r":
		return "Install it: " + installHint("r-cran-irkernel", "R-IRkernel", "r") + "."
	}
	return "Install the kernel's program, or correct the kernelspec's argv."
}

// specLimits is what cgroups are to hold of a kernel's limits.
func specLimits(l kernels.Limits) groupLimits {
	return groupLimits{memory: l.Memory, pids: l.PIDs, cpus: l.CPUs}
}

// rlimits is what remains for the kernel process itself to hold.
func (p *Provisioner) rlimits(l kernels.Limits) stream.Rlimits {
	r := stream.Rlimits{FileSize: l.FileSize, Files: l.Files}
	if p.cgroups.by(memory) == "" {
		r.Data = l.Memory
	}
	if p.cgroups.by(pids) == "" && p.boundsByRlimit() {
		r.PIDs = l.PIDs
	}
	return r
}

// boundsByRlimit tells whether RLIMIT_NPROC can stand in for a cgroup.
func (p *Provisioner) boundsByRlimit() bool { return p.nproc && p.cfg.Sandbox != SandboxNone }

// shimConfig is what the shim is told; dir, run, home and cgroup are as it sees them.
func (p *Provisioner) shimConfig(spec kernels.Spec, place shimPlace) stream.Config {
	k := spec.Kernelspec
	c := stream.Config{
		KernelID: spec.ID, Listen: listenFD, Argv: k.Argv, Dir: place.dir, RunDir: place.run, CgroupDir: place.cgroup,
		Env:       kernelEnv(place.home, searchPath(p.cfg.ReadOnlyPaths), spec.Limits.CPUs, k.Env, spec.Env),
		Transport: "ipc", InterruptMode: "signal", Waits: k.Waits, Rlimits: p.rlimits(spec.Limits),
		PeerOutside: p.cfg.Sandbox != SandboxNone, PatienceMS: spec.Patience.Milliseconds(),
	}
	if spec.Egress && p.cfg.Sandbox != SandboxNone { // without a sandbox the network is the host's, and so are its ports
		c.Egress = &stream.Egress{Proxy: stream.DefaultProxyPort, Authorities: spec.Authorities}
	}
	if k.Transport != "" {
		c.Transport = k.Transport
	}
	if k.InterruptMode != "" {
		c.InterruptMode = k.InterruptMode
	}
	return c
}

// shimPlace is where things are for a shim.
type shimPlace struct{ dir, run, home, cgroup string }
