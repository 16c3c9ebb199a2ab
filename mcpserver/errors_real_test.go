//go:build linux

package mcpserver

import (
	"strings"
	"testing"

	"cellblock/images"
)

// Errors as a model gets them from a real kernel: all of them, in its own frames, where they happened.
func TestRealErrors(t *testing.T) {
	w := newRealWorld(t)
	w.run("e", "%%writefile own.py\ndef g(): return 1/0\ng()").expect(t, false, "cell 1 · ok")
	runOwn := strings.NewReplacer("{path}", "'/workspace/own.py'", "{args}", "[]").Replace(images.Python(images.PythonInterpreter).RunFile)
	for _, tt := range []struct{ name, code, want string }{
		{"direct cause", "try:\n    int('q')\nexcept ValueError as e:\n    raise RuntimeError('outer') from e",
			"Cell In [2], line 2\n----> 2     int('q')\nValueError: invalid literal for int() with base 10: 'q'\n" +
				"The above exception was the direct cause of the following exception:\nCell In [2], line 4\n----> 4     raise RuntimeError('outer') from e\nRuntimeError: outer"},
		{"context", "try:\n    {}['a']\nexcept KeyError:\n    int('q')",
			"Cell In [3], line 2\n----> 2     {}['a']\nKeyError: 'a'\nDuring handling of the above exception, another exception occurred:\n" +
				"Cell In [3], line 4\n----> 4     int('q')\nValueError: invalid literal for int() with base 10: 'q'"},
		{"no context", "try:\n    {}['a']\nexcept KeyError:\n    raise ValueError('clean') from None", "Cell In [4], line 4\n----> 4     raise ValueError('clean') from None\nValueError: clean"},
		{"group", "def f(i):\n    if i: raise ValueError(i)\n    raise KeyError('k')\nfailed = []\nfor i in range(2):\n    try: f(i)\n    except Exception as e: failed.append(e)\nraise ExceptionGroup('several', failed)",
			"Cell In [5], line 8\n----> 8 raise ExceptionGroup('several', failed)\nExceptionGroup: several (2 sub-exceptions)\n" +
				"Sub-exception 1 of 2:\nCell In [5], line 6\n----> 6     try: f(i)\nCell In [5], line 3, in f(i)\n----> 3     raise KeyError('k')\nKeyError: 'k'\n" +
				"Sub-exception 2 of 2:\nCell In [5], line 6\n----> 6     try: f(i)\nCell In [5], line 2, in f(i)\n----> 2     if i: raise ValueError(i)\nValueError: 1"},
		{"groups in a group", "raise ExceptionGroup('outer', [ValueError(1), ExceptionGroup('inner', [TypeError('t')])])",
			"Cell In [6], line 1\n----> 1 raise ExceptionGroup('outer', [ValueError(1), ExceptionGroup('inner', [TypeError('t')])])\nExceptionGroup: outer (2 sub-exceptions)\n" +
				"Sub-exception 1 of 2:\nValueError: 1\nSub-exception 2 of 2:\nExceptionGroup: inner (1 sub-exception)\nSub-exception 2.1 of 1:\nTypeError: t"},
		{"a group as cause", "try:\n    raise ExceptionGroup('g', [ValueError(1)])\nexcept ExceptionGroup as e:\n    raise RuntimeError('wrapped') from e",
			"Cell In [7], line 2\n----> 2     raise ExceptionGroup('g', [ValueError(1)])\nExceptionGroup: g (1 sub-exception)\n" +
				"The above exception was the direct cause of the following exception:\nCell In [7], line 4\n----> 4     raise RuntimeError('wrapped') from e\nRuntimeError: wrapped\n" +
				"Sub-exception 1 of 1:\nValueError: 1"},
		{"notes", "e = ValueError('with a note')\ne.add_note('look here')\nraise e", "Cell In [8], line 3\n----> 3 raise e\nValueError: with a note\nlook here"},
		{"syntax", "x = 1\nif x == 1\n    print(x)", "Cell In [9], line 2\n    if x == 1\n             ^\nSyntaxError: expected ':'"},
		{"another syntax", "x = 1\nprint('x' 5)", "Cell In [10], line 2\n    print('x' 5)\n          ^\nSyntaxError: invalid syntax. Perhaps you forgot a comma?"},
		{"indentation", "def f():\nreturn 1", "Cell In [11], line 2\n    return 1\n    ^\nIndentationError: expected an indented block after function definition on line 1"},
		{"what open() is made of", "def f():\n    open('/nowhere/x', 'w')\nf()", "Cell In [12], line 3\n----> 3 f()\nCell In [12], line 2, in f()\n" +
			"----> 2     open('/nowhere/x', 'w')\nFileNotFoundError: [Errno 2] No such file or directory: '/nowhere/x'\n"},
		{"what print() is made of", "import sys\nsys.stdout.write(5)", "Cell In [13], line 2\n----> 2 sys.stdout.write(5)\nTypeError: "},
		{"a file that is run", runOwn, "File /workspace/own.py:2\n----> 2 g()\nFile /workspace/own.py:1, in g()\n----> 1 def g(): return 1/0\nZeroDivisionError: "},
		{"a file that is not there", strings.Replace(runOwn, "own.py", "other.py", 1), "FileNotFoundError: [Errno 2] No such file or directory: '/workspace/other.py'\n"},
		{"a library's frames", "import pandas as pd\npd.DataFrame({'a': [1]})['b']", "KeyError: 'b'\nThe DataFrame's columns: 'a'"},
		{"many columns", "pd.DataFrame([range(50)])['b']", "KeyError: 'b'\nThe DataFrame's columns: 0, 1, 2, "},
		{"a key of a Series", "pd.Series({'a': 1})['b']", "KeyError: 'b'"},
		{"a bracket", "x = 1\nprint(x", "Cell In [19], line 2\n    print(x\n         ^\nSyntaxError: '(' was never closed"},
		{"a column that cannot be told", "class C:\n    def __repr__(self): raise ValueError(1)\npd.DataFrame({C(): [1]})['b']", "KeyError: 'b'\n[session"},
	} {
		t.Run(tt.name, func(t *testing.T) { w.run("e", tt.code).expect(t, true, tt.want) })
	}
}

