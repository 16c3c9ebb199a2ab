//go:build linux

package sessions_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"cellblock/images"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
)

// What a notebook has in memory is there again on the next kernel, as it was: what is shared is shared, functions see the session's names.
func TestRealVariablesAreBack(t *testing.T) {
	python := images.Python(kernelstest.Python.Argv[0])
	m := newReal(t, func(c *sessions.Config) {
		c.SaveVariables, c.IdleTimeout = true, time.Second
		c.Runtimes = map[string]sessions.Runtime{"python": {Kernelspec: kernelstest.Python, Save: python.Save, Load: python.Load}}
	})
	run := func(code string) (text, told string) {
		t.Helper()
		e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", code))
		if r := sessions.WaitFor(t, e); r.Error != nil {
			t.Fatalf("%s: %+v", code, r.Error)
		}
		return printed(e), e.Preamble()
	}
	culled := func() {
		t.Helper()
		for {
			changed := m.Changed(sessions.Alice, "s")
			if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || info.State == sessions.Culled {
				return
			}
			<-changed
		}
	}
	run(strings.Join([]string{
		"import os, sys, sqlite3, collections, dataclasses, functools, random, json as j",
		"os.environ['MINE'] = 'é=1'; del os.environ['HOME']; random.seed(7); random.random()",
		"os.makedirs('sub', exist_ok=True); os.chdir('sub'); sys.path.insert(0, '/workspace/lib')",
		"x = 1; data = {'a': [1, 2]}; alias = data; shared = [data]; _mine = 7; __own = 8",
		"def f(y=2): return x + y",
		"def counter():\n    n = 0\n    def up():\n        nonlocal n; n += 1; return n\n    return up",
		"up = counter(); up()",
		"@functools.lru_cache\ndef cached(n): return n * x",
		"@dataclasses.dataclass\nclass P:\n    v: int = 3\n    def m(self): return self.v + x",
		"p = P(5); P2 = P; T = collections.namedtuple('T', 'a b'); t = T(1, 2)",
		"class Bad(Exception):\n    def __init__(self, a, b): super().__init__(a)",
		"bad = Bad(1, 2); gen = (i for i in range(3)); conn = sqlite3.connect(':memory:')",
		"def uses(): return next(gen)",
		"import matplotlib.pyplot as plt\nfig = plt.subplots()[0]; plt.close()",
		"class Q:\n    made = []\n    def __init__(self): Q.made.append(self)",
		"class R:\n    @classmethod\n    def c(cls): return cls\n    @staticmethod\n    def s(): return x\n    @functools.cached_property\n    def v(self): return x",
		"q = Q(); made = Q.made; r = R()",
	}, "\n"))
	culled()
	text, told := run(strings.Join([]string{
		"x = 10",
		"print(f(), up(), cached(2), p.m(), P2 is P, alias is data, shared[0] is data, t, _mine, __own, j.dumps(data), os.getcwd(), sys.path[0], f.__globals__ is globals(), type(__builtins__).__name__)",
		"print(made is Q.made, made[0] is q, R.c() is R, R.s(), r.v)",
		"print(os.environ['MINE'], 'HOME' in os.environ, random.random())",
		"gen = iter([4]); print(uses(), [n for n in ('bad', 'conn') if n in globals()], sorted(os.listdir('/workspace')))",
	}, "\n"))
	want := `12 2 20 15 True True True T(a=1, b=2) 7 8 {"a": [1, 2]} /workspace/sub /workspace/lib True module` + "\nTrue True True 10 10\né=1 False 0.15084917392450192\n4 [] ['sub']\n"
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	for _, word := range []string{"its variables were saved. They are back", "bad (Bad)", "gen (generator)", "conn (sqlite3.Connection)"} {
		if !strings.Contains(told, word) {
			t.Errorf("it is not told %q: %s", word, told)
		}
	}
	culled()
	if text, told := run("print(x, f(), p.m())"); text != "10 12 15\n" || strings.Contains(told, "gen (") {
		t.Errorf("the second time %q, %s", text, told)
	}
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "fig"))
	sessions.WaitFor(t, e)
	pictures := 0
	for out := range e.SoFar(0) {
		if out.Data["image/png"] != nil {
			pictures++
		}
	}
	if pictures != 1 {
		t.Errorf("a figure that is back is shown as %d pictures", pictures)
	}
}

