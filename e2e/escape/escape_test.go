// Package escape attacks a running installation from inside its cells, in every way that is listed here, on every runtime. Each
// attack is refused, contained or documented; a test fails for one that is none of it. Run with -v it prints a table.
package escape

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"cellblock/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

//go:embed probes.py
var probes string

// size is the variable that asks for the attacks that take their time: "full".
const size = "CELLBLOCK_ESCAPE"

func needFull(t *testing.T) {
	t.Helper()
	if os.Getenv(size) != "full" {
		t.Skip("SKIPPED: it has a step of its own, make test-escape")
	}
}

// patience is how long an attack may take, and whatever comes of it.
const patience = 3 * time.Minute

// world is an installation with an attacker and a bystander, who belong to different owners.
type world struct {
	*testing.T
	runtime               string
	server                *rig.Server
	attacker, bystander   *rig.Client
	attacked, undisturbed string // their sessions
}

// eachWorld runs a test on every runtime that is here.
func eachWorld(t *testing.T, test func(w *world), flags ...string) {
	for _, runtime := range rig.Runtimes(t) {
		t.Run(runtime, func(t *testing.T) {
			i := rig.Install(t, rig.RuntimeFlags(runtime)...)
			s := i.Serve(t, append([]string{"--pool-size", "0"}, flags...)...)
			w := &world{T: t, runtime: runtime, server: s, attacked: "attack", undisturbed: "quiet"}
			w.attacker = s.Connect(t, s.Token(t, "--subject", "mallory"), false)
			w.bystander = s.Connect(t, s.Token(t, "--subject", "bob"), false)
			w.wantText(w.call(w.bystander, "write_file", map[string]any{"session_id": w.undisturbed, "path": "secret-of-another.txt", "content": "s3cret"}), "secret-of-another.txt")
			w.wantText(w.python(w.bystander, w.undisturbed, "x = 41"))
			test(w)
			w.bystanderWorks()
		})
	}
}

// call calls a tool, which must answer in time.
func (w *world) call(c *rig.Client, tool string, args map[string]any) rig.Result {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	r, err := c.Call(ctx, tool, args, nil)
	if err != nil {
		w.Fatalf("%s: %v\n%s", tool, err, w.server.Log())
	}
	return r
}

// python runs a cell to its end.
func (w *world) python(c *rig.Client, session, code string) rig.Result {
	w.Helper()
	return w.call(c, "execute_python", map[string]any{"session_id": session, "code": code, "timeout_seconds": 120, "wait_seconds": 150})
}

// attack runs a cell of the attacker's.
func (w *world) attack(code string) rig.Result {
	w.Helper()
	return w.python(w.attacker, w.attacked, code)
}

// bystanderWorks checks that the other owner has lost nothing and need not wait long.
func (w *world) bystanderWorks() {
	w.Helper()
	began := time.Now()
	w.wantText(w.python(w.bystander, w.undisturbed, "print(x + 1, open('secret-of-another.txt').read())"), "42 s3cret")
	if took := time.Since(began); took > 30*time.Second {
		w.Errorf("the bystander's cell took %s", took)
	}
}

func (w *world) wantText(r rig.Result, parts ...string) {
	w.Helper()
	if r.IsError {
		w.Errorf("an error: %s", r.Text)
	}
	for _, part := range parts {
		if !strings.Contains(r.Text, part) {
			w.Errorf("%q is missing in:\n%s", part, r.Text)
		}
	}
}

// finding is what became of one probe.
type finding struct{ Group, What, Verdict, Detail string }

// TestProbes tries what one process can try against its kernel, its shim, its neighbours and its host.
func TestProbes(t *testing.T) {
	eachWorld(t, func(w *world) {
		at, err := url.Parse(w.server.URL)
		if err != nil {
			w.Fatal(err)
		}
		w.wantText(w.call(w.attacker, "write_file", map[string]any{"session_id": w.attacked, "path": "probes.py", "content": probes}))
		r := w.attack(fmt.Sprintf("import os\nKERNEL, PORT = os.getpid(), %s\nexec(open('probes.py').read())\nrun()", at.Port()))
		w.wantText(r, "all probes were made")
		w.judge(findings(w.call(w.attacker, "read_file", map[string]any{"session_id": w.attacked, "path": "verdicts.jsonl"}).Text))
		w.wantText(w.attack("print('still here')"), "still here")
	})
}

func findings(text string) (all []finding) {
	for line := range strings.Lines(text) {
		var f finding
		if json.Unmarshal([]byte(line), &f) == nil && f.Verdict != "" {
			all = append(all, f)
		}
	}
	return all
}

// judge prints the table, and fails for what is neither refused nor contained, nor documented.
func (w *world) judge(found []finding) {
	w.Helper()
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	defer table.Flush()
	for _, f := range found {
		verdict := f.Verdict
		if why := documented[f.What]; why != "" && verdict != "refused" && verdict != "contained" {
			verdict = "documented"
			f.Detail += " (" + why + ")"
		}
		if verdict != "refused" && verdict != "contained" && verdict != "documented" {
			w.Errorf("%s: %s: %s: %s", f.Group, f.What, verdict, f.Detail)
		}
		if testing.Verbose() {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.90s\n", w.runtime, f.Group, f.What, verdict, f.Detail)
		}
	}
}

// documented is what an attack reaches and docs/security.md says so.
var documented = map[string]string{}
