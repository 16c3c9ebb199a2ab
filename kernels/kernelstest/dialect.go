package kernelstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"cellblock/kernels"
)

// Dialect says in one language what TestKernel needs said. An empty text leaves out what the language does not have.
type Dialect struct {
	// Language is the kernel_info's name of the language.
	Language string
	// Terminal tells that the code runs on a terminal: it has one stream, errors without frames, and no values; Get prints.
	Terminal bool
	// Set keeps 41 in x and shows nothing. Get has x+1 as its value, and Shown is what that looks like.
	Set, Get, Shown string
	// Print prints "out" to standard output, then "err" to standard error, then "again" to standard output.
	Print string
	// PrintThenWork prints "first", computes for two seconds without a pause, and prints "second".
	PrintThenWork string
	// Count prints the numbers from 0 to 49,999, a line each.
	Count string
	// Fail defines a function f in its first line, whose second line throws an error ErrorName with ErrorValue, and calls it in
	// the fourth. Broken has an error of syntax in its second line.
	Fail, ErrorName, ErrorValue, Broken string
	// Display shows HTML, "<b>a</b>", then an SVG, then JSON, {"a": 1}, then a PNG. Update shows "one" and replaces that by "two".
	Display, Update string
	// Ask asks "name? " and prints "hello " with the answer.
	Ask string
	// Loop prints "begun" and computes for ever. Wait prints "begun" and sleeps, or awaits what never comes. Child prints "begun"
	// and waits for a program that sleeps.
	Loop, Wait, Child string
	// Late has code print "late" half a second after the end of its cell, and Pause waits for one second.
	Late, Pause string
	// Program runs a program that prints "program" to the standard output that it inherits.
	Program string
	// Complete is the beginning of a name, and Completed one that fits.
	Complete, Completed string
	// Inspect is a name, and Inspected something that is said of it.
	Inspect, Inspected string
}

// PythonDialect is Dialect for IPython.
var PythonDialect = Dialect{
	Language: "python",
	Set:      "x = 41", Get: "x + 1", Shown: "42",
	Print:         "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('again')",
	PrintThenWork: "import time\nprint('first', flush=True)\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint('second')",
	Count:         "for i in range(50000): print(i)",
	Fail:          "def f():\n    raise ValueError('wrong')\n\nf()", ErrorName: "ValueError", ErrorValue: "wrong", Broken: "a = 1\nb = = 2",
	Display: "from IPython.display import display, HTML, SVG, JSON, Image\nimport base64\ndisplay(HTML('<b>a</b>'))\ndisplay(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))\n" +
		"display(JSON({'a': 1}))\ndisplay(Image(base64.b64decode('" + onePixel + "')))",
	Update: "from IPython.display import display\nh = display('one', display_id=True)\nh.update('two')",
	Ask:    "print('hello', input('name? '))",
	Loop:   "print('begun', flush=True)\nwhile True: pass", Wait: "import asyncio\nprint('begun', flush=True)\nawait asyncio.sleep(1000)",
	Child: "import subprocess\nprint('begun', flush=True)\nsubprocess.run(['sleep', '1000'])",
	Late:  "import threading\nt = threading.Timer(0.5, lambda: print('late', flush=True)); t.start()", Pause: "import time; time.sleep(1)",
	Program:  "import subprocess; _ = subprocess.run(['echo', 'program'])",
	Complete: "prin", Completed: "print", Inspect: "len", Inspected: "number of items",
}

// JavaScriptDialect is Dialect for our Node kernel.
var JavaScriptDialect = Dialect{
	Language: "javascript",
	Set:      "let x = 41", Get: "x + 1", Shown: "42",
	Print:         "console.log('out')\nconsole.error('err')\nconsole.log('again')",
	PrintThenWork: "console.log('first')\nfor (const end = Date.now() + 2000; Date.now() < end;);\nconsole.log('second')",
	Count:         "for (let i = 0; i < 50000; i++) console.log(i)",
	Fail:          "function f() {\n  throw new RangeError('wrong')\n}\nf()", ErrorName: "RangeError", ErrorValue: "wrong", Broken: "let a = 1\nlet b = = 2",
	Display: "display.html('<b>a</b>')\ndisplay.svg('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')\ndisplay.json({a: 1})\ndisplay.png(Buffer.from('" + onePixel + "', 'base64'))",
	Update:  "const h = display('one')\nh.update('two')",
	Ask:     "console.log('hello', prompt('name? '))",
	Loop:    "console.log('begun')\nfor (;;);", Wait: "console.log('begun')\nawait new Promise(() => {})",
	Child: "console.log('begun')\nrequire('child_process').execSync('sleep 1000')",
	Late:  "setTimeout(() => console.log('late'), 500)\nundefined", Pause: "await new Promise(done => setTimeout(done, 1000))",
	Program:  "require('child_process').spawnSync('echo', ['program'], { stdio: 'inherit' })\nundefined",
	Complete: "cons", Completed: "console", Inspect: "parseInt", Inspected: "function",
}

// TypeScriptDialect is Dialect for our Node kernel.
var TypeScriptDialect = typeScript()

func typeScript() Dialect {
	d := JavaScriptDialect
	d.Language = "typescript"
	d.Set = "let x: number = 41"
	d.Fail = "function f(): never {\n  throw new RangeError('wrong')\n}\nf()"
	d.Child = "import { execSync } from 'node:child_process'\nconsole.log('begun')\nexecSync('sleep 1000')"
	d.Broken = "let a: number = 1\nlet b: = 2"
	return d
}

// BashDialect is Dialect for our Bash kernel.
var BashDialect = Dialect{
	Language: "bash", Terminal: true,
	Set: "x=41", Get: "echo $((x + 1))", Shown: "42",
	Print:         "echo out; echo err >&2; echo again",
	PrintThenWork: "echo first; end=$((SECONDS + 2)); while ((SECONDS < end)); do :; done; echo second",
	Count:         "for ((i = 0; i < 50000; i++)); do echo $i; done",
	Fail:          "f() {\n  return 3\n}\nf", ErrorName: "ExitStatus", ErrorValue: "3",
	Loop: "echo begun; while :; do :; done", Wait: "echo begun; read line < <(sleep 1000)", Child: "echo begun; sleep 1000",
	Program:  "env echo program",
	Complete: "ech", Completed: "echo", Inspect: "cd", Inspected: "shell builtin",
}

// Node returns the kernelspec of our Node kernel for a language, from the sources, and the folder that it must be able to
// read. It skips the test where there is no Node or its packages are not installed.
func Node(t testing.TB, language string) (spec kernels.Kernelspec, folder string) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(root, "images", "executor", "node")
	_, err = os.Stat(filepath.Join(folder, "node_modules", "zeromq"))
	Need(t, err == nil, "node_modules of images/executor/node (npm ci --ignore-scripts makes it)")
	Need(t, hasNode(), "node, version 20.12 or newer")
	return kernels.Kernelspec{
		Name: language, DisplayName: language, Language: language,
		Argv:          []string{"node", filepath.Join(folder, "kernel.mjs"), "--language", language, "{connection_file}"},
		InterruptMode: "message", Transport: "ipc", Waits: true,
	}, folder
}

var hasNode = sync.OnceValue(func() bool {
	return exec.Command("node", "-e", "if (!require('vm').constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER) process.exit(1)").Run() == nil
})
