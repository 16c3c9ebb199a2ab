//go:build linux

package sessions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/images"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/local"
	"cellblock/sessions"
)

// forgetful is a session in a language whose kernelspec lies in folder, and whose kernel can be stopped for want of use.
type forgetful struct {
	*sessions.Manager
	language string
}

func newForgetful(t *testing.T, spec kernels.Kernelspec, folder string, folders ...string) forgetful {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, images.KernelspecFile))
	if err != nil {
		t.Fatal(err)
	}
	l, err := images.ParseKernelspec(folder, data)
	if err != nil {
		t.Fatal(err)
	}
	dir := kernelstest.ShortDir(t)
	p, err := local.New(local.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), ShimPath: kernelstest.BuildShim(t), ReadOnlyPaths: folders,
	})
	kernelstest.Need(t, err == nil, fmt.Sprintf("the local provisioner (%v)", err))
	t.Cleanup(func() { _ = p.Close() })
	return forgetful{language: l.Name, Manager: newReal(t, func(c *sessions.Config) {
		c.Provisioner, c.SaveVariables, c.IdleTimeout = p, true, time.Second
		c.Runtimes = map[string]sessions.Runtime{l.Name: {Kernelspec: spec, Save: l.Save, Load: l.Load}}
	})}
}

// run runs a cell, which must succeed, and returns what it printed, and what it is told first.
func (f forgetful) run(t *testing.T, code string) (text, told string) {
	t.Helper()
	e := sessions.StartCell(t, f.Manager, sessions.Alice, sessions.Request{SessionID: "s", Language: f.language, Code: code})
	if r := sessions.WaitFor(t, e); r.Error != nil {
		t.Fatalf("%s: %+v", code, r.Error)
	}
	return printed(e), e.Preamble()
}

// culled waits until the kernel is stopped.
func (f forgetful) culled(t *testing.T) {
	t.Helper()
	for {
		changed := f.Changed(sessions.Alice, "s")
		if info, err := f.Get(t.Context(), sessions.Alice, "s"); err != nil || info.State == sessions.Culled {
			return
		}
		<-changed
	}
}

// What a shell knows the next one knows, as it was, and whatever is in a value runs nothing.
func TestRealVariablesOfBashAreBack(t *testing.T) {
	spec, folders := kernelstest.Bash(t)
	f := newForgetful(t, spec, folders[0], folders...)
	f.run(t, "shopt -s extglob")
	f.run(t, strings.Join([]string{
		`name=n x=$'a\001\n"$(touch ran)` + "`touch ran`" + `\377é'; y='a[$(touch ran)]' z=ABC; declare -i y; declare -l z; declare -rx ro='$HOME'`,
		`declare -A m=([a]=$'2\n'); key='$(touch ran)]'; m[$key]=1; list=(1 "b c" [7]=d); declare -n ref=list`,
		`f() { case $1 in @(a|b)) cat <<<"f $name" ;; esac; }; shown() { echo "$E"; }; export -f shown; export E=e`,
		`alias hi='echo "hi hi"'`, `uses() { hi; }`, `set -- 'a b' '$(touch ran)'; set -u; IFS=,; umask 077; unset LANG; PATH=$PATH:/mine`,
		`mkdir -p sub; cd sub; mkdir ../gone; trap 'echo T' ERR; exec 7>/dev/null`,
	}, "\n"))
	f.culled(t)
	text, told := f.run(t, strings.Join([]string{
		`printf '%q ' "$name" "$x" "$y" "$z" "$ro" "${m[a]}" "${m[$key]}" "${#m[@]}" "${!list[@]}" "${ref[1]}" "$@" "$IFS" "${LANG-none}" "${PATH##*:}"; echo`,
		`f a; bash -c shown; uses; pwd; umask; echo ${-//[^u]}; builtin declare -p y z ro; ls -A1 /workspace`,
	}, "\n"))
	want := `n $'a\001\n"$(touch ran)` + "`touch ran`" + `\377\303\251' a\[\$\(touch\ ran\)\] ABC \$HOME $'2\n' 1 2 0 1 7 b\ c a\ b \$\(touch\ ran\) \, none /mine ` +
		"\nf n\ne\nhi hi\n/workspace/sub\n0077\nu\n" +
		"declare -i y=\"a[\\$(touch ran)]\"\ndeclare -l z=\"ABC\"\ndeclare -rx ro=\"\\$HOME\"\ngone\nsub\n"
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if !strings.Contains(told, "its variables were saved. They are back") || !strings.Contains(told, "Not back: 7 (open descriptor), ERR (trap), background") {
		t.Errorf("it is told %s", told)
	}
	// What cannot be is told by its name.
	f.run(t, "cd ../gone")
	f.culled(t)
	f.run(t, "rmdir /workspace/gone; cd .") // on the kernel with it, whose shell goes on in it
	f.culled(t)
	if text, told := f.run(t, "pwd"); text != "/workspace\n" || !strings.Contains(told, "Not back: directory, background") {
		t.Errorf("of a directory that is gone %q, %s", text, told)
	}
}

