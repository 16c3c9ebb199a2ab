//go:build linux

package mcpserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cellblock/images"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
)

// evil is code whose objects notice when they are looked at.
const evil = `
armed, looks = False, []
def look(name):
    if armed: looks.append(name)
class Evil:
    def __repr__(self): look('repr'); return ''
    def __len__(self): look('len'); return 1
    def __getattribute__(self, name): look(name); return object.__getattribute__(self, name)
    def __sizeof__(self): look('sizeof'); return 1
    def __eq__(self, other): look('eq'); return False
    def __bool__(self): look('bool'); return True
    def __hash__(self): look('hash'); return 1
class Meta(type):
    def __getattribute__(cls, name): look('meta ' + name); return type.__getattribute__(cls, name)
    def __instancecheck__(cls, x): look('instance'); return False
class Worse(Evil, metaclass=Meta): pass
class Numbers(list):
    def __len__(self): look('len of a list'); return 1
    def __iter__(self): look('iter'); return iter([])
one, two, three = Evil(), Worse(), Numbers([1])
evils = [one, {one: two}, three]
held = np.empty(1, dtype=object)
held[0] = one
table = pd.DataFrame({'evil': held, 'n': [1]})
row = pd.Series(held)
seen = lambda: (globals().update(armed=False), looks)[1]
len = print = exec = str = 'shadowed'
armed = True`

func TestRealVariables(t *testing.T) {
	w := newRealWorld(t)
	inspect := func() (called, map[string]sessions.Variable) {
		t.Helper()
		began := time.Now()
		got := w.call("inspect_variables", map[string]any{"session_id": "v"})
		t.Logf("%v\n%.900s", time.Since(began).Round(time.Millisecond), got)
		var v sessions.Variables
		if got.isError || json.Unmarshal(got.structured, &v) != nil {
			t.Fatalf("%s %s", got, got.structured)
		}
		byName := map[string]sessions.Variable{}
		for _, one := range v.Variables {
			byName[one.Name] = one
		}
		return got, byName
	}
	w.run("v", "'first'").expect(t, false, "first")
	if got, v := inspect(); len(v) != 0 || got.String() != "Nothing is defined." {
		t.Errorf("a new session: %s", got)
	}
	w.run("v", "import numpy as np, pandas as pd\nx = 5\nnames = ['a', 'b']\nbig = 10 ** 100000\na = np.arange(12.).reshape(3, 4)\nhuge = np.zeros((3000, 3000))\n"+
		"df = pd.DataFrame({'x': [1, 2], 'y': ['a', 'b']})\nser = pd.Series([0.1 + 0.2, 2])\ndef f(a, *, b=1): pass\n_private = 1\nx").expect(t, false, "5")
	got, v := inspect()
	got.expect(t, false, "np · module · numpy", "x · int · 5", "names · list · 2 items · ", "['a', 'b']", "big · int · int of 332193 bits",
		"a · numpy.ndarray · 3×4 float64 · 96 bytes · [0, 1, 2, ", "huge · numpy.ndarray · 3000×3000 float64 · 68.7 MiB",
		"df · pandas.DataFrame · 2×2 · ", "x int64, y object", "ser · pandas.Series · float64 · 2 items · ", "[0.3, 2]", "f · function · f(a, *, b)")
	if _, there := v["_private"]; there || v["df"].Columns[1].Name != "y" || *v["names"].Length != 2 || v["huge"].Shape[0] != 3000 {
		t.Errorf("%+v", v)
	}

	// Nothing is left behind: no name, no output, no count, and _ is still the last result.
	w.run("v", "print(_, len(In), list(Out))").expect(t, false, "5 4 [1, 2]\n[session v · cell 3")
	w.run("v", "before = list(globals()) + ['before']").expect(t, false)
	inspect()
	w.run("v", "print(sorted(n for n in set(globals()) - set(before) if not n.startswith('_')))").expect(t, false, "[]\n[session v · cell 5")

	w.run("v", evil).expect(t, false)
	got, v = inspect()
	if v["one"].Type != "Evil" || v["two"].Type != "Worse" || v["evils"].Preview != "[<Evil>, <dict of 1>, <Numbers>]" {
		t.Errorf("%s", got)
	}
	if v["row"].Preview != "[<Evil>]" || v["table"].Columns[0].Name != "evil" || v["held"].Preview != "" {
		t.Errorf("%+v %+v %+v", v["row"], v["table"], v["held"])
	}
	w.run("v", "seen()").expect(t, false, "[]\n[session")

	w.run("v", "for i in __builtins__.range(1000): globals()[f'n{i}'] = 'x' * 1000").expect(t, false)
	if got, v := inspect(); len(v) < 100 || len(got.structured) > maxVariables+200 || v["n999"].Name == "" || !strings.Contains(got.String(), "variables older, larger or imported left out here") {
		t.Errorf("%d of 1000: %.300s", len(v), got)
	}

	w.execute("v", "import time; time.sleep(4)", map[string]any{"wait_seconds": 1}).expect(t, false, "still running")
	w.call("inspect_variables", map[string]any{"session_id": "v"}).expect(t, true, "is running cell 9", "get_execution waits for it")
	w.get("v", 9, nil).expect(t, false, "ok")
}

