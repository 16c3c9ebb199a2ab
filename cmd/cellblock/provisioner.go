package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cellblock/images"
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
	// where says in a few words what kernels run in.
	where string
}

// chooseBackend picks the provisioner that the configuration names. "auto" takes an engine that answers and has the
// image, else the sandbox on this host, and says why. Kernels are launched under the name of the process's slot.
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
	sandbox, sandboxErr := localBackend(ctx, cfg, slot, logger)
	if sandboxErr == nil {
		level := slog.LevelInfo
		if cfg.Docker.Host != "" || os.Getenv("DOCKER_HOST") != "" { // an engine is wanted: with "docker" nothing stands in for it
			level = slog.LevelWarn
		}
		logger.Log(ctx, level, "kernels run in the sandbox: "+engineErr.Error())
		logger.Debug("no container engine is used", "tried", docker.Sockets(), "hint", fault.Hint(engineErr))
		return sandbox, nil
	}
	err := fault.New(fault.Unavailable, "nothing here can run kernels: %v; %v", sandboxErr, engineErr)
	hints := slices.DeleteFunc([]string{fault.Hint(sandboxErr), fault.Hint(engineErr)}, func(h string) bool { return h == "" })
	return nil, err.WithHint("%s", strings.Join(hints, "\nOr: "))
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
	catalogue, err := images.New(cfg.Images)
	if err != nil {
		return nil, err
	}
	runtimes := map[string]sessions.Runtime{}
	var wanted []string
	for _, l := range catalogue.All() {
		runtimes[l.Name] = runtimeOf(l)
		wanted = append(wanted, l.Image)
	}
	host, where := cfg.Docker.Host, "containers of "+cfg.Docker.Host
	if host == "" {
		found, kind, err := docker.Find(ctx)
		if err != nil {
			return nil, err
		}
		host, where = found, kind+" containers"
	}
	p, err := docker.New(docker.Config{
		Host: host, Carrier: docker.Carrier(cfg.Docker.Carrier), Installation: installation, Slot: slot,
		Shim: shim, RunDir: filepath.Join(cfg.RunDir, "d"), UID: cfg.KernelUID, GID: cfg.KernelGID,
		AllowUnenforced: cfg.AllowUnenforced, Images: wanted, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	if err := p.Health(ctx); err != nil {
		_ = p.Close()
		return nil, err
	}
	return &backend{Provisioner: p, runtimes: runtimes, where: where}, nil
}

func localBackend(ctx context.Context, cfg *Config, slot string, logger *slog.Logger) (*backend, error) {
	shim, err := findShim(cfg.Shim)
	if err != nil {
		return nil, err
	}
	python, err := findPython(ctx, cfg.Python)
	if err != nil {
		return nil, err
	}
	catalogue, err := images.New(nil)
	if err != nil {
		return nil, err
	}
	runtimes := map[string]sessions.Runtime{}
	for _, l := range catalogue.All() {
		if l.Name == "python" {
			l.Argv[0] = python.Path
		}
		runtimes[l.Name] = runtimeOf(l)
	}
	p, err := local.New(local.Config{
		StateDir: filepath.Join(cfg.DataDir, "local"), Slot: slot, RunDir: filepath.Join(cfg.RunDir, "l"), ShimPath: shim,
		UID: cfg.KernelUID, GID: cfg.KernelGID, ReadOnlyPaths: python.readPaths(), Sandbox: local.Sandbox(cfg.Sandbox),
		AllowUnenforced: cfg.AllowUnenforced, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	if err := p.Health(ctx); err != nil {
		_ = p.Close()
		return nil, err
	}
	where := "bubblewrap sandbox, Python " + python.Version
	if cfg.Sandbox == "none" {
		where = "NO SANDBOX, Python " + python.Version
	}
	return &backend{Provisioner: p, runtimes: runtimes, where: where}, nil
}

func runtimeOf(l images.Language) sessions.Runtime {
	return sessions.Runtime{Image: l.Image, Variables: l.Variables, RunFile: l.RunFile, Kernelspec: kernels.Kernelspec{
		Name: l.Kernel, DisplayName: l.DisplayName, Language: l.Name, Argv: l.Argv, Env: l.Env,
		InterruptMode: l.InterruptMode, Transport: l.Transport,
	}}
}

// findShim returns the path of the shim's binary: the configured one, or the one beside this program.
func findShim(configured string) (string, error) {
	path := configured
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fault.New(fault.Internal, "this program's own path: %w", err)
		}
		path = filepath.Join(filepath.Dir(self), "cellblock-shim")
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", fault.New(fault.Unavailable, "there is no shim at %s", path).
			WithHint("Build it with `make build`, or name it with the setting shim.")
	}
	return filepath.Abs(path)
}