// A script that is no Python is told in its own line alone; what imports such a one is where that happened.
func TestRealErrorsOfScripts(t *testing.T) {
	w := newRealWorld(t)
	w.run("s", "%%writefile bad.py\nx = 1\ndef f(:").expect(t, false)
	const said = "File /workspace/bad.py:2\n    def f(:\n          ^\nSyntaxError: invalid syntax\n"
	got := w.call("execute_file", map[string]any{"session_id": "s", "path": "bad.py"})
	if got.expect(t, true, said); !strings.HasPrefix(got.String(), said) {
		t.Error(got)
	}
	w.run("s", "import bad").expect(t, true, "Cell In [3], line 1\n    import bad\n"+said)
}

// Whatever of pandas does not find a column tells those that are there; what looks for rows, or for something of the user's own, does not.
func TestRealErrorsTellColumns(t *testing.T) {
	w := newRealWorld(t)
	w.run("p", "import pandas as pd\ndf = pd.DataFrame({'city': ['a', 'b'], 'x': [1, 2]})\nother = pd.DataFrame({'k': [1]})\nclass Thing: pass").expect(t, false)
	const theirs = "\nThe DataFrame's columns: 'city', 'x'\n"
	for _, code := range []string{
		"df[['x', 'cty']]", "df.groupby('cty').x.mean()", "df.groupby('city')['cty'].mean()", "df.groupby('city').agg({'cty': 'mean'})",
		"df.agg({'cty': 'mean'})", "df.sort_values(['x', 'cty'])", "df.set_index('cty')", "df.drop(columns='cty')", "df.query('cty > 1')",
		"df.pivot_table(index='city', values='cty')", "df.pivot_table(index='cty', values='x')", "df.loc[0, 'cty']", "df.loc[:, 'cty']", "df.at[0, 'cty']", "df.merge(other, left_on='cty', right_on='k')",
		"df.plot(x='city', y='cty')", "df.plot.scatter(x='x', y='cty')", "df.dropna(subset=['cty'])", "df.drop_duplicates('cty')", "df.explode('cty')", "df.pop('cty')", "del df['cty']",
	} {
		w.run("p", code).expect(t, true, theirs)
	}
	for _, code := range []string{"df.iloc[0]['cty']", "df.apply(lambda row: row['cty'], axis=1)", "for _, row in df.iterrows(): row['cty']"} {
		w.run("p", code).expect(t, true, "\nThe Series' labels: 'city', 'x'\n")
	}
	w.run("p", "df.cty").expect(t, true, "'DataFrame' object has no attribute 'cty'") // and what Python guesses, or the columns
	w.run("p", "df.merge(other, on='city')").expect(t, true, "KeyError: 'city'\nThe DataFrame's columns: 'k'\n")
	for _, code := range []string{
		"pd.Series(dtype=object)['zzz']", "df.loc['zzz']", "df.loc[99, 'x']", "df.at[99, 'x']", "df.drop(99)", "df.sort_values('zzz', axis=1)", "df.x['zzz']", "{}['a']", "Thing().cty",
		"df.set_index(['city', 'x']).assign(y=1).loc['a', 99]", "df.set_index(['city', 'x']).assign(y=1).loc[('zzz', 1)]",
		"df.groupby(lambda i: {}[i]).sum()", "df.assign(z=lambda d: {}['a'])", "df.apply(lambda row: {}['a'], axis=1)", "df.plot(x='x', y='x')",
	} {
		if got := w.run("p", code).String(); !strings.Contains(got, "Error: ") || strings.Contains(got, "The DataFrame's columns") || strings.Contains(got, "labels:") {
			t.Errorf("%s: %s", code, got)
		}
	}
}

