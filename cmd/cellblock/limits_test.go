package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// limitCases are all limits: how each is set, which value it then has, and what it does not take.
var limitCases = []struct {
	key, text string
	get       func(*Config) any
	want      any
	bad       string // of its own; less than nothing is bad for each
}{
	{"timeout.default", "5m", func(c *Config) any { return c.Timeout.Default }, 5 * time.Minute, "100ms"},
	{"timeout.max", "2h", func(c *Config) any { return c.Timeout.Max }, 2 * time.Hour, "1m"},
	{"sessions.per_owner", "7", func(c *Config) any { return c.Sessions.PerOwner }, 7, "many"},
	{"sessions.max", "70", func(c *Config) any { return c.Sessions.Max }, 70, "1.5"},
	{"sessions.max_running", "8", func(c *Config) any { return c.Sessions.MaxRunning }, 8, "many"},
	{"sessions.max_waiting", "80", func(c *Config) any { return c.Sessions.MaxWaiting }, 80, "many"},
	{"sessions.max_queue", "9", func(c *Config) any { return c.Sessions.MaxQueue }, 9, "many"},
	{"sessions.min_free_memory", "1GB", func(c *Config) any { return c.Sessions.MinFreeMemory }, Size(1 << 30), "much"},
	{"sessions.workspace_max_bytes", "2GB", func(c *Config) any { return c.Sessions.WorkspaceMaxBytes }, Size(2 << 30), "much"},
	{"sessions.minted_idle", "1m", func(c *Config) any { return c.Sessions.MintedIdle }, time.Minute, "0"},
	{"sessions.idle_timeout", "15m", func(c *Config) any { return c.Sessions.IdleTimeout }, 15 * time.Minute, "30ms"},
	{"sessions.max_life", "2d", func(c *Config) any { return c.Sessions.MaxLife }, 48 * time.Hour, "30"},
	{"sessions.unattended", "1h", func(c *Config) any { return c.Sessions.Unattended }, time.Hour, "soon"},
	{"languages.python.idle_timeout", "2h", func(c *Config) any { return *c.Languages["python"].IdleTimeout }, 2 * time.Hour, "30ms"},
	{"languages.python.max_life", "0", func(c *Config) any { return *c.Languages["python"].MaxLife }, time.Duration(0), "30"},
	{"history.max_age", "7d", func(c *Config) any { return c.History.MaxAge }, 7 * 24 * time.Hour, "1m"},
	{"history.max_bytes", "1GB", func(c *Config) any { return c.History.MaxBytes }, Size(1 << 30), "1MB"},
	{"profiles.session.memory", "1GB", func(c *Config) any { return c.Profiles["session"].Memory }, Size(1 << 30), "1MB"},
	{"profiles.session.cpus", "0.5", func(c *Config) any { return c.Profiles["session"].CPUs }, 0.5, "0.01"},
	{"profiles.session.pids", "64", func(c *Config) any { return c.Profiles["session"].PIDs }, int64(64), "2"},
	{"profiles.session.file_size", "1GB", func(c *Config) any { return c.Profiles["session"].FileSize }, Size(1 << 30), "1"},
	{"profiles.session.tmp", "64MB", func(c *Config) any { return c.Profiles["session"].Tmp }, Size(64 << 20), "1"},
	{"profiles.session.files", "512", func(c *Config) any { return c.Profiles["session"].Files }, int64(512), "2"},
}

// Every limit is set in the same three ways, refuses what makes no sense by its name, and stands with its default in the
// documentation.
func TestLimits(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, tt := range limitCases {
		tested[tt.key] = true
		set := func(value string) map[string]func() (*Config, error) {
			return map[string]func() (*Config, error){
				"file": func() (*Config, error) { return load(t, asYAML(tt.key, value), nil) },
				"env":  func() (*Config, error) { return load(t, "", []string{envName(tt.key) + "=" + value}) },
				"flag": func() (*Config, error) { return load(t, "", nil, "--"+flagName(tt.key)+"="+value) },
			}
		}
		for how, load := range set(tt.text) {
			if cfg, err := load(); err != nil || tt.get(cfg) != tt.want {
				t.Errorf("%s by %s: %v", tt.key, how, err)
			}
		}
		for _, bad := range []string{tt.bad, "-1", "-1h", "-1GB"} {
			for how, load := range set(bad) {
				if _, err := load(); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.key) {
					t.Errorf("%s: %s by %s: %v", tt.key, bad, how, err)
				}
			}
		}
		cell := "|[^|\n]*`" + regexp.QuoteMeta(tt.key) + "`[^\n]*"
		if value := defaults()[tt.key]; value != nil {
			cell += "`" + regexp.QuoteMeta(fmt.Sprint(value)) + "`"
		}
		if !regexp.MustCompile(`(?m)^` + cell).Match(doc) {
			t.Errorf("docs/configuration.md lacks %s with its default", tt.key)
		}
	}
	for _, l := range limits {
		if !tested[l.key] {
			t.Errorf("%s is not tested", l.key)
		}
	}
}

// asYAML nests a key.
func asYAML(key, value string) string {
	text := value
	parts := strings.Split(key, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		text = parts[i] + ": " + text
		if i > 0 {
			text = "{" + text + "}"
		}
	}
	return text + "\n"
}

