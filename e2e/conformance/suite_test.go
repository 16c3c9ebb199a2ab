package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/e2e/rig"
)

// suites are the releases of the suite and the revision of the protocol that each is asked about.
var suites = []struct{ pkg, revision string }{
	{"@modelcontextprotocol/conformance", "2025-11-25"},
	{"conformance-next", "2025-11-25"},
	{"conformance-next", "2026-07-28"},
}

// limit is what one scenario may take; the suite alone would wait for ever.
const limit = time.Minute

// Every scenario that applies to a revision passes, but for the checks that are named in expected, which fail.
func TestConformance(t *testing.T) {
	node := rig.NeedNode(t)
	endpoint := serve(t)
	for _, s := range suites {
		t.Run(filepath.Base(s.pkg)+"/"+s.revision, func(t *testing.T) {
			suite := node.Package(s.pkg, "dist", "index.js")
			names := scenarios(t, node, suite, s.revision)
			if len(names) < 20 {
				t.Fatalf("only %d scenarios: %q", len(names), names)
			}
			for _, name := range names {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					judge(t, s.revision, name, runScenario(t, node, suite, endpoint, s.revision, name))
				})
			}
		})
	}
}

var listed = regexp.MustCompile(`^  - (\S+) \[(.*)\]$`)

// scenarios returns those that the suite has for a revision. What it calls an extension belongs to none.
func scenarios(t *testing.T, node *rig.Node, suite, revision string) (names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := node.Command(ctx, suite, "list", "--server").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		m := listed.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m != nil && slices.Contains(strings.Split(m[2], ","), revision) {
			names = append(names, m[1])
		}
	}
	return names
}

// check is one of a scenario's findings.
type check struct {
	ID, Status, ErrorMessage string
}

// runScenario runs one scenario and returns its findings.
func runScenario(t *testing.T, node *rig.Node, suite, endpoint, revision, name string) []check {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	cmd := node.Command(ctx, suite, "server", "--url", endpoint, "--scenario", name, "--spec-version", revision, "-o", dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run() // its exit status says no more than the findings do
	if ctx.Err() != nil {
		t.Fatalf("not over after %s:\n%s", limit, said.String())
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if len(found) != 1 {
		t.Fatalf("%v; %d reports:\n%s", err, len(found), said.String())
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []check
	if err := json.Unmarshal(raw, &checks); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if len(checks) == 0 {
		t.Fatalf("no findings:\n%s", said.String())
	}
	return checks
}

// judge holds a scenario's findings against what is expected. One that is expected to fail and passes is an error too:
// then the list is out of date. A warning counts as a failure, so that each is looked at once.
func judge(t *testing.T, revision, scenario string, checks []check) {
	t.Helper()
	failed := map[string]bool{}
	for _, c := range checks {
		if c.Status != "FAILURE" && c.Status != "WARNING" {
			continue
		}
		failed[c.ID] = true
		if reason := expectation(revision, scenario, c.ID); reason != "" {
			t.Logf("%s fails, as expected: %s", c.ID, reason)
		} else {
			t.Errorf("%s: %s %s", c.ID, c.Status, c.ErrorMessage)
		}
	}
	for _, e := range expected {
		if e.revision == revision && e.scenario == scenario && !failed[e.check] && slices.ContainsFunc(checks, func(c check) bool { return c.ID == e.check }) {
			t.Errorf("%s is expected to fail (%s), and passes: take it off the list", e.check, e.reason)
		}
	}
}