// What Python guesses that a name was meant to be is told, too. Before 3.12, it says so only where it prints an error itself.
func TestRealErrorsGuessNames(t *testing.T) {
	w := newRealWorld(t)
	w.run("g", `import sys, traceback
if sys.version_info < (3, 12):
    class Guessing(traceback.TracebackException):
        def __str__(self):
            return super().__str__() + {"name 'prnt' is not defined": ". Did you mean: 'print'?", "'str' object has no attribute 'uper'": ". Did you mean: 'upper'?"}.get(super().__str__(), "")
    traceback.TracebackException = Guessing`).expect(t, false)
	w.run("g", "prnt(1)").expect(t, true, "Cell In [2], line 1\n----> 1 prnt(1)\nNameError: name 'prnt' is not defined. Did you mean: 'print'?\n[session")
	w.run("g", "try:\n    'a'.uper()\nexcept AttributeError as e:\n    e.add_note('look here')\n    raise").expect(t, true,
		"----> 2     'a'.uper()\nAttributeError: 'str' object has no attribute 'uper'. Did you mean: 'upper'?\nlook here\n[session")
	w.run("g", "zzzzzzzz").expect(t, true, "NameError: name 'zzzzzzzz' is not defined\n[session")
	w.run("g", "class Odd(NameError):\n    def __str__(self): raise ValueError\nraise Odd('x')").expect(t, true, "Odd")
}

// Older ones say since 3.10 which name it was, and of what: that is enough to guess.
func TestRealErrorsGuessNamesOfOldPythons(t *testing.T) {
	w := newRealWorld(t)
	if got := w.run("g", "import sys; sys.version_info >= (3, 10)"); !strings.HasPrefix(got.String(), "True\n") {
		t.Skip("this Python says no names")
	}
	w.run("g", "import pandas as pd\nincome = pd.DataFrame({'region': [1]})\nclass Odd:\n    def __dir__(self): raise ValueError\nclass Own:\n    def total(self): return 1").expect(t, false)
	for code, want := range map[string]string{
		"prnt(1)": "name 'prnt' is not defined. Did you mean: 'print'?", "incme": "Did you mean: 'income'?", "'a'.uper()": "Did you mean: 'upper'?",
		"def f(rows): return rws\nf(1)": "Did you mean: 'rows'?", "Own().totl()": "Did you mean: 'total'?", "income.regon": "Did you mean: 'region'?\n[session",
		"class P:\n    @property\n    def region(self): raise AttributeError('own', name='region', obj=self)\nP().region":         "AttributeError: own\n[session",
		"class Q:\n    @property\n    def dt(self): raise AttributeError('only dates have one')\n    def dot(self): pass\nQ().dt": "only dates have one\n[session",
		"zzzzzzzz": "not defined\n[session", "Odd().x": "no attribute 'x'\n[session", "raise NameError('own')": "NameError: own\n[session",
		"raise AttributeError('own')": "AttributeError: own\n[session", "raise AttributeError('no uper\\nuse more', name='uper', obj='a')": "use more\n[session",
	} {
		w.run("g", code).expect(t, true, want)
	}
}

