package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cellblock/images"
	"cellblock/images/derived"
	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/docker"
	"cellblock/kernels/local"
	"cellblock/sessions"
)

// backend is what runs kernels, and what each language runs as on it.
type backend struct {
	kernels.Provisioner
	runtimes map[string]sessions.Runtime
	// images is the engine whose images kernels run in, bases are those that others can be made of; none for sandboxes.
	images *docker.Provisioner
	bases  []derived.Base
	// where says in a few words what kernels run in.
	where string
}

// chooseBackend picks the provisioner that the configuration names. "auto" takes an engine that answers and has the
// image, else the sandbox on this host, and says why; nothing stands in for an engine or an image that somebody has named. Kernels
// are launched under the name of the process's slot.
func chooseBackend(ctx context.Context, cfg *Config, slot string, logger *slog.Logger) (*backend, error) {
	switch cfg.Provisioner {
	case "docker":
		return dockerBackend(ctx, cfg, slot, logger)
	case "local":
		return localBackend(ctx, cfg, slot, logger)
	}
	engine, engineErr := dockerBackend(ctx, cfg, slot, logger)
	if engineErr == nil {
		return engine, nil
	}
	if named := cfg.namesEngine(); named != nil {
		return nil, notInstead(named, engineErr)
	}
	sandbox, sandboxErr := localBackend(ctx, cfg, slot, logger)
	if sandboxErr == nil {
		logger.Info("kernels run in the sandbox: " + engineErr.Error())
		logger.Debug("no container engine is used", "tried", docker.Sockets(), "hint", fault.Hint(engineErr))
		return sandbox, nil
	}
	err := fault.New(fault.Unavailable, "nothing here can run kernels: %v; %v", sandboxErr, engineErr)
	hints := slices.DeleteFunc([]string{fault.Hint(sandboxErr), fault.Hint(engineErr)}, func(h string) bool { return h == "" })
	return nil, err.WithHint("%s", strings.Join(hints, "\nOr: "))
}

// engineVariable names an engine to all programs of a user, where the configuration names none to this one.
const engineVariable = "DOCKER_HOST"

// namesEngine are the settings by which somebody says that kernels shall run in an engine's containers: its address, images.
func (c *Config) namesEngine() (keys []string) {
	switch {
	case c.Docker.Host != "":
		keys = append(keys, "docker.host")
	case os.Getenv(engineVariable) != "":
		keys = append(keys, engineVariable)
	}
	for _, language := range slices.Sorted(maps.Keys(c.Images)) {
		if c.Images[language] != "" {
			keys = append(keys, "images."+language)
		}
	}
	return keys
}

// notInstead is the error of an engine that cannot be used, where settings name it or its images: the sandbox isolates less.
func notInstead(keys []string, err error) error {
	hints := slices.DeleteFunc([]string{fault.Hint(err), sandboxHint(keys)}, func(h string) bool { return h == "" })
	return fault.New(fault.KindOf(err), "%w", err).WithHint("%s", strings.Join(hints, "\n"))
}

// sandboxHint says how kernels come to run in the sandbox where settings name an engine or its images.
func sandboxHint(keys []string) string {
	var ways []string
	settings := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == engineVariable })
	if len(settings) < len(keys) {
		ways = append(ways, "unset "+engineVariable)
	}
	if len(settings) > 0 {
		ways = append(ways, "take "+strings.Join(settings, " and ")+" out of the configuration")
	}
	return fmt.Sprintf("To run kernels in the sandbox, %s, or use --provisioner local.", strings.Join(ways, " and "))
}

// engineHost is the container engine of the configuration, or, where that names none, the one that is found, and of which kind that is.
func (c *Config) engineHost(ctx context.Context) (host, kind string, err error) {
	if c.Docker.Host != "" {
		return c.Docker.Host, "", nil
	}
	return docker.Find(ctx)
}