// A session that has only looked around has nothing to save, and nothing that an image brings is taken for the session's own.
func TestRealBashSavesNothingOfItsOwn(t *testing.T) {
	spec, folders := kernelstest.Bash(t)
	f := newForgetful(t, spec, folders[0], folders...)
	f.run(t, "ls >/dev/null; [[ a =~ a ]]; cat <<<x | cat; (:); f=1; unset f")
	f.culled(t)
	if _, told := f.run(t, "echo"); strings.Contains(told, "saved") {
		t.Errorf("it is told %s", told)
	}
}

// What cells have in memory is there again, what it shares it shares; what would come back as something else is left, by its name.
func TestRealVariablesOfJavaScriptAreBack(t *testing.T) {
	spec, folder := kernelstest.Node(t, "javascript")
	f := newForgetful(t, spec, filepath.Join(folder, "kernelspecs", "javascript"), folder)
	f.run(t, strings.Join([]string{
		`fs.mkdirSync('sub'); fs.writeFileSync('sub/own.mjs', 'export const list = [1]; export default () => list.length')`,
		`process.chdir('sub'); process.env.MINE = '$(mine)'`,
	}, "\n"))
	f.run(t, strings.Join([]string{
		`import size, { list } from './own.mjs'; list.push(2)`, `import * as own from './own.mjs'`,
		`const { join } = require('path'), events = require('events'), env = process.env`,
		`let n = 1, big = 10n, none, text = '"); globalThis.ran = 1; ("\n', re = /a+/g, day = new Date(5)`,
		`const data = { a: [1, { b: -0 }] }, alias = data, map = new Map([[data, new Set([data.a])]]), rows = Array.from({ length: 500 }, (_, i) => i)`,
		`data.self = data; rows.columns = data; const bytes = Buffer.from('hey'), numbers = new Float64Array([1.5])`,
		`function add(a) {`, `  return a + n`, `}`,
		`const plus = add, times = x => x * n, named = async () => await add(1)`,
		`await 0; const later = x => [x, n]; function* upTo() { yield n }`,
	}, "\n"))
	f.run(t, strings.Join([]string{
		`class Point { constructor() { this.x = 1 } }`,
		`const p = new Point(), points = [p], api = { go() {} }, up = (() => { let c = 0; return () => ++c })(), mine = () => this, bound = add.bind(null)`,
		`const told = []; const proxy = new Proxy({}, { get() { told.push(1) }, ownKeys() { told.push(2); return [] } }), lazy = { get x() { told.push(3) } }`,
		`Object.defineProperty(globalThis, 'got', { get() { told.push(4) }, configurable: true }); add.calls = undefined; delete add.calls; function counts() {}; counts.n = 1`,
		`const { m } = { m() { return 1 } }, typed = Object.assign([...rows], { p }), open = fs.createReadStream('own.mjs'); function strict() { 'use strict' }`,
		`const deep = {}; for (let at = deep, i = 0; i < 1e5; i++) at = at.next = {}`,
	}, "\n"))
	f.culled(t)
	text, told := f.run(t, strings.Join([]string{
		`n = 10`,
		`console.log(size(), own.default === size, list, join('a', 'b'), events === require('events'), env === process.env, process.env.MINE, process.cwd(), fs.readdirSync('/workspace'))`,
		`console.log(big, none, text.length, typeof ran, re, day.getTime(), Object.is(data.a[1].b, -0), data.self === alias, map.get(data).has(data.a), rows.length, rows.columns === data, bytes, numbers)`,
		`console.log(add(1), plus === add, times(2), times.name, await named(), later(1), [...upTo()], told)`,
		`try { add(Symbol()) } catch (error) { console.log(error.stack.split('\n')[1].trim()) }`,
		`const data = 1; console.log(['Point', 'p', 'up', 'proxy', 'lazy', 'got', 'deep'].filter(name => name in globalThis))`,
	}, "\n"))
	want := "1 true [ 1, 2 ] a/b true true $(mine) /workspace/sub [ 'sub' ]\n" +
		"10n undefined 27 undefined /a+/g 5 true true true 500 true <Buffer 68 65 79> Float64Array(1) [ 1.5 ]\n" +
		"11 true 20 times 11 [ 1, 10 ] [ 10 ] []\nat add (/saved/add.js:2:12)\n[]\n"
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	left := "Not back: Point (class), p (Point), points (Array: Point in it), api (Object: function in it), up (function: a closure), mine (function), " +
		"bound (function), proxy (Proxy), lazy (Object), m (function), typed (Array: Point in it), open (ReadStream), counts (function), strict (function), got (accessor), deep (Object), background"
	if !strings.Contains(told, "its variables were saved. They are back") || !strings.Contains(told, left) {
		t.Errorf("it is told %s", told)
	}
}