// Of what is misspelt, the right name is all the advice there is: no package is missing, and no file has to be written first.
func TestRealErrorsGuessModulesAndFiles(t *testing.T) {
	w := newRealWorld(t)
	w.run("g", "import os\nos.makedirs('data')\nopen('data/sales.csv', 'w').close(); open('own_helpers.py', 'w').close()").expect(t, false)
	for code, want := range map[string]string{
		"import panda": "No module named 'panda'. Did you mean: 'pandas'?", "import matplotlib.pylot": "Did you mean: 'matplotlib.pyplot'?",
		"import own_helper": "Did you mean: 'own_helpers'?", "from json import lods": "Did you mean: 'loads'?",
		"import itertool": "Did you mean: 'itertools'?", "open('data/sale.csv')": "'data/sale.csv'. Did you mean: 'sales.csv'?",
		"from pathlib import Path; Path('own_helper.py').read_text()": "Did you mean: 'own_helpers.py'?",
	} {
		if got := w.run("g", code); !strings.Contains(got.String(), want+"\n[session") {
			t.Errorf("%s: %s", code, got)
		}
	}
	for code, want := range map[string]string{
		"import torch": "No module named 'torch'\nHint: torch is not installed", "open('other.csv')": "'other.csv'\nHint: The kernel sees the files",
		"open('nowhere/sales.csv')": "Hint: ", "import json.xyzzy": "No module named 'json.xyzzy'\n[session",
	} {
		w.run("g", code).expect(t, true, want)
	}
	const gone = ". The working directory has been deleted: os.chdir() to another one first\n[session"
	w.run("g", "os.mkdir('gone'); os.chdir('gone'); os.rmdir('/workspace/gone')\nopen('x.csv')").expect(t, true, "'x.csv'"+gone)
	w.run("g", "os.getcwd()").expect(t, true, "No such file or directory"+gone)
	if got := w.run("g", "open('/nowhere/x.csv')"); strings.Contains(got.String(), "has been deleted") {
		t.Errorf("of a path that is not below it: %s", got)
	}
}

// An exception that fails to say what it is has a class, a line and a reply.
func TestRealErrorsThatCannotSpeak(t *testing.T) {
	w := newRealWorld(t)
	w.run("s", "class Dumb(ValueError):\n    def __str__(self): return self.missing\nraise Dumb(1)").expect(t, true,
		"Cell In [1], line 3\n----> 3 raise Dumb(1)\nDumb: <what it says is not known: Dumb.__str__ raised AttributeError>\n[session s · cell 1 · error")
	w.run("s", "try: raise Dumb(1)\nexcept Dumb as e: raise KeyError('k') from e").expect(t, true, "Dumb: <what it says is not known", "KeyError: 'k'\n[session s · cell 2 · error")
	w.run("s", "raise ExceptionGroup('g', [Dumb(1)])").expect(t, true, "Sub-exception 1 of 1:\nDumb: <what it says is not known")
	w.run("s", "try: raise Dumb(1)\nexcept Dumb as e: print(type(e).__name__, isinstance(e, Dumb))").expect(t, false, "Dumb True")
	for _, kind := range []string{
		"from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Mute(Exception):\n    x: int\n",
		"class Mute(Exception):\n    def __init_subclass__(cls): raise ValueError('nothing is to be below it')\n",
	} {
		w.run("s", kind+"    def __str__(self): return self.missing\nraise Mute(1)").expect(t, true, "Mute: <what it says is not known: Mute.__str__ raised AttributeError>\n[session")
	}
}

// Of a worker's traceback, the frames of who runs it are left out.
func TestRealErrorsOfWorkers(t *testing.T) {
	w := newRealWorld(t)
	w.run("w", "from multiprocessing import Pool\nfrom concurrent.futures import ProcessPoolExecutor\ndef work(i):\n    return 1 / i").expect(t, false)
	for _, code := range []string{"with ProcessPoolExecutor(1) as pool: list(pool.map(work, [0]))", "with Pool(1) as pool: pool.map(work, [0])"} {
		got := w.run("w", code)
		got.expect(t, true, "  File \"<cell>\", line 4, in work\n    return 1 / i\n", "ZeroDivisionError: division by zero\nThe above exception was the direct cause")
		if lines := strings.Count(got.String(), "\n"); lines > 15 || strings.Contains(got.String(), "_process_worker") {
			t.Error(got)
		}
	}
	for _, code := range []string{"import math\nwith ProcessPoolExecutor(1) as pool: list(pool.map(math.sqrt, ['x']))", "with Pool(1) as pool: pool.map(int, ['x'])"} {
		if got := w.run("w", code).String(); strings.Count(got, "Error: ") != 1 || strings.Contains(got, "Remote") {
			t.Errorf("what a library's function says there is told once:\n%s", got)
		}
	}
}

// A worker's group of exceptions is told, and a message that ends with a quote has it.
func TestRealMessagesOfWorkers(t *testing.T) {
	w := newRealWorld(t)
	w.run("w", "from concurrent.futures import ProcessPoolExecutor\ndef several(i): raise ExceptionGroup('several', [ValueError(i)])\ndef quote(i): raise ValueError('no \"x\"')").expect(t, false)
	run := func(name string) string {
		return w.run("w", "with ProcessPoolExecutor(1) as pool: list(pool.map("+name+", [7]))").String()
	}
	if got := run("several"); !strings.Contains(got, "ExceptionGroup: several (1 sub-exception)\n") || !strings.Contains(got, "ValueError: 7") || strings.Contains(got, "Unexpected exception") {
		t.Error(got)
	}
	if got := run("quote"); strings.Count(got, "ValueError: no \"x\"\n") != 2 {
		t.Error(got)
	}
}

