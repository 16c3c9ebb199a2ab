package viewer

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/internal/words"
	"cellblock/mcpserver"
	"cellblock/sessions"
	"cellblock/web/viewer/live"
)

const (
	// serverTopic tells operators how the server is.
	serverTopic = "server"
	// serverEvery is how often they are told: what they see changes all the time, and looking at it costs something.
	serverEvery = 5 * time.Second
	// auditLines is how many of the last lines of the audit log they see, maxOwned how many sessions.
	auditLines = 50
	maxOwned   = 200
)

// serverView is what the server page shows.
type serverView struct {
	Health mcpserver.HealthReport
	Uptime time.Duration
	// States counts sessions by state, in the order of their lives.
	States []stateCount
	Stats  sessions.Stats
	// Kept is what the database holds, Trouble why that is not known.
	Kept    sessions.Usage
	Trouble string
	Limits  []limit
	Owned   []sessions.Owned
	// Audit is nil where there is no audit log.
	Audit []audit.Entry
}

type stateCount struct {
	State sessions.State
	N     int
}

// limit is one bound that the server keeps, and how near it is.
type limit struct{ Name, Most, Now string }

// serverPage shows operators how the server is.
func (v *Viewer) serverPage(w http.ResponseWriter, r *http.Request, who visit) error {
	if !v.operates(who) {
		return auth.NeedsScope("this", mcpserver.ScopeAdmin)
	}
	p := page{Title: "Server", Here: "/server", Who: who, Parts: []string{"server"}, Body: v.server(r.Context())}
	return v.show(w, http.StatusOK, "server", p)
}

// server looks at everything.
func (v *Viewer) server(ctx context.Context) serverView {
	s := serverView{Stats: v.Sessions.Stats(), Owned: v.Sessions.All()}
	if v.Health != nil {
		s.Health = v.Health(ctx)
		s.Uptime = time.Duration(s.Health.UptimeSeconds * float64(time.Second))
	}
	s.Owned = s.Owned[:min(len(s.Owned), maxOwned)]
	for _, state := range []sessions.State{sessions.Starting, sessions.Idle, sessions.Busy, sessions.Restarting, sessions.Died, sessions.Culled} {
		s.States = append(s.States, stateCount{state, s.Stats.Sessions[state]})
	}
	cfg := v.Sessions.Config()
	var err error
	if s.Kept, err = v.Sessions.Usage(ctx); err == nil {
		s.Audit, err = v.Audit.Recent(auditLines)
	}
	if err != nil {
		s.Trouble = err.Error()
	}
	s.Limits = limitsOf(cfg, s.Stats)
	return s
}

// limitsOf are the bounds of a server, with how near they are where that is known.
func limitsOf(cfg sessions.Config, stats sessions.Stats) []limit {
	kernels := 0
	for state, n := range stats.Sessions {
		if state != sessions.Died && state != sessions.Culled {
			kernels += n
		}
	}
	most := func(n int) string {
		if n < 0 {
			return "no limit"
		}
		return words.Thousands(int64(n))
	}
	size := func(n int64) string {
		if n <= 0 {
			return "no limit"
		}
		return words.Bytes(n)
	}
	length := func(d time.Duration) string {
		if d < 0 {
			return "no limit"
		}
		return words.Length(d)
	}
	now := func(n int) string { return words.Thousands(int64(n)) }
	limits := []limit{
		{"Sessions with a kernel", most(cfg.MaxSessions), now(kernels)},
		{"… of one owner", most(cfg.MaxSessionsPerOwner), ""},
		{"Cells that run", most(cfg.MaxRunning), now(stats.Sessions[sessions.Busy])},
		{"Cells that wait", most(cfg.MaxWaiting), now(stats.Queued)},
		{"A workspace", size(cfg.WorkspaceBytes), ""},
		{"An unused kernel lives", length(cfg.IdleTimeout), ""},
		{"A kernel lives", length(cfg.MaxLife), ""},
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Profiles)) {
		l := cfg.Profiles[name].Limits
		limits = append(limits, limit{"Profile " + name, size(l.Memory) + ", " + cmp.Or(cpus(l.CPUs), "all CPUs") + ", " + most(int(l.PIDs)) + " processes", ""})
	}
	return limits
}

func cpus(n float64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + " CPUs"
}

// serverTopic tells operators how the server is, now and then.
func (v *Viewer) serverTopic(who visit) (live.Topic, error) {
	if !v.operates(who) {
		return nil, auth.NeedsScope("this", mcpserver.ScopeAdmin)
	}
	return func(ctx context.Context, _ string, send func(live.Event) error) error {
		again := time.NewTicker(serverEvery)
		defer again.Stop()
		for {
			html, err := partial("server-state", v.server(ctx))
			if err != nil {
				return err
			}
			if err := send(live.Event{Name: "state", Data: html}); err != nil {
				return err
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}, nil
}
