//go:build linux

package local

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/egress"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

func TestPythonKernel(t *testing.T) {
	kernelstest.NeedPython(t)
	kernelstest.TestKernel(t, kernelSetup(kernelstest.Python, ""), kernelstest.PythonDialect)
}

func TestNodeKernel(t *testing.T) {
	for _, d := range []kernelstest.Dialect{kernelstest.JavaScriptDialect, kernelstest.TypeScriptDialect} {
		t.Run(d.Language, func(t *testing.T) {
			spec, folder := kernelstest.Node(t, d.Language)
			kernelstest.TestKernel(t, kernelSetup(spec, folder), d)
		})
	}
}

// What is wrong with a cell's types is told, and does not keep it from running.
func TestTypeErrors(t *testing.T) {
	spec, folder := kernelstest.Node(t, "typescript")
	spec.Argv = append(spec.Argv, "--patience", "60000") // of a busy machine
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	b.Want("interface P { name: string }\nlet p: P = { name: 'a' }", "")
	for _, c := range []struct{ code, value, says string }{
		{"p = { name: 5 }; p.name", "5", "line 1: TS2322: Type 'number' is not assignable to type 'string'."},
		{"const q: P = p\nq.nome", "", "line 2: TS2339: Property 'nome' does not exist on type 'P'."},
		{"(p.name as string).length === undefined", "true", ""},
		{"enum E { A = 3 }\nclass C { constructor(public e: E) {} }\nnew C(E.A).e", "3", ""},
	} {
		text := b.Run(c.code)
		if c.value != "" && !strings.Contains(text, c.value+"\n") {
			t.Errorf("%s: no %q in %q", c.code, c.value, text)
		}
		if c.says == "" && strings.Contains(text, "TS") || !strings.Contains(text, c.says) {
			t.Errorf("%s: no %q in %q", c.code, c.says, text)
		}
	}
}

// Node's own modules are there by their names, and are no variables before a cell gives the name to something else.
func TestNodeModulesByName(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	variables := "Object.values(globalThis['cellblock variables']()[Symbol.for('Jupyter.display')]()).filter(v => v[0] === '{').flatMap(v => JSON.parse(v).variables).map(v => v.name).join()"
	for _, c := range []struct{ code, value string }{
		{"fs.writeFileSync('a', 'there'); fs.readFileSync(path.join('.', 'a'), 'utf8') + typeof os.cpus", "'therefunction'"},
		{"[crypto.createHash('md5').update('x').digest('hex').length, typeof crypto.subtle, typeof crypto.getRandomValues]", "[ 32, 'object', 'function' ]"},
		{variables, "''"},
		{"const fs = require('fs'); fs.existsSync('a')", "true"},
		{"const fs = require('fs'), { join } = require('path'); fs.existsSync('a')", "true"},
		{"import * as fs from 'fs'\nimport os from 'node:os'\nimport crypto from 'crypto'\n[fs.existsSync('a'), typeof os.cpus, typeof crypto.createHash]", "[ true, 'function', 'function' ]"},
		{"let url; const path = '/data'; class stream {}\nfunction util() { return 3 }\n[url, path, util(), typeof stream]", "[ undefined, '/data', 3, 'function' ]"},
		{"events = [1]; events", "[ 1 ]"},
		{"const path = require('path'); path.sep", "'/'"},
		{variables, "'fs,join,os,crypto,url,path,stream,util,events'"},
	} {
		b.Want(c.code, c.value)
	}
}

