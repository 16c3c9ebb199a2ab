package mcpserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// The statuses of a HealthReport.
const (
	// HealthOK: kernels can be launched, under all limits.
	HealthOK = "ok"
	// HealthDegraded: kernels can be launched, but something is weaker than it should be.
	HealthDegraded = "degraded"
	// HealthDown: no kernel can be launched now.
	HealthDown = "down"
)

// HealthReport says how the server is, without secrets and without anything of one owner.
type HealthReport struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	// UptimeSeconds is how long the server has been running; 0 when it is not known.
	UptimeSeconds float64 `json:"uptime_seconds"`
	// Provisioner is what launches kernels: "docker", "local".
	Provisioner  string               `json:"provisioner"`
	Capabilities kernels.Capabilities `json:"capabilities"`
	// WorkspaceBound is what bounds the size of workspaces: "project quota", or "measuring" while cells run.
	WorkspaceBound string `json:"workspace_bound,omitempty"`
	// Sessions counts the sessions of all owners by state; nil where that is nobody's business.
	Sessions map[string]int `json:"sessions,omitempty"`
	// Pool is what is ready for new sessions; nil where none is kept.
	Pool *Pool `json:"pool,omitempty"`
	// Profiles are those that sessions may run under; nil where that is nobody's business.
	Profiles []ProfileHealth `json:"profiles,omitempty"`
	// Problems are what keeps Status from being ok.
	Problems []Problem `json:"problems"`
}

// Pool says how many kernels of each language are kept ready, and how many are.
type Pool struct {
	Size  int            `json:"size"`
	Ready map[string]int `json:"ready"`
	// Problem is why the last start of a kernel for it failed.
	Problem string `json:"problem,omitempty"`
}

// Problem is one thing that is wrong, and what the operator must do.
type Problem struct {
	What string `json:"what"`
	Hint string `json:"hint,omitempty"`
	// Public is what anybody may be told of it: nothing of the machine and its network.
	Public string `json:"-"`
	// Logged tells that whoever found it has written it into the log, and will write when it is over.
	Logged bool `json:"-"`
	down   bool // it keeps the server from its work
}

// severities are the statuses from the best to the worst.
var severities = []string{HealthOK, HealthDegraded, HealthDown}

// Add adds a problem because of which the status is at least this bad.
func (h *HealthReport) Add(status string, p Problem) {
	p.down = status == HealthDown
	h.Problems = append(h.Problems, p)
	h.Status = severities[max(slices.Index(severities, h.Status), slices.Index(severities, status))]
}

// AddError is Add for an error, of which anybody may be told this much.
func (h *HealthReport) AddError(status string, err error, public string) {
	h.Add(status, Problem{What: err.Error(), Hint: fault.Hint(err), Public: public})
}

// AddLogged is AddError for one that the log has been told of by whoever found it.
func (h *HealthReport) AddLogged(status string, err error, public string) {
	h.Add(status, Problem{What: err.Error(), Hint: fault.Hint(err), Public: public, Logged: true})
}

// Public is the report for those who do not operate the server: what does not work, nothing of why, and nothing of what others
// do.
func (h HealthReport) Public() HealthReport {
	problems := []Problem{}
	for _, p := range h.Problems {
		if p = (Problem{What: p.Public, Public: p.Public}); !slices.Contains(problems, p) {
			problems = append(problems, p)
		}
	}
	h.Problems, h.Capabilities.Warnings, h.Sessions, h.Profiles = problems, nil, nil, nil
	if h.Pool != nil && h.Pool.Problem != "" {
		h.Pool = &Pool{Size: h.Pool.Size, Ready: h.Pool.Ready, Problem: "the server's log says why"}
	}
	return h
}

// Reason says in a line what keeps the server from its work, to anybody; empty where nothing does.
func (h HealthReport) Reason() string {
	var reasons []string
	for _, p := range h.Problems {
		if p.down {
			reasons = append(reasons, p.Public)
		}
	}
	return strings.Join(reasons, "; ")
}

const healthSchema = `{"type":"object","properties":{"status":{"enum":["ok","degraded","down"]}},"required":["status","version","problems"]}`