func TestLanguagesHaveEndsOfTheirOwn(t *testing.T) {
	cfg, err := load(t, "languages: {python: {idle_timeout: 2h}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := cfg.withEnds(map[string]sessions.Runtime{"python": {Image: "x"}, "r": {}})
	if p := r["python"]; p.IdleTimeout != 2*time.Hour || p.MaxLife != 0 || p.Image != "x" || r["r"].IdleTimeout != 0 {
		t.Errorf("%+v", r)
	}
	if cfg, err = load(t, "languages: {r: {max_life: 3h}}", []string{"CELLBLOCK_LANGUAGES_WOLFRAM_LANGUAGE_IDLE_TIMEOUT=4h"}); err != nil {
		t.Fatal(err)
	}
	r = cfg.withEnds(map[string]sessions.Runtime{"wolfram_language": {}, "r": {}})
	if r["r"].MaxLife != 3*time.Hour || r["wolfram_language"].IdleTimeout != 4*time.Hour {
		t.Errorf("%+v", r)
	}
	if cfg, err = load(t, "", []string{"CELLBLOCK_LANGUAGES_PYTHON_MAX_LIFE=0"}); err != nil {
		t.Fatal(err)
	}
	if p := cfg.withEnds(map[string]sessions.Runtime{"python": {}})["python"]; p.MaxLife >= 0 {
		t.Errorf("without end: %+v", p)
	}
	if _, err := load(t, "languages: {r: {idle_timeuot: 2h}}", nil); err == nil || !strings.Contains(fault.Text(err), "languages.r.idle_timeuot") {
		t.Errorf("%v", err)
	}
}

// What a configuration says of languages and limits that are not here is told at the start, with what to do.
func TestWarningsOfWhatIsNotHere(t *testing.T) {
	cfg, err := load(t, "languages: {pyhton: {idle_timeout: 1m}, julia: {max_life: 1h}, r: {max_life: 1h}, python: {max_life: 1h}}\nprofiles: {huge: {memory: 900GB, cpus: 64}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&said, nil))
	cfg.warnOfAbsent(map[string]sessions.Runtime{"python": {}, "perl": {}}, logger)
	cfg.warnOfExcess(t.Context(), machine{cores: 2, memory: 8 << 30}, logger)
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	want := []string{`key=languages.julia hint="Languages that run here: perl, python."`, `key=languages.pyhton hint="Did you mean languages.python?"`, `key=languages.r hint="Install it`,
		`its memory is 900 GiB, and the machine that kernels run on has 8 GiB; it has 64 CPUs, and the machine that kernels run on has 2" key=profiles.huge hint=`}
	if len(lines) != len(want) {
		t.Fatalf("%d warnings:\n%s", len(lines), said.String())
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) || !strings.Contains(line, "level=WARN") {
			t.Errorf("%s\nwant %s", line, want[i])
		}
	}
}

func TestAShareAboveAllIsWarnedOf(t *testing.T) {
	for text, warned := range map[string]bool{
		"": false, "sessions: {per_owner: 100}": false, "sessions: {per_owner: 200}": true, "sessions: {max: 10}": true,
		"sessions: {per_owner: 200, max: 0}": false, "sessions: {per_owner: 0}": false,
	} {
		cfg, err := load(t, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if cfg.warnOfShares(slog.New(slog.NewTextHandler(&said, nil))); strings.Contains(said.String(), "level=WARN") != warned {
			t.Errorf("%q: %s", text, said.String())
		}
	}
}

// What all profiles have from session is told of session alone; what one of them says itself, of that one.
func TestInheritedExcessIsToldOnce(t *testing.T) {
	cfg, err := load(t, "profiles: {session: {memory: 400GB, cpus: 64}, huge: {memory: 900GB}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cfg.warnOfExcess(t.Context(), machine{cores: 2, memory: 8 << 30}, slog.New(slog.NewTextHandler(&said, nil)))
	if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); len(lines) != 2 ||
		!strings.Contains(lines[0], "900 GiB") || strings.Contains(lines[0], "CPUs") || !strings.Contains(lines[0], "key=profiles.huge") ||
		!strings.Contains(lines[1], "400 GiB") || !strings.Contains(lines[1], "64 CPUs") || !strings.Contains(lines[1], "key=profiles.session") {
		t.Errorf("%s", said.String())
	}
}

// What nobody has set is warned of by nobody, however small the machine.
func TestDefaultsAreNoExcess(t *testing.T) {
	small := machine{cores: 1, memory: 1 << 28}
	for text, want := range map[string]int{"": 0, "profiles: {lab: {}, isolated: {pids: 64}}": 0, "profiles: {development: {memory: 4GB}}": 1} {
		cfg, err := load(t, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		cfg.warnOfExcess(t.Context(), small, slog.New(slog.NewTextHandler(&said, nil)))
		doubts := 0
		for _, p := range cfg.watched() {
			if p.Limits.Beyond(small.cores, small.memory) != nil {
				doubts++
			}
		}
		if warned := strings.Count(said.String(), "level=WARN"); warned != want || doubts != want {
			t.Errorf("%q: %d doubts of health, warned of %d:\n%s", text, doubts, warned, said.String())
		}
	}
}

// machine is one that kernels run on.
type machine struct {
	cores  int
	memory int64
}

func (m machine) Allows(_ context.Context, spec kernels.Spec) (doubt, err error) {
	return spec.Limits.Beyond(m.cores, m.memory), nil
}