func dockerBackend(ctx context.Context, cfg *Config, slot string, logger *slog.Logger) (*backend, error) {
	shim, err := findShim(cfg.Shim)
	if err != nil {
		return nil, err
	}
	installation, err := installationID(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	host, kind, err := cfg.engineHost(ctx)
	if err != nil {
		return nil, err
	}
	where := "containers of " + host
	if kind != "" {
		where = kind + " containers"
	}
	p, err := docker.New(docker.Config{
		Host: host, Carrier: docker.Carrier(cfg.Docker.Carrier), Files: docker.Files(cfg.Docker.Files), Installation: installation, Slot: slot,
		DataDir: cfg.DataDir, Shim: shim, RunDir: filepath.Join(cfg.RunDir, "d"), UID: cfg.KernelUID, GID: cfg.KernelGID,
		MountRoots: cfg.MountRoots, AllowUnenforced: cfg.AllowUnenforced, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	set, bases, err := engineLanguages(ctx, cfg, p, logger)
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return &backend{Provisioner: p, runtimes: runtimesOf(set), images: p, bases: bases, where: where}, nil
}

// engineLanguages are the languages of a container engine, which can launch all of them, and the images that others can be made of.
func engineLanguages(ctx context.Context, cfg *Config, p *docker.Provisioner, logger *slog.Logger) (*images.Set, []derived.Base, error) {
	if err := p.Health(ctx); err != nil {
		return nil, nil, err
	}
	f := &imageLanguages{library: p, named: cfg.Images, known: openKernelspecCache(filepath.Join(cfg.DataDir, "kernelspecs.json"))}
	set, err := f.find(ctx)
	if err != nil {
		return nil, nil, err
	}
	f.known.save(logger)
	var wanted []string
	for _, l := range set.All() {
		wanted = append(wanted, l.Image)
	}
	slices.Sort(wanted)
	p.Require(slices.Compact(wanted))
	for _, err := range f.problems {
		logger.Warn("an image's kernel is not used", "error", err, "hint", fault.Hint(err))
	}
	return set, basesOf(set, f.offered), nil
}

func localBackend(ctx context.Context, cfg *Config, slot string, logger *slog.Logger) (*backend, error) {
	shim, err := findShim(cfg.Shim)
	if err != nil {
		return nil, err
	}
	host, err := findHostLanguages(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p, err := local.New(local.Config{
		StateDir: filepath.Join(cfg.DataDir, "local"), Slot: slot, RunDir: filepath.Join(cfg.RunDir, "l"), ShimPath: shim,
		UID: cfg.KernelUID, GID: cfg.KernelGID, ReadOnlyPaths: host.readPaths(), Sandbox: local.Sandbox(cfg.Sandbox),
		MountRoots: cfg.MountRoots, AllowUnenforced: cfg.AllowUnenforced, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	if err := p.Health(ctx); err != nil {
		_ = p.Close()
		return nil, err
	}
	set, err := host.usable(p.Check)
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	for _, err := range host.problems { // other programs' kernels may be among them: doctor tells
		logger.Debug("a kernel of this host is not used", "error", err, "hint", fault.Hint(err))
	}
	where := "bubblewrap sandbox"
	if cfg.Sandbox == "none" {
		where = "NO SANDBOX"
	}
	return &backend{Provisioner: p, runtimes: runtimesOf(set), where: where + host.where()}, nil
}

// runtimesOf is what languages run as.
func runtimesOf(set *images.Set) map[string]sessions.Runtime {
	runtimes := map[string]sessions.Runtime{}
	for _, l := range set.All() {
		runtimes[l.Name] = runtimeOf(l)
	}
	return runtimes
}

func runtimeOf(l images.Language) sessions.Runtime {
	return sessions.Runtime{
		Image: l.Image, Variables: l.Variables, Save: l.Save, Load: l.Load, Checkpoint: l.Checkpoint, RunFile: l.RunFile, Kernelspec: kernelspecOf(l), Online: l.Online,
		Title: l.Title, Note: l.Note, Endings: l.Endings,
	}
}

func kernelspecOf(l images.Language) kernels.Kernelspec {
	return kernels.Kernelspec{
		Name: l.Kernel, DisplayName: l.DisplayName, Language: l.Name, Argv: l.Argv, Env: l.Env,
		InterruptMode: l.InterruptMode, Transport: l.Transport, Waits: l.Waits,
	}
}
