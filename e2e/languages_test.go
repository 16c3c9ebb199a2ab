package e2e

import (
	"slices"
	"strings"
	"testing"

	"cellblock/e2e/rig"
)

// script is what is tried in a language: the same in each.
type script struct {
	language string
	// keep makes 6 and 7 known; use shows their product in a later cell. fail ends with an error that says "broken". loop
	// never ends. plot draws, with the language's own means or as its kernel shows pictures; empty where it has neither.
	keep, use, fail, loop, plot string
}

// showDot shows a picture of one dot: Node.js draws nothing itself.
const showDot = `display.png(Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64"))`

var scripts = []script{
	{"python", "a, b = 6, 7", "a * b", "raise ValueError('broken')", "while True: pass",
		"import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"},
	{"javascript", "let a = 6, b = 7", "a * b", "throw new Error('broken')", "for (;;);", showDot},
	{"typescript", "let a: number = 6, b: number = 7", "a * b", "throw new Error('broken')", "for (;;);", showDot},
	{"bash", "a=6; b=7", "echo $((a * b))", "echo broken; false", "while :; do :; done", ""},
	{"r", "a <- 6; b <- 7", "a * b", "stop('broken')", "while (TRUE) {}", "plot(1:3)"},
	{"csharp", "var a = 6; var b = 7;", "a * b", "throw new Exception(\"broken\");", "while (true) {}", ""},
}

// Every language that is here does the same things in the same way.
func TestLanguagesDoTheSame(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t), false)
		tools := c.ToolNames(t)
		for _, l := range scripts {
			if !slices.Contains(tools, "execute_"+l.language) {
				t.Logf("SKIPPED in part: %s is not among the languages of %s", l.language, runtime)
				continue
			}
			t.Run(l.language, func(t *testing.T) { tryLanguage(t, c, l) })
		}
	})
}

func tryLanguage(t *testing.T, c *rig.Client, l script) {
	run := func(code string, more ...any) rig.Result {
		args := map[string]any{"code": code, "session_id": l.language}
		if len(more) > 0 {
			args["timeout_seconds"] = more[0]
		}
		return call(t, c, "execute_"+l.language, args)
	}
	if r := run(l.keep); r.IsError {
		t.Fatal(r.Text)
	}
	if r := run(l.use); r.IsError || !strings.Contains(r.Text, "42") {
		t.Errorf("a later cell: %s", r.Text)
	}
	if r := call(t, c, "inspect_variables", map[string]any{"session_id": l.language}); r.IsError || !strings.Contains("\n"+r.Text, "\na · ") {
		t.Errorf("variables: %s", r.Text)
	}
	if r := run(l.fail); !r.IsError || !strings.Contains(r.Text, "broken") {
		t.Errorf("an error: %s", r.Text)
	}
	if r := run(l.loop, 1); !r.IsError || !strings.Contains(r.Text, "An interrupt was enough. Variables are kept.") {
		t.Errorf("an endless loop: %s", r.Text)
	}
	if r := run(l.use); !strings.Contains(r.Text, "42") {
		t.Errorf("after the interrupt: %s", r.Text)
	}
	if l.plot != "" {
		if r := run(l.plot); len(r.Images) != 1 {
			t.Errorf("%d images of a plot: %s", len(r.Images), r.Text)
		}
	}
	wantText(t, call(t, c, "list_sessions", map[string]any{}).Text, l.language+" · "+l.language+" · idle")
}