// A command that fails is told so, though its cell goes on.
func TestRealCommandsThatFail(t *testing.T) {
	w := newRealWorld(t)
	w.run("c", "!exit 3\n!true\n!kill -9 $$\nquiet = !false\nprint('on')").expect(t, false, "[exit status 3]\n[ended by SIGKILL]\non\n[session")
	w.run("c", "def f():\n    name = 'local'\n    !echo {name}; false\nf(); _exit_code").expect(t, false, "local\n[exit status 1]\n1\n[session")
}

// Of a program that fails, what it printed is told where the code has kept it and nobody has seen it.
func TestRealErrorsOfPrograms(t *testing.T) {
	w := newRealWorld(t)
	w.run("p", "import subprocess\ndef sh(code, **options): return subprocess.run(code, shell=True, check=True, **options)").expect(t, false)
	for _, tt := range []struct{ code, want string }{
		{"sh('echo made it >&2; exit 3', capture_output=True)", "returned non-zero exit status 3.\nIts stderr: made it\n[session"},
		{"sh('echo a; echo b; echo why >&2; exit 3', capture_output=True, text=True)", "status 3.\nIts stdout:\na\nb\nIts stderr: why\n[session"},
		{"subprocess.check_output('seq 100000; exit 3', shell=True)", "\n99999\n100000\n[session"},
		{"sh('echo seen >&2; exit 3')", "status 3.\n[session"},
		{"sh('echo so far; exec sleep 9', capture_output=True, timeout=0.3)", "timed out after 0.3 seconds\nIts stdout: so far\n[session"},
		{"try: sh('echo why >&2; exit 3', capture_output=True)\nexcept Exception as e: raise ValueError('no build') from e", "Its stderr: why\nThe above exception"},
	} {
		if got := w.run("p", tt.code); len(got.String()) > 4000 || !strings.Contains(got.String(), tt.want) {
			t.Errorf("%s\n%s", tt.code, got)
		}
	}
}

// A command that is to go on behind its cell does.
func TestRealCommandsInTheBackground(t *testing.T) {
	w := newRealWorld(t)
	w.run("b", "import os, time\nname = 'made'\n!(sleep 0.5; echo done; touch {name}) &\nos.path.exists(name), _exit_code").expect(t, false, "(False, 0)\n[session")
	w.run("b", "while not os.path.exists(name): time.sleep(0.05)").expect(t, false, "done\n")
	w.run("b", "!true &&").expect(t, false, "[exit status 2]\n[session")
}

// Code that reads a program's arguments finds none of the kernel's.
func TestRealArguments(t *testing.T) {
	w := newRealWorld(t)
	w.run("a", "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', default=3)\np.parse_args()").expect(t, false, "Namespace(n=3)")
	w.run("a", "p.parse_args(['--x'])").expect(t, true, "usage: cell [-h] [--n N]\ncell: error: unrecognized arguments: --x", "SystemExit: 2")
}

// A cell that leaves says where and with what, and gets no advice. One that has done what it should says no more than that.
func TestRealErrorsOfExit(t *testing.T) {
	w := newRealWorld(t)
	w.run("x", "import sys\ndef leave(): sys.exit('no data')").expect(t, false)
	for code, want := range map[string]string{"sys.exit(2)": "----> 1 sys.exit(2)\nSystemExit: 2", "sys.exit(0)": "SystemExit: 0", "sys.exit()": "SystemExit",
		"leave()": "----> 1 leave()\nCell In [1], line 2, in leave()\n----> 2 def leave(): sys.exit('no data')\nSystemExit: no data",
		"%nosuch": "UsageError: Line magic function `%nosuch` not found."} {
		got := w.run("x", code)
		text, _, _ := strings.Cut(got.String(), "\n[session")
		if _, frames, ok := strings.Cut(text, ", line 1\n"); ok {
			text = frames
		}
		if text != want {
			t.Errorf("%q, not %q", text, want)
		}
	}
}

// What IPython asks of each frame costs as much as there are modules, and deep recursion has thousands of frames.
func TestRealErrorsOfDeepRecursion(t *testing.T) {
	w := newRealWorld(t)
	w.run("d", "def f(n):\n    return f(n + 1)\nf(0)").expect(t, true,
		"Cell In [1], line 3\n----> 3 f(0)\nCell In [1], line 2, in f(n)\n", "similar frames: f at line 2 (", "RecursionError: maximum recursion depth exceeded")
	w.run("d", `import inspect
from IPython.core import ultratb
asked, look = [], inspect.getmodule
inspect.getmodule = lambda *of: asked.append(of) or look(*of)
try:
    f(0)
except RecursionError as e:
    step = e.__traceback__
found = set()
while step:
    found.add(ultratb.inspect.getmodule(step.tb_frame))
    step = step.tb_next
inspect.getmodule = look
print(len(asked) < 9, found)`).expect(t, false, "True {")
}