// fetch goes through the proxy that the environment names, for http as for https.
func TestNodeFetchesThroughTheProxy(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from afar") })
	plain, secure := httptest.NewServer(served), httptest.NewTLSServer(served)
	defer plain.Close()
	defer secure.Close()
	gateway, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// A number of its own for this machine: what programs take for themselves they do not ask a proxy for.
	there := func(s *httptest.Server) string { return strings.Replace(s.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1) }
	rules, err := egress.Policy{Mode: egress.Internet, Private: []string{"127.0.0.1"}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	spec, folder := kernelstest.Node(t, "javascript")
	spec.Env = map[string]string{"NODE_TLS_REJECT_UNAUTHORIZED": "0", "NODE_NO_WARNINGS": "1"}
	setup := kernelSetup(spec, folder)
	setup.Serve = gateway.Door(egress.Who{}, rules).Serve
	b := kernelstest.Launch(t, setup)
	for _, address := range []string{there(plain), there(secure)} {
		b.Want(fmt.Sprintf("console.log(await (await fetch(%q)).text())", address), "from afar")
	}
	if text, name, _ := b.Fail("await fetch('https://169.254.169.254/')"); name != "TypeError" {
		t.Errorf("%s: %s", name, text)
	}
}

// A cell takes less time than with IPython's kernel. Both run by turns: on a busy machine times can only be compared.
func TestNodeIsQuick(t *testing.T) {
	kernelstest.NeedPython(t)
	specs := []kernels.Kernelspec{kernelstest.Python}
	var folder string
	for _, language := range []string{"javascript", "typescript"} {
		var spec kernels.Kernelspec
		spec, folder = kernelstest.Node(t, language)
		specs = append(specs, spec)
	}
	running := make([]*kernelstest.Running, len(specs))
	took := make([][]time.Duration, len(specs))
	for i, spec := range specs {
		running[i] = kernelstest.Launch(t, kernelSetup(spec, folder))
		running[i].Want("1+1", "2") // the first one takes longer
	}
	const cells = 200
	for range cells {
		for i, r := range running {
			begun := time.Now()
			r.Run("1+1")
			took[i] = append(took[i], time.Since(begun))
		}
	}
	for i, spec := range specs {
		slices.Sort(took[i])
		t.Logf("%s: p50 %v, p99 %v", spec.Language, took[i][cells/2], took[i][cells*99/100])
	}
	if took[1][cells/2] > took[0][cells/2] {
		t.Errorf("1+1 takes %v, and %v with IPython", took[1][cells/2], took[0][cells/2])
	}
}

// kernelSetup runs kernels that need to read a folder, if it is not empty.
func kernelSetup(spec kernels.Kernelspec, folder string) kernelstest.Setup {
	return kernelstest.Setup{Kernelspec: spec, New: func(t *testing.T, dir string) kernels.Provisioner {
		return newLocal(t, dir, withShim(t), func(c *Config) {
			if folder != "" {
				c.ReadOnlyPaths = append(c.ReadOnlyPaths, folder)
			}
		})
	}}
}

// A script runs as the server runs it: what it defines stays, and its errors have its own name and lines.
func TestNodeRunsScripts(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	b.Want("require('fs').writeFileSync('s.mjs', 'import fs from \"node:fs\"\\nexport const n = 7\\nif (process.argv[1] === __filename) console.log(\"main\")\\nfs.nothing.here\\n')", "")
	text, name, traceback := b.Fail(`await this['cellblock run']("/workspace/s.mjs")`)
	if text != "main\n" || name != "TypeError" || len(traceback) != 2 || traceback[0] != "File /workspace/s.mjs:4\n----> 4 fs.nothing.here" {
		t.Errorf("%q, %s, %q", text, name, traceback)
	}
	b.Want("n", "7")
}

// What reads standard input in any way asks, and each cell has its own: what was left of an earlier one's harms nothing.
func TestNodeReadsStandardInput(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	for _, code := range []string{
		"const lines = []; for await (const piece of process.stdin) lines.push(String(piece).trim()); lines.join()",
		"import { stdin as input } from 'node:process'\nconst all = []; for await (const line of require('readline').createInterface({ input })) all.push(line); all.join()",
		"fs.readFileSync(0, 'utf8').trim().split('\\n').join()",
		"import { readFileSync } from 'fs'\nreadFileSync('/dev/stdin').toString().trim().split('\\n').join()",
	} {
		for range 2 {
			b.Want("void process.stdin.destroy()", "")
			if _, name, traceback := b.Fail(code); name != "StdinNotImplementedError" {
				t.Errorf("%s: %s", code, traceback)
			}
			if text := strings.TrimSpace(b.Answer(code, "one", "two")); text != "'one,two'" {
				t.Errorf("%s, which is answered: %s", code, text)
			}
		}
	}
}

// What a pipeline ends or destroys is there for what comes later.
func TestNodePipesToStandardOutput(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	b.Want("import { pipeline } from 'node:stream/promises'\nfor (let i = 0; i < 12; i++) await pipeline(stream.Readable.from([`${i} `]), process.stdout)\nconsole.log('after')",
		"0 1 2 3 4 5 6 7 8 9 10 11 after")
	b.Fail("await pipeline(async function* () { yield 'some'; throw new Error('broken') }, process.stdout)")
	b.Want("console.log('later')", "later")
}

// What cells call by names of Node's own is theirs, and takes nothing from the kernel.
func TestNodeKeepsItsOwnNames(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	b.Want("function process(x) { return x }\nclass Symbol {}\nconst Map = null, Promise = null, JSON = {}, Object = 1, console = { log() {} }\nprocess(5)", "5")
	b.Want("await (async () => 6)()", "6")
	b.Interrupted("for (;;);")
	b.Want("process(7)", "7")
}

// What Node writes into promises and timers, to know whose they are, is not shown.
func TestNodeShowsPromisesAsTheyAre(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	b.Want("async function load() { return [1, 2] }\nconst res = { data: load() }; res", "{ data: Promise { [ 1, 2 ] } }")
	if text := b.Run("console.log(load(), new Promise(() => {})); console.log(setTimeout(() => {}, 1))"); !strings.HasPrefix(text, "Promise { [ 1, 2 ] } Promise { <pending> }\nTimeout {") || strings.Contains(text, "kResourceStore") {
		t.Errorf("printed: %s", text)
	}
	b.Want("let late = ''; await new Promise(r => setTimeout(() => { late = 'is told'; r() }, 10)); late", "'is told'") // and goes on as it did
	b.Want("Object.freeze(Promise.resolve(1)) instanceof Promise", "true")
	b.Run("console.log(Object.freeze(load()))")
	b.Want("await Promise.all([load(), load()])", "[ [ 1, 2 ], [ 1, 2 ] ]")
}

// What a program has printed that fails is told once: Node prints it, and puts it into the error, too.
func TestNodeTellsOnceWhatAProgramPrinted(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	for code, inError := range map[string]int{
		"child_process.execSync('echo broken >&2; exit 3')":                                       1, // the command itself
		"child_process.execFileSync('sh', ['-c', 'echo bro\"\"ken >&2; exit 3'], {timeout: 9e4})": 0,
		"child_process.execSync('echo broken >&2; exit 3', {stdio: 'pipe'})":                      2,
	} {
		text, _, trace := b.Fail(code)
		if told := strings.Count(strings.Join(trace[len(trace)-1:], ""), "broken"); told != inError || strings.Contains(text, "broken") == (inError == 2) {
			t.Errorf("%s: printed %q, and said %q", code, text, trace)
		}
	}
	b.Run("let said; try { child_process.execSync('echo broken >&2; exit 3') } catch (error) { said = error.message }")
	b.Want("said.split('\\n')[1]", "'broken'") // for code that looks at it
}

// A cell that has failed leaves no names behind that it did not get to.
func TestNodeDeclaresNothingThatFailed(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	b.Want("let before = 1, empty; before", "1")
	b.Fail("import missing from 'nope-mod'")
	b.Fail("const got = 5, failed = nothing.here, never = 6")
	b.Fail("before = 2; empty = undefined; null.x")
	for name, want := range map[string]string{"missing": "", "failed": "", "never": "", "got": "5", "before": "2"} {
		if want != "" {
			b.Want(name, want)
		} else if _, kind, _ := b.Fail(name); kind != "ReferenceError" {
			t.Errorf("%s: %s", name, kind)
		}
	}
	b.Want("typeof empty", "'undefined'")
	b.Want("'empty' in globalThis", "true")
}

// What a failed cell has got to stays, whatever its value: let x; is a name like any other.
func TestNodeKeepsWhatAFailedCellDeclared(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	never := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if _, kind, _ := b.Fail(name); kind != "ReferenceError" {
				t.Errorf("%s: %s", name, kind)
			}
		}
	}
	b.Run("let early")
	b.Fail("let early; let a; var b; const c = undefined; class D {}; let { e, f = undefined } = {}; null.x; let n1; var n2; class N3 {}; function g() {}")
	b.Want("[typeof early, typeof a, typeof b, typeof c, typeof D, typeof e, typeof f, typeof g].join()", "'undefined,undefined,undefined,undefined,function,undefined,undefined,function'")
	b.Want("['early', 'a', 'b', 'c', 'D', 'e', 'f', 'g'].every(name => name in globalThis)", "true")
	never("n1", "n2", "N3")

	b.Fail("await 0; let early; let i; var j; const k = await undefined; let [l] = []; if (!l) { var m }; class O {}; null.x; let p; var q = 1; class R {}")
	b.Want("['early', 'i', 'j', 'k', 'l', 'm', 'O'].every(name => name in globalThis)", "true")
	never("p", "q", "R")

	b.Run("if (false) { var branch = 1 }")
	b.Want("branch === undefined", "true")
	b.Run("for (var loop = 0; loop < 3; loop++);")
	b.Want("loop", "3")
	b.Fail("const path = nothing.here")
	b.Want("typeof path.join", "'function'") // Node's own is back
}

