package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/kernels/docker"
	"cellblock/kernels/local"
	"cellblock/sessions"
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
status 0 when kernels can be run. With --check, looks at one thing only: its exit status tells whether that is there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			d := doctor{cfg: cfg, logger: slog.New(slog.DiscardHandler)}
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
}

var checkNames = []string{"shim", "engine", "image", "sandbox", "python", "data", "pool", "tokens"}

func (d doctor) checks() map[string]func(context.Context) finding {
	return map[string]func(context.Context) finding{
		"shim": d.shim, "engine": d.engine, "image": d.image, "sandbox": d.sandbox, "python": d.python, "data": d.data, "pool": d.pool,
		"tokens": d.tokens,
	}
}

func (d doctor) check(ctx context.Context, name string) error {
	look, ok := d.checks()[name]
	if !ok {
		return fault.New(fault.Invalid, "there is no check %q", name).WithHint("Use one of: %s.", strings.Join(checkNames, ", "))
	}
	return look(ctx).err
}

func (d doctor) report(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "cellblock %s\n\n", version)
	ok := map[string]bool{}
	for _, name := range checkNames {
		f := d.checks()[name](ctx)
		ok[name] = f.err == nil
		f.print(w)
	}
	fmt.Fprintln(w)
	switch containers, sandbox := ok["engine"] && ok["image"], ok["sandbox"] && ok["python"]; {
	case ok["shim"] && containers && d.cfg.Provisioner != "local":
		fmt.Fprintln(w, "Kernels will run in containers.")
	case ok["shim"] && sandbox && d.cfg.Provisioner != "docker":
		fmt.Fprintln(w, "Kernels will run in the sandbox.")
	default:
		return fault.New(fault.Unavailable, "nothing here can run kernels").WithHint("Follow one of the arrows above.")
	}
	if !ok["tokens"] {
		return fault.New(fault.Unavailable, "a server that is started here accepts no tokens").WithHint("Follow the arrow of tokens above.")
	}
	return nil
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
	return finding{name: "shim", found: path, err: err}
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
	p, where, err := d.docker(ctx, nil)
	if err != nil {
		if f.err = err; d.cfg.Docker.Host == "" && os.Getenv("DOCKER_HOST") == "" {
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

func (d doctor) image(ctx context.Context) finding {
	f := finding{name: "image"}
	catalogue, err := images.New(d.cfg.Images)
	if err != nil {
		f.err = err
		return f
	}
	var wanted []string
	for _, l := range catalogue.All() {
		wanted = append(wanted, l.Image)
	}
	f.found = strings.Join(wanted, ", ")
	p, _, err := d.docker(ctx, wanted)
	if err != nil {
		f.err = fault.New(fault.Unavailable, "%s: no engine to look in", f.found)
		return f
	}
	defer p.Close()
	f.err = p.Health(ctx)
	return f
}

func (d doctor) docker(ctx context.Context, wanted []string) (*docker.Provisioner, string, error) {
	host, kind := d.cfg.Docker.Host, "engine"
	if host == "" {
		var err error
		if host, kind, err = docker.Find(ctx); err != nil {
			return nil, "", err
		}
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
		AllowUnenforced: d.cfg.AllowUnenforced, Images: wanted, Logger: d.logger,
	})
	return p, kind + " at " + host, err
}

func (d doctor) sandbox(ctx context.Context) finding {
	f := finding{name: "sandbox"}
	shim, err := findShim(d.cfg.Shim)
	if err != nil {
		f.err = err
		return f
	}
	dir, err := os.MkdirTemp("", "cb")
	if err != nil {
		f.err = err
		return f
	}
	defer os.RemoveAll(dir)
	p, err := local.New(local.Config{
		StateDir: filepath.Join(dir, "s"), RunDir: filepath.Join(dir, "r"), ShimPath: shim,
		Sandbox: local.Sandbox(d.cfg.Sandbox), UID: d.cfg.KernelUID, GID: d.cfg.KernelGID,
		AllowUnenforced: d.cfg.AllowUnenforced, Logger: d.logger,
	})
	if err != nil {
		f.err = err
		return f
	}
	defer p.Close()
	if f.err = p.Health(ctx); f.err == nil {
		f.found, f.notes = "bubblewrap", enforced(p.Capabilities())
		if d.cfg.Sandbox == "none" {
			f.found = "NONE: kernels are not isolated from this host"
		}
	}
	return f
}

func (d doctor) data(context.Context) finding {
	f := finding{name: "data", found: d.cfg.DataDir}
	if err := makeDirs(d.cfg); err != nil {
		f.err = err
		return f
	}
	probe, err := os.CreateTemp(d.cfg.DataDir, ".doctor-*")
	if err != nil {
		f.err = fault.New(fault.Unavailable, "%w", err).WithHint("Choose a folder that this user may write: --data-dir.")
		return f
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	f.notes = d.workspaceBound()
	return f
}

// workspaceBound says what bounds the size of workspaces.
func (d doctor) workspaceBound() []string {
	limit := int64(d.cfg.Sessions.WorkspaceMaxBytes)
	if limit == 0 {
		return []string{"workspaces: NOT LIMITED (sessions.workspace_max_bytes)"}
	}
	most := "workspaces: " + words.Bytes(limit) + " each, "
	if err := sessions.CheckQuota(d.cfg.DataDir); err != nil {
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