// What a star brings does not hide what is the user's own, older or not; a name that he has given something else is his.
func TestRealVariablesBesideImported(t *testing.T) {
	w := newRealWorld(t)
	w.run("v", "mine = 1\nfrom numpy import *\nfrom math import *\nfrom collections import OrderedDict\npi = 3\nalias = mean\nclass Own: pass\nimport os").expect(t, false)
	got := w.call("inspect_variables", map[string]any{"session_id": "v"})
	var v sessions.Variables
	if got.isError || json.Unmarshal(got.structured, &v) != nil {
		t.Fatalf("%s %s", got, got.structured)
	}
	var names []string
	for _, one := range v.Variables {
		names = append(names, one.Name)
	}
	last := max(0, len(names)-5)
	if own := strings.Join(names[last:], " "); own != "mine pi alias Own os" || last != 20 || v.More < 400 {
		t.Errorf("%q, %d more", names, v.More)
	}

	// Neither many of both nor a module's name without an end takes more than the time that there is.
	w.run("v", "def far(): pass\nfar.__module__ = '.' * 1_000_000\nfor i in __builtins__.range(100_000): globals()[f'n{i}'] = i").expect(t, false)
	w.call("inspect_variables", map[string]any{"session_id": "v"}).expect(t, false, "n99999")
}

// A kernel that does not answer is interrupted, and the session goes on.
func TestRealVariablesThatTakeTooLong(t *testing.T) {
	w := newRealWorld(t)
	w.run("v", "x = 1\nimport sys, time\nsys.modules['IPython'].get_ipython = lambda: time.sleep(60)").expect(t, false)
	began := time.Now()
	w.call("inspect_variables", map[string]any{"session_id": "v"}).expect(t, true, "did not describe its variables within 2 seconds", "print what you want to know")
	if d := time.Since(began); d > 4*time.Second {
		t.Errorf("it took %v", d)
	}
	w.run("v", "x").expect(t, false, "1\n[session v · cell 2 · ok")
}

// The program goes with every call, so it is short; and it is one expression.
func TestVariablesProgram(t *testing.T) {
	kernelstest.NeedPython(t)
	if n := len(images.Python(images.PythonInterpreter).Variables); n > 16<<10 {
		t.Errorf("%d bytes", n)
	}
	cmd := exec.Command("/usr/bin/python3", "-W", "error", "-c", "import sys, ast; ast.parse(sys.stdin.read(), mode='eval')")
	cmd.Stdin, cmd.Stderr = strings.NewReader(images.Python(images.PythonInterpreter).Variables), os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

// R's are told like others: no method of the user's is called for that, nothing is forced, and the kernel is as it was.
func TestRealVariablesOfR(t *testing.T) {
	w, run := languageWorld(t, kernelstest.R)
	inspect := func() string { return w.call("inspect_variables", map[string]any{"session_id": "s"}).String() }
	run(`evil <- function(...) { seen <<- TRUE; stop("evil") }
for (name in c("print", "format", "length", "dim", "names", "as.character", "[", "[[")) registerS3method(name, "evil", evil)
format.numeric <- head.list <- unclass <- ls <- evil
seen <- FALSE; bad <- structure(list(a = 1, 2:3), class = "evil"); bad2 <- structure(1:3, class = "evil")
setClass("P", representation(name = "character")); setMethod("length", "P", evil); p <- new("P", name = "ada")
makeActiveBinding("active", evil, globalenv()); delayedAssign("promise", evil()); data(iris)
df <- data.frame(x = c(1.5, 2), g = factor(c("u", "v")), when = as.Date("2024-01-01") + 0:1); m <- matrix(1:6 / 3, 2)
f <- function(a, b = 2, ...) a; fit <- lm(mpg ~ wt, mtcars); e <- new.env(); e$k <- 1; fo <- y ~ x + k; none <- NULL; s <- "a \"q\""; n <- 1:1e9; ss <- c(k = "a", NA)
day <- as.Date("2024-01-02"); huge <- as.list(1:1e6); bytes <- as.raw(1:3); odd <- "\xff"; missing <- quote(expr = ); empty <- matrix(0, 0, 3)
set.seed(1); drawn <- runif(1)`).expect(t, false)
	got := inspect()
	for _, line := range []string{
		"active · active binding", "bad · evil · 2 items · 32 bytes · list(a = 1, <integer of 2>)", "bad2 · evil · 3 items · 12 bytes · c(1, 2, 3)",
		"bytes · raw · 3 items · 3 bytes · c(01, 02, 03)", "day · Date · 2024-01-02", "df · data.frame · 2×3 · 64 bytes · x numeric, g factor, when Date",
		"drawn · numeric · 0.2655087", "e · environment · 1 item", "empty · matrix · 0×3 double · 0 bytes · c()", "f · function · function(a, b, ...)", "fo · formula · y ~ x + k",
		"huge · list · 1,000,000 items · list(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)",
		"iris · data.frame · 150×5 · 5.3 KiB · Sepal.Length numeric, Sepal.Width numeric, Petal.Length numeric, Petal.Width numeric, Species factor",
		"m · matrix · 2×3 double · 48 bytes · c(0.3333333, 0.6666667, 1, 1.333333, 1.666667, 2)", "missing · not described",
		"n · integer · 1,000,000,000 items · 3.7 GiB · c(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)", "none · NULL", `odd · character · "<ff>"`, "p · P · (@name)", "promise · promise",
		`s · character · "a \"q\""`, "seen · logical · FALSE", `ss · character · 2 items · 16 bytes · c(k = "a", NA)`,
	} {
		if !strings.Contains("\n"+got+"\n", "\n"+line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
	if !strings.Contains(got, "\nfit · lm · 12 items · ") || t.Failed() {
		t.Error(got)
	}
	run("rm(format.numeric); was <- runif(1); set.seed(1); c(seen, runif(2)[2] == was, exists('cellblock'))").expect(t, false, "[1] FALSE  TRUE FALSE", "cell 2 · ok")
	run("rm(list = base::ls()); for (i in 1:300) assign(paste0('v', i), i)")
	if got := inspect(); !strings.HasPrefix(got, "… ") || strings.Contains(got, "v99") {
		t.Error(got)
	}
}