// What is left of a cell that was interrupted takes nothing from those after it.
func TestNodeInterruptedCellTakesNoNames(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	const interrupted = "process.kill(process.pid, 'SIGINT'); "
	b.Fail("let reached; " + interrupted + "await new Promise(r => setTimeout(r, 1e6)); let unreached")
	b.Want("'reached' in globalThis", "true")
	if _, kind, _ := b.Fail("unreached"); kind != "ReferenceError" {
		t.Errorf("unreached: %s", kind)
	}
	b.Run("const gate = {}; gate.promise = new Promise((_, reject) => { gate.reject = reject }); gate.promise.catch(() => {}); 0")
	b.Fail(interrupted + "const late = await gate.promise")
	b.Run("let late; gate.reject(new Error('now')); await new Promise(r => setTimeout(r, 20)); 0")
	b.Want("'late' in globalThis", "true")
}

// Files of TypeScript are imported as TypeScript would, from cells and from each other, and their errors have their lines.
func TestTypeScriptImportsFiles(t *testing.T) {
	spec, folder := kernelstest.Node(t, "typescript")
	spec.Argv = append(spec.Argv, "--types", "off")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	b.Want(`const { writeFileSync, mkdirSync } = require('fs')
mkdirSync('lib')
writeFileSync('lib/util.ts', "import { two } from './two.js'\nexport { E } from './two'\n\nexport const add = (a: number, b: number): number => a + b + two\nexport function bad(x: string): never {\n  throw new Error(x)\n}\n")
writeFileSync('lib/two.ts', 'export const two: number = 2; export enum E { A = 1 }')
writeFileSync('main.ts', "import { add } from './lib/util.ts'\nexport const total: number = add(1, 1)\n")
writeFileSync('old.cts', 'const n: number = 3; module.exports = { n }')
writeFileSync('broken.ts', 'const = 1')`, "")
	b.Want("import { add, E } from './lib/util.ts'\nadd(1, 2) + E.A", "6")
	b.Want("import { add as again } from './lib/util'\nagain(0, 0)", "2")
	b.Want("require('./old.cts').n", "3")
	b.Want("await this['cellblock run'](`/workspace/main.ts`); total", "4")
	if _, name, trace := b.Fail("import { bad } from './lib/util.js'\nbad('it is')"); name != "Error" || !strings.Contains(strings.Join(trace, "\n"), "util.ts:6") {
		t.Errorf("%s, %q", name, trace)
	}
	if _, name, trace := b.Fail("import './broken.ts'"); name != "SyntaxError" || !strings.Contains(strings.Join(trace, "\n"), "broken.ts, line 1") {
		t.Errorf("%s, %q", name, trace)
	}
	if _, name, trace := b.Fail("import './nothere'"); name != "Error" || !strings.Contains(strings.Join(trace, "\n"), "Cannot find module") {
		t.Errorf("%s, %q", name, trace)
	}
	b.Want("namespace Geo { export const pi = 3.14 }\nGeo.pi", "3.14")
	b.Want("namespace G {export const x = 1}\nlet z = 1\nz", "1")
}
