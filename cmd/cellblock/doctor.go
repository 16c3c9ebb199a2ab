package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/kernels/docker"
	"cellblock/kernels/local"
	"cellblock/kernels/mounts"
	"cellblock/sessions/history"
	"cellblock/sessions/workspaces"
)

// finding is one line of doctor's report.
type finding struct {
	name string
	// found says what is there; err what is missing, with its hint.
	found string
	err   error
	notes []string
}

func newDoctor() *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is here to run kernels, what is missing, and what to type",
		Long: `Looks at everything that kernels need on this machine and says what is there, what is missing, and what to type. Exit
status 0 when a server can be started, and kernels run. With --check, looks at one thing only: its exit status tells whether that is there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			d := doctor{cfg: cfg, logger: slog.New(slog.DiscardHandler), looks: map[string]finding{}}
			if only != "" {
				return d.check(cmd.Context(), only)
			}
			return d.report(cmd.Context(), cmd.OutOrStdout())
		},
	}
	addServerFlags(cmd)
	cmd.Flags().StringVar(&only, "check", "", "look at one thing only: "+strings.Join(checkNames, ", "))
	return cmd
}

// doctor examines this machine.
type doctor struct {
	cfg    *Config
	logger *slog.Logger
	// looks are what the checks have found that were made: an engine is slow to answer, and several ask for the same.
	looks map[string]finding
}

var checkNames = []string{"shim", "engine", "image", "sandbox", "python", "kernels", "profiles", "data", "pool", "tokens"}

func (d doctor) checks() map[string]func(context.Context) finding {
	return map[string]func(context.Context) finding{
		"shim": d.shim, "engine": d.engine, "image": d.image, "sandbox": d.sandbox, "python": d.python, "kernels": d.kernels, "data": d.data, "pool": d.pool,
		"tokens": d.tokens, "profiles": d.profiles,
	}
}

func (d doctor) check(ctx context.Context, name string) error {
	if !slices.Contains(checkNames, name) {
		return fault.New(fault.Invalid, "there is no check %q", name).WithHint("Use one of: %s.", strings.Join(checkNames, ", "))
	}
	return d.look(ctx, name).err
}

// look is what a check finds, which is made once.
func (d doctor) look(ctx context.Context, name string) finding {
	f, done := d.looks[name]
	if !done {
		f = d.checks()[name](ctx)
		d.looks[name] = f
	}
	return f
}

func (d doctor) report(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "cellblock %s\n\n", version)
	ok := map[string]bool{}
	for _, name := range checkNames {
		f := d.look(ctx, name)
		ok[name] = f.err == nil
		f.print(w)
	}
	fmt.Fprintln(w)
	switch containers := d.inContainers(ctx); {
	case ok["shim"] && ok["engine"] && ok["image"] && containers:
		fmt.Fprintln(w, "Kernels will run in containers.")
	case ok["shim"] && ok["sandbox"] && ok["kernels"] && !containers:
		fmt.Fprintln(w, "Kernels will run in the sandbox.")
	case ok["shim"] && d.cfg.Provisioner == "auto" && containers:
		keys := d.cfg.namesEngine()
		return fault.New(fault.Unavailable, "kernels cannot run in containers, as %s says they shall", strings.Join(keys, " and ")).
			WithHint("Follow the arrow of engine or image above. %s", sandboxHint(keys))
	default:
		return fault.New(fault.Unavailable, "nothing here can run kernels").WithHint("Follow one of the arrows above.")
	}
	if !ok["data"] {
		return fault.New(fault.Unavailable, "a server that is started here cannot use its folders").WithHint("Follow the arrow of data above.")
	}
	if !ok["tokens"] {
		return fault.New(fault.Unavailable, "a server that is started here accepts no tokens").WithHint("Follow the arrow of tokens above.")
	}
	if !ok["profiles"] {
		return fault.New(fault.Unavailable, "a server that is started here cannot give sessions all profiles").WithHint("Follow the arrow of profiles above.")
	}
	return nil
}

// inContainers tells whether kernels will run in containers, or in nothing; else it is the sandbox.
func (d doctor) inContainers(ctx context.Context) bool {
	switch {
	case d.cfg.Provisioner == "local":
		return false
	case d.cfg.Provisioner == "docker" || d.cfg.namesEngine() != nil:
		return true
	}
	return d.look(ctx, "engine").err == nil && d.look(ctx, "image").err == nil
}

func (f finding) print(w io.Writer) {
	mark, text := "ok  ", f.found
	if f.err != nil {
		mark, text = "--  ", f.err.Error()
	}
	fmt.Fprintf(w, "%s%-9s %s\n", mark, f.name, text)
	if hint := fault.Hint(f.err); hint != "" {
		fmt.Fprintf(w, "%13s -> %s\n", "", strings.ReplaceAll(hint, "\n", "\n"+strings.Repeat(" ", 17)))
	}
	for _, note := range f.notes {
		fmt.Fprintf(w, "%14s%s\n", "", note)
	}
}

func (d doctor) shim(context.Context) finding {
	path, err := findShim(d.cfg.Shim)
	f := finding{name: "shim", found: path, err: err}
	if err == nil {
		if doubt := shimDoubt(path); doubt != "" {
			f.notes = append(f.notes, doubt)
		}
	}
	return f
}

func (d doctor) python(ctx context.Context) finding {
	p, err := findPython(ctx, d.cfg.Python)
	f := finding{name: "python", err: err}
	if err == nil {
		f.found = fmt.Sprintf("%s: Python %s, ipykernel %s", p.Path, p.Version, p.Kernel)
		if len(p.Missing) > 0 {
			f.notes = []string{"without " + strings.Join(p.Missing, ", ") + ": models will miss them"}
		}
	}
	return f
}

// engine asks only whether an engine answers and holds its limits, image whether it has what kernels run in.
func (d doctor) engine(ctx context.Context) finding {
	f := finding{name: "engine"}
	p, where, err := d.docker(ctx)
	if err != nil {
		if f.err = err; d.cfg.Docker.Host == "" && os.Getenv(engineVariable) == "" {
			f.notes = []string{"looked for: " + strings.Join(docker.Sockets(), ", ")}
		}
		return f
	}
	defer p.Close()
	if f.err = p.Health(ctx); f.err == nil {
		f.found, f.notes = where, enforced(p.Capabilities())
	}
	return f
}

// image says which languages the engine's images bring.
func (d doctor) image(ctx context.Context) finding {
	f := finding{name: "image"}
	p, _, err := d.docker(ctx)
	if err != nil {
		f.err = fault.New(fault.Unavailable, "no engine to look for images in")
		return f
	}
	defer p.Close()
	look := &imageLanguages{library: p, named: d.cfg.Images, known: openKernelspecCache("")}
	set, err := look.find(ctx)
	if err != nil {
		f.err = err
		return f
	}
	var found []string
	for _, l := range set.All() {
		found = append(found, fmt.Sprintf("%s (%s)", l.Name, l.Image))
	}
	f.found = strings.Join(found, ", ")
	for _, problem := range look.problems {
		f.notes = append(f.notes, problem.Error())
	}
	if d.cfg.Provisioner != "local" {
		f.notes = append(f.notes, d.absent(set)...)
	}
	if missing := missingTargets(set); len(missing) > 0 {
		f.notes = append(f.notes, "more languages: make image TARGETS=\""+strings.Join(missing, " ")+"\"")
	}
	return f
}

// absent says which languages there are settings for, and that do not run where kernels will.
func (d doctor) absent(here *images.Set) (notes []string) {
	for _, name := range d.cfg.absent(here.Names()) {
		notes = append(notes, fmt.Sprintf("languages.%s: there are settings for a language that does not run here. %s", name, absentHint(name, here.Names())))
	}
	return notes
}

// missingTargets are the images of ours that would bring languages which are not there.
func missingTargets(set *images.Set) []string {
	var targets []string
	for _, ours := range images.AllOurs() {
		if _, err := set.Lookup(ours.Name); err != nil && !slices.Contains(targets, ours.Target) {
			targets = append(targets, ours.Target)
		}
	}
	return targets
}

// kernels says which languages have a kernel on this host, for the sandbox.
func (d doctor) kernels(ctx context.Context) finding {
	f := finding{name: "kernels"}
	host, err := findHostLanguages(ctx, d.cfg)
	if err != nil {
		f.err = fault.New(fault.Unavailable, "no kernel on this host").WithHint("%s", fault.Hint(err))
		return f
	}
	p, done, err := d.local(host.readPaths())
	if err != nil {
		f.err = err
		return f
	}
	defer done()
	set, err := host.usable(p.Check)
	if err != nil {
		f.err = err
		return f
	}
	f.found = strings.Join(set.Names(), ", ")
	for _, problem := range host.problems {
		f.notes = append(f.notes, problem.Error())
	}
	if !d.inContainers(ctx) { // else kernels run in images
		f.notes = append(f.notes, d.absent(set)...)
	}
	f.notes = append(f.notes, missingKernels(set)...)
	return f
}

// missingKernels says what to type for the languages that have no kernel on this host.
func missingKernels(set *images.Set) []string {
	var missing []string
	for _, ours := range images.AllOurs() {
		if _, err := set.Lookup(ours.Name); err != nil && ours.Name != "python" { // of which another line tells
			missing = append(missing, ours.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{"more languages: make kernels (" + strings.Join(missing, ", ") + ")"}
}

func (d doctor) docker(ctx context.Context) (*docker.Provisioner, string, error) {
	host, kind, err := d.cfg.engineHost(ctx)
	if err != nil {
		return nil, "", err
	}
	runDir, err := os.MkdirTemp("", "cb")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(runDir)
	shim, err := findShim(d.cfg.Shim)
	if err != nil {
		return nil, "", err
	}
	p, err := docker.New(docker.Config{
		Host: host, Installation: "doctor", RunDir: runDir, Shim: shim, UID: d.cfg.KernelUID, GID: d.cfg.KernelGID,
		MountRoots: d.cfg.MountRoots, AllowUnenforced: d.cfg.AllowUnenforced, Logger: d.logger,
	})
	return p, cmp.Or(kind, "engine") + " at " + host, err
}

func (d doctor) sandbox(ctx context.Context) finding {
	f := finding{name: "sandbox"}
	p, done, err := d.local(nil)
	if err != nil {
		f.err = err
		return f
	}
	defer done()
	if f.err = p.Health(ctx); f.err == nil {
		f.found, f.notes = "bubblewrap", enforced(p.Capabilities())
		if d.cfg.Sandbox == "none" {
			f.found = "NONE: kernels are not isolated from this host"
		}
	}
	return f
}

// local is the provisioner of sandboxes, which shows them some paths; done ends it.
func (d doctor) local(readOnly []string) (p *local.Provisioner, done func(), err error) {
	shim, err := findShim(d.cfg.Shim)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "cb")
	if err != nil {
		return nil, nil, err
	}
	p, err = local.New(local.Config{
		StateDir: filepath.Join(dir, "s"), RunDir: filepath.Join(dir, "r"), ShimPath: shim, ReadOnlyPaths: readOnly,
		Sandbox: local.Sandbox(d.cfg.Sandbox), UID: d.cfg.KernelUID, GID: d.cfg.KernelGID,
		MountRoots: d.cfg.MountRoots, AllowUnenforced: d.cfg.AllowUnenforced, Logger: d.logger,
	})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, func() { _, _ = p.Close(), os.RemoveAll(dir) }, nil
}

func (d doctor) data(ctx context.Context) finding {
	found := make(chan finding, 1)
	if err := mounts.Patiently(func() error { found <- d.folders(ctx); return nil }); err != nil {
		return finding{name: "data", err: err}
	}
	return <-found
}

// folders looks at those that the server writes to, which may hang.
func (d doctor) folders(ctx context.Context) finding {
	f := finding{name: "data", found: d.cfg.DataDir}
	there, err := probeFolder(d.cfg.DataDir)
	if err == nil {
		_, err = probeFolder(d.cfg.RunDir)
	}
	if err != nil {
		f.err = fault.New(fault.Unavailable, "%w", err).WithHint("Choose folders that this user may write: --data-dir, --run-dir.")
		return f
	}
	if _, err := os.Stat(d.cfg.DataDir); err != nil {
		f.found += ", which the server will make"
	}
	f.err = history.Check(ctx, d.cfg.DataDir)
	f.notes = d.workspaceBound(there)
	return f
}

// probeFolder tries whether this user may write in a folder, or make it, and returns the folder that is there.
func probeFolder(folder string) (there string, err error) {
	if there, err = nearestFolder(folder); err != nil {
		return "", err
	}
	probe, err := os.CreateTemp(there, ".doctor-*")
	if err != nil {
		return "", err
	}
	_ = probe.Close()
	return there, os.Remove(probe.Name())
}

// nearestFolder is the folder itself or, where it is not there yet, the one above it in which it would be made.
func nearestFolder(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for {
		info, err := os.Stat(folder)
		switch above := filepath.Dir(folder); {
		case err == nil && !info.IsDir():
			return "", &fs.PathError{Op: "mkdir", Path: folder, Err: syscall.ENOTDIR}
		case err == nil:
			return folder, nil
		case !errors.Is(err, fs.ErrNotExist) || above == folder:
			return "", err
		default:
			folder = above
		}
	}
}

// workspaceBound says what bounds the size of workspaces below a folder.
func (d doctor) workspaceBound(folder string) []string {
	limit := int64(d.cfg.Sessions.WorkspaceMaxBytes)
	if limit == 0 {
		return []string{"workspaces: NOT LIMITED (sessions.workspace_max_bytes)"}
	}
	most := "workspaces: " + words.Bytes(limit) + " each, "
	if err := workspaces.CheckQuota(folder); err != nil {
		return []string{most + "measured while cells run, so that one may get somewhat larger", err.Error()}
	}
	return []string{most + "by project quota"}
}

// pool says what is kept ready; how much of it there is, the health of a running server tells.
func (d doctor) pool(context.Context) finding {
	f := finding{name: "pool", found: fmt.Sprintf("%d ready for each language", d.cfg.PoolSize)}
	if d.cfg.PoolSize == 0 {
		f.found = "no kernel is kept ready (pool_size)"
	}
	if len(d.cfg.PoolPreload) > 0 {
		f.notes = []string{"with " + strings.Join(d.cfg.PoolPreload, ", ") + " imported"}
	}
	return f
}

// enforced says what holds each limit, and what none does.
func enforced(c kernels.Capabilities) []string {
	var notes, missing []string
	for _, limit := range []struct{ name, by string }{
		{"memory", c.Memory}, {"cpu", c.CPU}, {"pids", c.PIDs}, {"file size", c.FileSize},
		{"network", c.Network}, {"files", c.Filesystem}, {"processes", c.Processes},
	} {
		if limit.by == "" {
			missing = append(missing, limit.name)
			continue
		}
		notes = append(notes, fmt.Sprintf("%s: %s", limit.name, limit.by))
	}
	if len(missing) > 0 {
		notes = append(notes, "NOT LIMITED: "+strings.Join(missing, ", "))
	}
	return slices.Concat(notes, c.Warnings)
}