// ReportHealth makes the report that can be made of the session manager and its provisioner.
func (cfg Config) ReportHealth(ctx context.Context, started time.Time) HealthReport {
	p := cfg.Sessions.Config().Provisioner
	report := HealthReport{
		Status: HealthOK, Version: cfg.Version, Provisioner: p.Name(), Capabilities: p.Capabilities(),
		WorkspaceBound: cfg.Sessions.WorkspaceBound(), Sessions: map[string]int{}, Problems: []Problem{},
	}
	if !started.IsZero() {
		report.UptimeSeconds = time.Since(started).Round(time.Second).Seconds()
	}
	stats := cfg.Sessions.Stats()
	for state, n := range stats.Sessions {
		report.Sessions[string(state)] = n
	}
	if stats.Pool.Size > 0 {
		report.Pool = &Pool{Size: stats.Pool.Size, Ready: stats.Pool.Ready, Problem: stats.Pool.Problem}
	}
	for _, warning := range report.Capabilities.Warnings {
		report.Add(HealthDegraded, Problem{What: warning, Public: "something bounds or separates kernels less than it should"})
	}
	if err := p.Health(ctx); err != nil {
		report.AddError(HealthDown, err, "kernels cannot be started now")
	} else {
		cfg.reportProfiles(ctx, &report)
	}
	return report
}

func (s *service) healthTool() toolSpec {
	return toolSpec{
		name: "health", title: "Server health",
		description: "Can kernels be started, which limits hold, what is wrong?",
		output:      healthSchema, readOnly: true, idempotent: true, handle: s.health,
	}
}

func (s *service) health(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if a := argumentsOf(r); a.err != nil {
		return toolError(a.err), nil
	}
	report := HealthReport{}
	if s.Health != nil {
		report = s.Health(ctx)
	} else {
		report = s.ReportHealth(ctx, time.Time{})
	}
	if s.Operator != nil && !s.Operator(ctx) {
		report = report.Public()
	}
	if report.Problems == nil {
		report.Problems = []Problem{}
	}
	return mcp.NewToolResultStructured(report, healthText(report)), nil
}

func healthText(h HealthReport) string {
	first := fmt.Sprintf("%s · cellblock %s · kernels by %s", h.Status, h.Version, h.Provisioner)
	if h.Sessions != nil {
		total := 0
		for _, n := range h.Sessions {
			total += n
		}
		first += " · " + words.Count(int64(total), "session")
	}
	if h.UptimeSeconds > 0 {
		first += " · up " + (time.Duration(h.UptimeSeconds) * time.Second).String()
	}
	c := h.Capabilities
	limits := "limits: memory " + orNot(c.Memory) + ", CPU " + orNot(c.CPU) + ", processes " + orNot(c.PIDs) +
		", workspace size " + orNot(h.WorkspaceBound) +
		"; isolation: network " + orNot(c.Network) + ", files " + orNot(c.Filesystem) + ", processes " + orNot(c.Processes)
	lines := []string{first, limits}
	if h.Pool != nil {
		lines = append(lines, h.Pool.text())
	}
	if len(h.Profiles) > 0 {
		lines = append(lines, "profiles: "+profilesText(h.Profiles))
	}
	for _, p := range h.Problems {
		lines = append(lines, "problem: "+p.What)
		if p.Hint != "" {
			lines = append(lines, "  to do: "+p.Hint)
		}
	}
	return strings.Join(lines, "\n")
}

func (p *Pool) text() string {
	var ready []string
	for _, language := range slices.Sorted(maps.Keys(p.Ready)) {
		ready = append(ready, fmt.Sprintf("%s %d of %d", language, p.Ready[language], p.Size))
	}
	text := "kernels ready for new sessions: " + strings.Join(ready, ", ")
	if p.Problem != "" {
		text += "; the last start failed: " + strings.ReplaceAll(p.Problem, "\n", " ")
	}
	return text
}

func orNot(by string) string {
	if by == "" {
		return "not enforced"
	}
	return "by " + by
}
