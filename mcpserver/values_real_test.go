//go:build linux

package mcpserver

import (
	"strings"
	"testing"
)

// A warning of a cell's code names no file that nobody has seen.
func TestRealWarnings(t *testing.T) {
	w := newRealWorld(t)
	w.run("w", "import warnings\ndef f():\n    warnings.warn('careful')\nf()").expect(t, false, "[stderr]\n<cell>:3: UserWarning: careful\n  warnings.warn('careful')\n[session")
	loop := "for i in range(3): warnings.warn(f'no {i}')"
	for range 2 { // its line is told once in each cell
		w.run("w", loop).expect(t, false, "[stderr]\n<cell>:1: UserWarning: no 0\n  "+loop+"\n<cell>:1: UserWarning: no 1\n<cell>:1: UserWarning: no 2\n[session")
	}
	w.run("w", "warnings.simplefilter('always')\nopen('kept', 'w')\nNone").expect(t, false, "<cell>:2: ResourceWarning: unclosed file", "Enable tracemalloc to get the object allocation traceback")
	w.run("w", "%%writefile own.py\nimport warnings\nwarnings.warn('careful')").expect(t, false)
	w.run("w", "import own").expect(t, false, "/workspace/own.py:2: UserWarning: careful\n  warnings.warn('careful')\n[session")
}

// Values that nobody has printed stand in full lines where they are short, and otherwise as IPython has them.
func TestRealValues(t *testing.T) {
	w := newRealWorld(t)
	for _, tt := range []struct{ name, code, want string }{
		{"numbers", "list(range(5000))", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,\n 22, 23,"},
		{"more than are shown", "list(range(5000))", " 998,\n 999, ...]\n["},
		{"names", "tuple(f'column {i}' for i in range(9))", "('column 0', 'column 1', 'column 2', 'column 3', 'column 4', 'column 5',\n 'column 6', 'column 7', 'column 8')\n["},
		{"in others", "{'a': list(range(24)), 'b': [None]}", "{'a': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,\n  20, 21, 22, 23],\n 'b': [None]}\n["},
		{"as somebody wants them", "%precision 3\n[1 / 7] * 14", "[0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143,\n 0.143, 0.143, 0.143]\n["},
		{"long", "['x' * 40] * 2", "['" + strings.Repeat("x", 40) + "',\n '" + strings.Repeat("x", 40) + "']\n["},
		{"of other kinds", "[[1, 2]] * 30", "[[1, 2],\n [1, 2],\n"},
		{"itself", "x = []\nx.append(x)\nx", "[[...]]\n["},
		{"a single one", "('x' * 80,)", "('" + strings.Repeat("x", 80) + "',)\n["},
		{"none", "[]", "[]\n["},
		{"what would be the next cell", "open('own.py', 'w').write('x = 1')\n%load own.py", "# %load own.py\nx = 1\nFiles: own.py"},
		{"a page of help", "len?", "Signature: len(obj, /)\nDocstring: Return the number of items in a container.\nType:      builtin_function_or_method\n["},
	} {
		t.Run(tt.name, func(t *testing.T) { w.run("v", tt.code).expect(t, false, tt.want) })
	}
}

// A module that is written again at once, no longer than before, is loaded as it is now, also where a program has loaded it before.
func TestRealModuleWrittenAgain(t *testing.T) {
	w := newRealWorld(t)
	w.run("m", "%%writefile mod.py\nx = 'v1'").expect(t, false)
	w.run("m", "!python3 -c 'import mod; print(mod.x)'").expect(t, false, "v1")
	w.run("m", "import importlib, mod, os\nmod.x").expect(t, false, "'v1'")
	w.run("m", "at = os.stat('mod.py').st_mtime\nopen('mod.py', 'w').write(\"x = 'v2'\\n\")\nos.utime('mod.py', (at, at))\nimportlib.reload(mod).x").expect(t, false, "'v2'")
}