// After a restart the kernel counts anew; what a traceback says is still the number to ask for.
func TestRealErrorsAfterRestart(t *testing.T) {
	w := newRealWorld(t)
	w.run("r", "x = 1").expect(t, false, "cell 1 · ok")
	w.call("restart_session", map[string]any{"session_id": "r"}).expect(t, false, "fresh kernel")
	w.run("r", "def f(): return 1/0").expect(t, false, "cell 2 · ok")
	said := "Cell In [3], line 1\n----> 1 f()\nCell In [2], line 1, in f()\n"
	w.run("r", "f()").expect(t, true, said, "cell 3 · error")
	w.call("get_execution", map[string]any{"session_id": "r", "execution_id": 3}).expect(t, true, said)
	w.call("get_execution", map[string]any{"session_id": "r", "execution_id": 3, "offset": 0}).expect(t, false, said)
	w.run("r", "input('name? ')").expect(t, true,
		"Cell In [4], line 1\n----> 1 input('name? ')\nStdinNotImplementedError: nobody can answer input() here: put the value into the code\n[session")
	w.run("r", "import pandas as pd\npd.DataFrame({'a': [1]})['z']").expect(t, true,
		"Cell In [5], line 2\n----> 2 pd.DataFrame({'a': [1]})['z']\n  … 1 inner frame left out …\nFile ")
}

// Whatever asks where nobody can answer goes on at once: the code itself is told why, also where it deals with the error.
func TestRealQuestionsToNobody(t *testing.T) {
	w := newRealWorld(t)
	for _, tt := range []struct {
		code, want string
		failed     bool
	}{
		{"import getpass\ngetpass.getpass()", "StdinNotImplementedError: nobody can answer getpass() here: let the code read the secret from a file", true},
		{"try: input()\nexcept Exception as e: print('told:', e)", "told: nobody can answer input() here: put the value into the code", false},
		{"!read answer; echo \"got: <$answer>\"", "got: <>", false},
		{"def f(mine): \n    !echo {mine}\nf('a local name')", "a local name", false},
		{"open('pages', 'w').write('one\\ntwo\\n')\n!more -5 pages; more <pages; more none 2>&1 | grep -c cat", "one\ntwo\none\ntwo\n1\n", false},
		{"!exit 3\n_exit_code", "3", false},
		{"def f(x):\n    breakpoint()\n    return x + 1\nf(3)", "[stderr] breakpoint() is passed over: nobody can answer it here\n4", false},
		{"import pdb; pdb.set_trace()", "nobody can answer a debugger here: print what you want to see; after an error, sys.last_traceback has its frames", true},
		{"try: 1/0\nexcept Exception: get_ipython().showtraceback()\n%debug", "[stderr] nobody can answer a debugger here: print what you want to see; after an error, sys.last_traceback has its frames\n[session", false},
		{"%pdb on\n1/0", "ZeroDivisionError: division by zero\n[stderr] nobody can answer a debugger here: ", true},
		{"%pdb off", "turned OFF", false},
		{"import cmd\nclass Asks(cmd.Cmd): pass\nAsks().cmdloop()", "nobody can answer input() here", true},
	} {
		got := w.execute("q", tt.code, map[string]any{"timeout_seconds": 10})
		got.expect(t, tt.failed, tt.want)
		if strings.Contains(got.String(), "timed out") {
			t.Errorf("%s waits for an answer", tt.code)
		}
	}
}

// A breakpoint that somebody can answer stops where it stands.
func TestRealBreakpoints(t *testing.T) {
	w := newRealWorld(t)
	w.run("b", `from IPython.core import debugger
debugger.Pdb.set_trace = lambda self, frame: print('stops in', frame.f_code.co_name)
get_ipython().kernel._allow_stdin = True
def f():
    breakpoint()
f()`).expect(t, false, "stops in f\n[session")
}

