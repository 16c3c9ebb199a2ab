package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/images/derived"
	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
	"cellblock/sessions/history"
	"cellblock/web/metrics"
	"cellblock/web/viewer"
)

// app is what serve and stdio have in common: kernels, sessions, tools.
type app struct {
	logger     *slog.Logger
	slot       *slot
	backend    *backend
	swept      func()     // waits until recover has stopped what it stops; nil before
	keep       bool       // kernels, when the process ends
	audit      *audit.Log // nil: none is written
	history    *history.Store
	library    *derived.Library // nil: kernels run in no images
	sessions   *sessions.Manager
	key        transport.SessionKey
	mcp        mcpserver.Config
	access     *mcpserver.Access
	dispatcher *transport.Dispatcher
	authority  auth.Authority // its zero value where nobody needs a token
	troubles   troublesTold
	metrics    *metrics.Metrics // nil: nothing is counted
	started    time.Time
	refused    *mcpserver.Limiter // bounds what the audit log is told of calls that are refused
}

// access says who a call is made for and what it may do.
type access struct {
	slot    string // the kind
	owner   func(context.Context) (sessions.Owner, error)
	allowed func(ctx context.Context, scope string) bool
	// operator tells whether a caller may see what is wrong with the machine; nil: everybody may.
	operator func(context.Context) bool
	limiter  *mcpserver.Limiter // nil: as often as they like
	// listening is where callers come; nil: nowhere.
	listening net.Addr
	// base is where browsers reach the viewer; empty: there is none.
	base string
}

func newApp(ctx context.Context, cfg *Config, logger *slog.Logger, who access) (*app, error) {
	if err := makeDirs(cfg); err != nil {
		return nil, err
	}
	place, err := takeSlot(cfg.DataDir, who.slot)
	if err != nil {
		return nil, err
	}
	a := &app{logger: logger, slot: place, started: time.Now(), refused: mcpserver.NewLimiter(toldPerMinute, toldAtOnce)}
	if err := a.start(ctx, cfg, who); err != nil {
		if ctx.Err() != nil { // whatever was being looked for was not looked for to the end
			err = fault.New(fault.Cancelled, "stopped before it was ready")
		}
		return nil, errors.Join(err, a.giveUp())
	}
	return a, nil
}

// giveUp ends a start that failed. Kernels that it has found again are left to the next one.
func (a *app) giveUp() (err error) {
	if a.keep = true; a.sessions != nil {
		err = a.endSessions(context.Background())
	}
	return errors.Join(err, a.release())
}

func (a *app) start(ctx context.Context, cfg *Config, who access) (err error) {
	if a.backend, err = chooseBackend(ctx, cfg, a.slot.name, a.logger); err != nil {
		return err
	}
	for _, warning := range a.backend.Capabilities().Warnings {
		a.logger.Warn(warning)
	}
	cfg.warnOfShim(a.logger)
	cfg.warnOfAbsent(a.backend.runtimes, a.logger)
	cfg.warnOfShares(a.logger)
	if p, ok := a.backend.Provisioner.(kernels.Allower); ok {
		cfg.warnOfExcess(ctx, p, a.logger)
	}
	a.history, err = history.Open(ctx, history.Options{
		Folder: cfg.DataDir, Slot: a.slot.name, Alive: func(slot string) bool { return slotTaken(cfg.DataDir, slot) },
		Address: func(slot string) string { return serverAddress(cfg.DataDir, slot) }, Logger: a.logger,
		MaxAge: cfg.History.MaxAge, MaxBytes: int64(cfg.History.MaxBytes),
	})
	if err != nil {
		return err
	}
	if err = a.openAudit(cfg); err != nil {
		return err
	}
	gateway, err := a.gateway(cfg, who.listening)
	if err != nil {
		return err
	}
	if a.library, err = a.openLibrary(cfg); err != nil {
		return err
	}
	if cfg.Metrics.Enabled {
		a.metrics = metrics.New(version)
	}
	authorities, err := cfg.Network.authorities()
	if err != nil {
		return err
	}
	a.sessions, err = sessions.New(sessions.Config{
		Provisioner: a.backend.Provisioner, Runtimes: cfg.withEnds(a.backend.runtimes), Profiles: cfg.profiles(), Image: a.resolveImage(), ImageName: a.imageName(),
		Gateway: gateway, Authorities: authorities, Store: a.history, DataDir: cfg.DataDir, PoolSize: cfg.PoolSize, PoolPreload: cfg.PoolPreload, DefaultTimeout: cfg.Timeout.Default, MaxTimeout: cfg.Timeout.Max,
		MintedIdle: cfg.Sessions.MintedIdle, IdleTimeout: orNone(cfg.Sessions.IdleTimeout), MaxLife: orNone(cfg.Sessions.MaxLife), SaveVariables: cfg.Sessions.SaveVariables, CheckpointAfter: cfg.Sessions.CheckpointAfter,
		MaxSessionsPerOwner: orNone(cfg.Sessions.PerOwner), MaxSessions: orNone(cfg.Sessions.Max),
		MaxWaiting: orNone(cfg.Sessions.MaxWaiting), MaxRunning: orNone(cfg.Sessions.MaxRunning), MaxQueue: orNone(cfg.Sessions.MaxQueue),
		MinFreeMemory: orNone(int64(cfg.Sessions.MinFreeMemory)), WorkspaceBytes: orNone(int64(cfg.Sessions.WorkspaceMaxBytes)),
		Unattended: orNone(cfg.Sessions.Unattended), Guest: !a.slot.first(), Ended: a.cellEnded, Logger: a.logger,
	})
	if err != nil {
		return err
	}
	a.metrics.Watch(a.sessions)
	if a.key, err = transport.LoadSessionKey(filepath.Join(cfg.DataDir, "mcp_session_key")); err != nil {
		return err
	}
	a.mcp = mcpserver.Config{
		Sessions: a.sessions, Owner: who.owner, Allowed: who.allowed, Health: a.health, Version: version, Logger: a.logger,
		Toolsets: cfg.Toolsets, ImageSide: cfg.Output.ImageSide, StateKey: a.key, Audit: a.audit, Limiter: who.limiter, Operator: who.operator,
	}
	if a.library != nil {
		a.mcp.Images = a.library
	}
	watched := a.sessions.Config()
	watched.Profiles = cfg.watched()
	a.mcp.Profiles = mcpserver.WatchProfiles(watched)
	a.mcp.App = viewer.Conversation(viewer.ConversationConfig{Base: who.base, ErrorHint: a.mcp.ErrorHints(), PrintedHint: a.mcp.PrintedHints()})
	a.access = mcpserver.NewAccess(a.mcp)
	a.dispatcher = transport.NewDispatcher(mcpserver.New(a.mcp), a.logger)
	a.recover(ctx)
	return ctx.Err()
}

