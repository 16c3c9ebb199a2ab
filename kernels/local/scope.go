//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// scope is how the user's systemd makes a kernel's group: systemd-run puts itself into a transient scope with the limits
// and then becomes the program that it was given, under the same pid. The scope goes away with its last process.
type scope struct {
	run         string // systemd-run
	slice       string // the folder in which scopes are made
	controllers []string
	env         []string // what systemd-run needs to find the user's systemd
	more        []string // options that not every systemd knows
}

// scopeProbe bounds how long a systemd that does not answer can hold up the start.
const scopeProbe = 5 * time.Second

// keepOnOOM makes systemd (253 or newer) leave the shim alone when the memory limit has killed its kernel. Older ones do
// not know the property and do not stop scopes for that.
const keepOnOOM = "--property=OOMPolicy=continue"

// probeScope makes a scope with limits and looks whether they hold.
func probeScope(ctx context.Context, t tree) (*scope, error) {
	run, err := exec.LookPath("systemd-run")
	if err != nil {
		return nil, err
	}
	s := &scope{run: run, env: busEnv(os.Getenv), more: []string{keepOnOOM}}
	if len(s.env) == 0 {
		return nil, fmt.Errorf("XDG_RUNTIME_DIR is not set: no systemd of the user's")
	}
	if err = s.probe(ctx, t); err != nil {
		s.more = nil
		err = s.probe(ctx, t)
	}
	return s, err
}

func (s *scope) probe(ctx context.Context, t tree) error {
	ctx, cancel := context.WithTimeout(ctx, scopeProbe)
	defer cancel()
	limits := groupLimits{memory: 64 << 20, pids: 64, cpus: 1}
	argv := append(s.argv("probe-"+strconv.Itoa(os.Getpid()), limits), "/bin/sh", "-c", scopeReport(t.mount))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemd-run: %w: %.200s", err, out)
	}
	return s.read(t, string(out), limits)
}

// busEnv is what systemd-run needs to find the user's systemd.
func busEnv(getenv func(string) string) []string {
	runtime := getenv("XDG_RUNTIME_DIR")
	if runtime == "" {
		return nil
	}
	env := []string{"XDG_RUNTIME_DIR=" + runtime, "PATH=/usr/local/bin:/usr/bin:/bin"}
	if bus := getenv("DBUS_SESSION_BUS_ADDRESS"); bus != "" {
		env = append(env, "DBUS_SESSION_BUS_ADDRESS="+bus)
	}
	return env
}

// argv is the command line that the program to run is appended to.
func (s *scope) argv(unit string, l groupLimits) []string {
	argv := []string{s.run, "--user", "--scope", "--quiet", "--collect", "--slice=" + groupParent + ".slice", "--unit=" + unitName(unit)}
	argv = append(argv, s.more...)
	if l.memory > 0 {
		argv = append(argv, "--property=MemoryMax="+strconv.FormatInt(l.memory, 10), "--property=MemorySwapMax=0")
	}
	if l.cpus > 0 {
		argv = append(argv, fmt.Sprintf("--property=CPUQuota=%d%%", max(1, int(l.cpus*100))))
	}
	if l.pids > 0 {
		argv = append(argv, "--property=TasksMax="+strconv.FormatInt(l.pids, 10))
	}
	return append(argv, "--")
}

// unitName names a kernel's scope, without systemd's suffix.
func unitName(id string) string { return groupParent + "-" + id }

// scopeReport is a script that prints the scope's place and then the limits that arrived there.
func scopeReport(mount string) string {
	return `p=$(sed -n s/^0:://p /proc/self/cgroup); echo "$p"; cd '` + mount + `'"$p" && for f in memory.max memory.swap.max cpu.max pids.max; do echo "$f $(cat $f 2>&-)"; done`
}

// read takes over what scopeReport printed.
func (s *scope) read(t tree, out string, want groupLimits) error {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	got := map[string]string{}
	for _, line := range lines[1:] {
		file, value, _ := strings.Cut(line, " ")
		got[file] = value
	}
	for _, name := range controllers {
		all := settings(2, name, want)
		held := len(all) > 0
		for _, set := range all {
			held = held && (set.holds(got[set.file]) || set.optional && got[set.file] == "")
		}
		if held {
			s.controllers = append(s.controllers, name)
		}
	}
	if len(s.controllers) == 0 {
		return fmt.Errorf("systemd made a scope without limits: %.200q", out)
	}
	s.slice = filepath.Dir(t.dir(lines[0]))
	return nil
}

// dir is the folder of a kernel's scope.
func (s *scope) dir(prefix, id string) groupDir {
	return groupDir{Path: filepath.Join(s.slice, unitName(prefix+"-"+id)+".scope"), Version: 2, Controllers: s.controllers}
}