// No file of a library, and no very long one, is parsed to tell of its frames, which takes half a second for pandas': the line and the
// function are known.
func TestRealErrorsOfLibrariesAreQuick(t *testing.T) {
	w := newRealWorld(t)
	w.run("l", "%%writefile own.py\nimport json\ndef read(text):\n    return json.loads(text)").expect(t, false)
	w.run("l", `import ast
parsed, parse = [], ast.parse
def noted(source, filename='<unknown>', *args, **options):
    if len(source) > 20:
        parsed.append(str(filename))
    return parse(source, filename, *args, **options)
ast.parse = noted
import own`).expect(t, false)
	w.run("l", "own.read('{')").expect(t, true, "----> 1 own.read('{')\nFile /workspace/own.py:3, in read(text)\n----> 3     return json.loads(text)\n",
		"inner frames left out", "in JSONDecoder.raw_decode(self, s, idx)\n", "self.scan_once(s, idx)\n", "JSONDecodeError: Expecting property name")
	w.run("l", "open('long.py', 'w').write('#\\n' * 10_000 + 'def fail(): return 1/0\\n')\nimport long\nlong.fail()").
		expect(t, true, "----> 3 long.fail()\nFile /workspace/long.py:10001, in fail()\n> 10001 def fail(): return 1/0\nZeroDivisionError")
	w.run("l", "sorted({f.rpartition('/')[2] for f in parsed if f.endswith(('own.py', 'long.py', '/decoder.py', '/json/__init__.py'))})").expect(t, false, "['own.py']")
}

// What Python itself prints of an error names no file of a cell, which nobody has ever seen, and begins with the user's own code.
func TestRealErrorsThatPythonPrints(t *testing.T) {
	w := newRealWorld(t)
	w.run("p", "import asyncio, gc, logging, threading, traceback\ndef f():\n    return 1/0\nt = threading.Thread(target=f, name='mine'); t.start(); t.join()").expect(t, false,
		"[stderr]\nException in thread mine:\nTraceback (most recent call last):\n  File \"<cell>\", line 3, in f\n    return 1/0\n", "\nZeroDivisionError: division by zero\n[session")
	for _, tt := range []struct{ code, want string }{
		{"class A:\n    def __del__(self): f()\na = A(); del a", "Exception ignored in A.__del__:\nTraceback (most recent call last):\n  File \"<cell>\", line 2, in __del__\n"},
		{"import weakref\nclass B:\n    def __repr__(self): f()\n    def __call__(self, _): f()\nb = B(); r = weakref.ref(b, B()); del b", "Exception ignored in B:\n"},
		{"async def g(): f()\nt = asyncio.create_task(g()); await asyncio.sleep(0); del t; gc.collect()", "coro=<g() done, defined at <cell>:1> exception=ZeroDivisionError"},
		{"done = asyncio.Event()\ndef late():\n    done.set(); f()\nasyncio.get_event_loop().call_soon(late); await done.wait()", "Exception in callback late() at <cell>:2"},
		{"try: f()\nexcept Exception: traceback.print_exc()", "  File \"<cell>\", line 1, in <module>\n    try: f()\n"},
		{"try: f()\nexcept Exception: logging.exception('bad')", "bad\nTraceback (most recent call last):\n  File \"<cell>\", line 1, in <module>\n"},
		{"t = threading.Thread(target=int, args=('q',)); t.start(); t.join()", "ValueError: invalid literal for int() with base 10: 'q'"},
		{"import sys\nt = threading.Thread(target=sys.exit); t.start(); t.join()\nprint('quiet')", "quiet\n[session"},
		{"kept = threading.excepthook\nthreading.excepthook = lambda e: print('my own', e.exc_type.__name__)\nt = threading.Thread(target=f); t.start(); t.join()\nthreading.excepthook = kept", "my own ZeroDivisionError\n[session"},
	} {
		got := w.run("p", tt.code)
		got.expect(t, false, tt.want)
		if strings.Contains(got.String(), "ipykernel_") || strings.Contains(got.String(), "threading.py\", line") && !strings.Contains(tt.code, "target=int") {
			t.Errorf("%s\n%s", tt.code, got)
		}
	}
}

// A stack that Python prints begins with the cell, not with what runs it.
func TestRealStacksBeginWithCells(t *testing.T) {
	w := newRealWorld(t)
	w.run("s", "import logging, traceback\ndef f(): traceback.print_stack()\nf()").expect(t, false, "[stderr]\n  File \"<cell>\", line 3, in <module>\n    f()\n  File \"<cell>\", line 2, in f\n")
	w.run("s", "logging.warning('%d', 'x')").expect(t, false, "Call stack:\n  File \"<cell>\", line 1, in <module>\n    logging.warning('%d', 'x')\nMessage: '%d'\n")
	w.run("s", "import asyncio\nasync def g(): f()\nawait g()").expect(t, false, "[stderr]\n  File \"<cell>\", line 3, in <module>\n    await g()\n")
	w.run("s", "len(traceback.StackSummary.extract(traceback.walk_stack(None))) > 0, len(traceback.extract_stack())").expect(t, false, "(True, 1)")
}