// What cannot be loaded any more takes with it only what has it in it: the others are back, also those that share something with that.
func TestRealVariablesAreBackButForThoseThatCannotBe(t *testing.T) {
	python := images.Python(kernelstest.Python.Argv[0])
	m := newReal(t)
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", strings.Join([]string{
		"import gc, pathlib, shutil, sys, threading, numpy as np",
		"class Locked:\n    def __getstate__(self): return 1\n    def __setstate__(self, state): self.lock = threading.Lock()",
		"class Ring:\n    def __init__(self): self.ring = self\n    def __setstate__(self, state): self.ring = self; sys.most = max(sys.most, rings())",
		"def rings(): return sum(type(o).__name__ == 'Ring' for o in gc.get_objects())",
		"locked, large, sys.most = Locked(), Ring(), 0",
		"pathlib.Path('lib.py').write_text('class Gone: pass\\ndef make(x): return x\\nclass Made:\\n    def __reduce__(self): return make, (1,)\\n')",
		"import lib",
		"shared, before = [1], np.arange(2)",
		"gone = lib.Gone(); gone.shared = shared; box = {'gone': lib.Gone(), 'array': np.arange(3)}; ring = []; ring.append((ring, gone))",
		"objects, made = np.array([gone, 1], dtype=object), lib.Made()",
		"class Heir(lib.Gone): pass",
		"class Refuses:\n    def __init__(self): self.much = 'x' * 200_000\n    def __getstate__(self): return {'much': self.much}\n    def __setstate__(self, state): raise ValueError('no more')",
		"class Looks:\n    def __getstate__(self): return {'part': self.part, 'shared': self.part.shared}",
		"refuses, heir, looks = Refuses(), Heir(), Looks(); looks.part = gone",
		"alias, behind = shared, np.arange(4)",
		"def f(): return behind.sum(), alias is shared",
		"eval(" + strconv.Quote(strings.ReplaceAll(python.Save, "{cell}", "1")) + ")",
		"del shared, before, gone, box, ring, objects, made, Heir, Refuses, refuses, heir, Looks, looks, alias, behind, f, Locked, locked, large, threading, sys.modules['lib']; gc.collect(); sys.most, trial = 0, rings()",
		"pathlib.Path('lib.py').write_text('def make(x): raise RuntimeError(\"not made\")')",
		"told = eval(" + strconv.Quote(python.Load) + ").text",
		"print(told)",
		"print(locked.lock.locked(), sys.most - trial)", // what is loaded sees what was loaded before, and nothing is there twice
		"print(shared, alias is shared, before, f(), Refuses.__name__, 'gone' in globals(), pathlib.Path('" + images.SavedFile + "').exists())",
	}, "\n")))
	if r := sessions.WaitFor(t, e); r.Error != nil {
		t.Fatalf("%+v", r.Error)
	}
	text := printed(e)
	for _, want := range []string{
		`gone (AttributeError: Can't get attribute 'Gone' on <module 'lib'`, `"box (the same)", "ring (the same)", "objects (the same)"`,
		`"made (RuntimeError: not made)", "Heir (Attr`, `"refuses (ValueError: no more)", "heir (Attr`, `"looks (the same)"`, `"more": 0, "why": ""`,
		"\nFalse 1\n[1] True [0 1] (6, True) Refuses False True\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
}

// What a kernel of an earlier version had saved comes back: an update is no loss.
func TestRealVariablesOfEarlierVersionsAreBack(t *testing.T) {
	load := strconv.Quote(images.Python(kernelstest.Python.Argv[0]).Load)
	m := newReal(t)
	for name, parts := range map[string][]string{
		"with nothing for the server": {"head", "{'folder': '/', 'path': ['/lib/mine']}", "[1, 2]", "'é'"},
		"without an environment":      {"{'cell': 3}", "head", "{'folder': '/', 'path': ['/lib/mine']}", "[1, 2]", "'é'"},
		"with random states": {"{'cell': 3}", "head", "{'folder': '/', 'path': ['/lib/mine'], 'environ': {'MINE': '1'}}", "[1, 2]", "'é'",
			"{'random': random.getstate(), 'numpy': None}"},
	} {
		t.Run(name, func(t *testing.T) {
			e := sessions.StartCell(t, m, sessions.Alice, sessions.Python(strings.ReplaceAll(name, " ", "-"), strings.Join([]string{
				"import json, os, pickle, random, sys",
				"head = {'python': sys.implementation.cache_tag, 'names': ['x', 'y'], 'left': ['gone (generator)'], 'more': 0}",
				"with open('" + images.SavedFile + "', 'wb') as f:",
				"    lines = True",
				"    for part in [" + strings.Join(parts, ", ") + "]:",
				"        f.write(json.dumps(part).encode() + b'\\n' if lines else pickle.dumps(part, protocol=5))",
				"        lines = lines and part is not head",
				"back = json.loads(eval(" + load + ").text)",
				"print(back['back'], back['left'], repr(back['why']), x, y, os.getcwd(), '/lib/mine' in sys.path)",
			}, "\n")))
			if r := sessions.WaitFor(t, e); r.Error != nil {
				t.Fatalf("%s: %s", r.Error.Name, r.Error.Value)
			}
			if got, want := printed(e), "2 ['gone (generator)'] '' [1, 2] é / True\n"; got != want {
				t.Errorf("got  %swant %s", got, want)
			}
		})
	}
}

// printed is what a cell has printed.
func printed(e *sessions.Execution) (text string) {
	for out := range e.SoFar(0) {
		text += out.Text
	}
	return text
}