// orNone is a value of the configuration, where 0 means no limit, as package sessions wants it, where that is the default.
func orNone[T int | int64 | time.Duration](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

// health looks at what the server depends on now.
func (a *app) health(ctx context.Context) mcpserver.HealthReport {
	report := a.withAudit(a.mcp.ReportHealth(ctx, a.started))
	if err := a.history.Health(); err != nil {
		report.AddLogged(mcpserver.HealthDegraded, err, "results are kept in memory only")
	}
	addRoom(&report, a.history.Room())
	if a.authority.Health != nil {
		serving, problem := a.authority.Health()
		switch {
		case !serving:
			report.AddLogged(mcpserver.HealthDown, problem, "tokens cannot be verified: the keys of their issuer could not be fetched")
		case problem != nil:
			report.AddLogged(mcpserver.HealthDegraded, problem, "the keys of the tokens' issuer are not new")
		}
	}
	a.troubles.tell(a.logger, report.Problems)
	return report
}

// addRoom adds to how the server is what keeps its data folder from being written, without which no session can begin. A disk that is
// only slow is no reason to send callers elsewhere.
func addRoom(report *mcpserver.HealthReport, err error) {
	switch {
	case err == nil:
	case fault.KindOf(err) == fault.Timeout:
		report.AddError(mcpserver.HealthDegraded, err, "the server's disk does not answer")
	default:
		report.AddError(mcpserver.HealthDown, err, "sessions cannot begin now: nothing can be written to the server's disk")
	}
}

// stopGrace is how long a stop may take before it is forced.
const stopGrace = 20 * time.Second

// close ends the work on sessions, with their kernels or without, and releases everything. A second signal, which ends
// forced, makes it short.
func (a *app) close(forced context.Context) error {
	ctx, cancel := context.WithTimeout(forced, stopGrace)
	defer cancel()
	a.dispatcher.Drain()
	err := errors.Join(a.endSessions(ctx), unlessForced(forced, a.dispatcher.Close(ctx)))
	return errors.Join(err, a.release())
}

// unlessForced is err, but for calls that were cut short because that was asked for.
func unlessForced(forced context.Context, err error) error {
	if forced.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// release gives back what the process holds, after its sessions have ended.
func (a *app) release() error {
	var err error
	a.mcp.Profiles.Stop()
	if a.swept != nil {
		a.swept()
	}
	if a.backend != nil {
		err = a.backend.Close()
	}
	err = errors.Join(err, a.closeAudit())
	if a.history != nil {
		err = errors.Join(err, a.history.Close())
	}
	removeAddress(a.slot.dataDir, a.slot.name) // with the slot, and no sooner: see awaitStopping
	return errors.Join(err, a.slot.release())
}