// A picture of Pillow's is shown where it is asked for, and no program of a desktop, which has no screen here, is asked to.
func TestRealPicturesOfPillow(t *testing.T) {
	w := newRealWorld(t)
	w.run("p", `import os
open('xdg-open', 'w').write('#!/bin/sh\necho asked\n'); os.chmod('xdg-open', 0o755)
os.environ['PATH'] = os.getcwd() + ':' + os.environ['PATH']`).expect(t, false)
	got := w.run("p", "from PIL import Image\nImage.new('RGB', (9, 9)).show(); print('after')")
	got.expect(t, false, "(image/png)\nafter\n[session")
	if strings.Contains(got.String(), "asked") {
		t.Error(got)
	}
}

// A figure is drawn once, and warns once, also where the cell's end shows it.
func TestRealFiguresAreDrawnOnce(t *testing.T) {
	w := newRealWorld(t)
	for _, code := range []string{
		"import matplotlib.pyplot as plt\nplt.title('\u65e5');",
		"plt.title('\u672c'); plt.show()",
		"plt.ioff(); plt.ion(); plt.title('\u4f60');",
	} {
		got := w.run("f", code).String()
		if n := strings.Count(got, "missing from"); n != 1 || strings.Count(got, "(image/png)") != 1 {
			t.Errorf("%d warnings\n%s", n, got)
		}
	}
}

// Who logs all that his own code says does not get a line for each font there is, unless he asks for these.
func TestRealFiguresLogNoFonts(t *testing.T) {
	w := newRealWorld(t)
	const plot = "plt.title('x', family=['serif']); plt.show()"
	got := w.run("l", "import logging; logging.basicConfig(level=logging.DEBUG); logging.debug('mine')\nimport matplotlib.pyplot as plt\n"+plot)
	got.expect(t, false, "DEBUG:root:mine\n", "(image/png)")
	if strings.Contains(got.String(), "findfont: score") {
		t.Error(got)
	}
	w.run("l", "logging.getLogger('matplotlib.font_manager').setLevel(0)\n"+strings.Replace(plot, "serif", "cursive", 1)).expect(t, false, "findfont: score")
}

// What keeps a figure from being drawn is told in a line or two, with the user's own line, and without IPython's frames.
func TestRealFiguresThatCannotBeDrawn(t *testing.T) {
	w := newRealWorld(t)
	w.run("f", "import matplotlib.pyplot as plt\nnames = {}\ndef label(x, pos):\n    return names[x]")
	for _, backend := range []string{"%matplotlib inline", "plt.switch_backend('agg')"} {
		for code, want := range map[string]string{
			`plt.title(r'$\frac{1$'); plt.show()`:                                   "A figure is not shown, as it cannot be drawn: ValueError: \\frac{1 ^ Expected",
			"plt.plot([1]); plt.gca().xaxis.set_major_formatter(label); plt.show()": "as it cannot be drawn: KeyError: -0.06\nIt ran: return names[x]\n",
		} {
			got := w.run("f", backend+"\n"+code)
			got.expect(t, false, want)
			if strings.Contains(got.String(), "formatters.py") || strings.Contains(got.String(), "image/png") {
				t.Errorf("%s: %s", code, got)
			}
		}
	}
}

// After use("Agg") figures are seen where they are shown, one by one, and what is chosen for people is sent as a picture, too.
func TestRealFiguresOfOtherBackends(t *testing.T) {
	w := newRealWorld(t)
	const two = "plt.plot([1, 2]); plt.show(); print('between'); plt.plot([2, 1]); plt.show(); print(plt.get_fignums())"
	for _, choose := range []string{"import matplotlib; matplotlib.use('Agg')\nimport matplotlib.pyplot as plt", "plt.switch_backend('agg')", "%matplotlib inline"} {
		got := w.run("f", choose+"\n"+two).String()
		if first, second := strings.Index(got, "(image/png)"), strings.LastIndex(got, "(image/png)"); first < 0 || first > strings.Index(got, "between") ||
			second < strings.Index(got, "between") || !strings.Contains(got, "[]") {
			t.Errorf("%s: %s", choose, got)
		}
	}
	for _, format := range []string{"svg", "pdf"} {
		got := w.run("f", "%config InlineBackend.figure_format = '"+format+"'\nplt.plot([1, 2]);").String()
		if strings.Count(got, "(image/png)") != 1 || strings.Contains(got, "not shown") {
			t.Errorf("%s: %s", format, got)
		}
	}
}
