package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// app is what serve and stdio have in common: kernels, sessions, tools.
type app struct {
	logger     *slog.Logger
	backend    *backend
	sessions   *sessions.Manager
	mcp        mcpserver.Config
	dispatcher *transport.Dispatcher
	started    time.Time
}

// access says who a call is made for and what it may do.
type access struct {
	owner   func(context.Context) (sessions.Owner, error)
	allowed func(ctx context.Context, scope string) bool
}

func newApp(ctx context.Context, cfg *Config, logger *slog.Logger, who access) (*app, error) {
	if err := makeDirs(cfg); err != nil {
		return nil, err
	}
	b, err := chooseBackend(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	for _, warning := range b.Capabilities().Warnings {
		logger.Warn(warning)
	}
	a := &app{logger: logger, backend: b, started: time.Now()}
	a.sessions, err = sessions.New(sessions.Config{
		Provisioner: b.Provisioner, Runtimes: b.runtimes, Limits: cfg.Profiles[sessionProfile].Limits(),
		DataDir: cfg.DataDir, DefaultTimeout: cfg.Timeout.Default, MaxTimeout: cfg.Timeout.Max, Logger: logger,
	})
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	a.mcp = mcpserver.Config{
		Sessions: a.sessions, Owner: who.owner, Allowed: who.allowed, Health: a.health, Version: version, Logger: logger,
	}
	a.dispatcher = transport.NewDispatcher(mcpserver.New(a.mcp), logger)
	return a, nil
}

// health looks at what the server depends on now.
func (a *app) health(ctx context.Context) mcpserver.HealthReport {
	return a.mcp.ReportHealth(ctx, a.started)
}

// stopGrace is how long a stop may take before it is forced.
const stopGrace = 20 * time.Second

// close stops kernels and releases everything. A second signal, which ends forced, makes it short.
func (a *app) close(forced context.Context) error {
	ctx, cancel := context.WithTimeout(forced, stopGrace)
	defer cancel()
	a.dispatcher.Drain()
	err := errors.Join(a.sessions.Shutdown(ctx), a.dispatcher.Close(ctx))
	return errors.Join(err, a.backend.Close())
}
