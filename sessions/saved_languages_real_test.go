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

// forgetful is a session in a language whose kernelspec lies in folder, and whose kernel can be stopped for want of use, or saves its
// variables while it goes on.
type forgetful struct {
	*sessions.Manager
	language string
}

func newForgetful(t *testing.T, spec kernels.Kernelspec, folder string, folders ...string) forgetful {
	t.Helper()
	return newSaving(t, time.Second, time.Hour, spec, folder, folders...)
}

func newSaving(t *testing.T, idle, checkpoint time.Duration, spec kernels.Kernelspec, folder string, folders ...string) forgetful {
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
		c.Provisioner, c.SaveVariables, c.IdleTimeout, c.CheckpointAfter = p, true, idle, checkpoint
		c.Runtimes = map[string]sessions.Runtime{l.Name: {Kernelspec: spec, Save: l.Save, Load: l.Load, Checkpoint: l.Checkpoint}}
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
		`mkdir -p sub; cd sub; mkdir ../gone; trap 'echo T' ERR; exec 7>/dev/null; pushd -n "/a b"; pushd -n /tmp; ulimit -c 0; ulimit -S -n 99`,
	}, "\n"))
	f.culled(t)
	text, told := f.run(t, strings.Join([]string{
		`printf '%q ' "$name" "$x" "$y" "$z" "$ro" "${m[a]}" "${m[$key]}" "${#m[@]}" "${!list[@]}" "${ref[1]}" "$@" "$IFS" "${LANG-none}" "${PATH##*:}"; echo`,
		`f a; bash -c shown; uses; pwd; umask; echo ${-//[^u]}; builtin declare -p y z ro; ls -A1 /workspace; dirs -l -p; ulimit -c; ulimit -n`,
	}, "\n"))
	want := `n $'a\001\n"$(touch ran)` + "`touch ran`" + `\377\303\251' a\[\$\(touch\ ran\)\] ABC \$HOME $'2\n' 1 2 0 1 7 b\ c a\ b \$\(touch\ ran\) \, none /mine ` +
		"\nf n\ne\nhi hi\n/workspace/sub\n0077\nu\n" +
		"declare -i y=\"a[\\$(touch ran)]\"\ndeclare -l z=\"ABC\"\ndeclare -rx ro=\"\\$HOME\"\ngone\nsub\n/workspace/sub\n/tmp\n/a b\n0\n99\n"
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if !strings.Contains(told, "its variables were saved. They are back") || !strings.Contains(told, "Not back: 7 (descriptor), ERR (trap), background") {
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

// Names that begin like the shell's own are the cells', and what has no value yet has its attributes: an associative array's.
func TestRealVariablesOfBashAreBackWithoutAValue(t *testing.T) {
	spec, folders := kernelstest.Bash(t)
	f := newForgetful(t, spec, folders[0], folders...)
	f.run(t, `EPOCHS=10 BASH_DIR=d COMP_LEVEL=l; declare -A m; declare -i n; export E; v=$'\ndeclare -x w\n'; declare -r r=$'\ndeclare -x v\n'`)
	f.culled(t)
	text, told := f.run(t, `m[a]=1; m[b]=2; n=1+1; E=e; echo $EPOCHS $BASH_DIR $COMP_LEVEL "${#m[@]}" $n; bash -c 'echo $E'; declare -p v w 2>&1`+" || true")
	if want := "10 d l 2 2\ne\ndeclare -- v=$'\\ndeclare -x w\\n'\nbash: declare: w: not found\n"; text != want || !strings.Contains(told, "Not back: background work.") {
		t.Errorf("got  %s\nwant %s\nit is told %s", text, want, told)
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
		`fs.mkdirSync('sub'); fs.writeFileSync('sub/own.mjs', 'export const list = [1]; export default () => list.length; String.prototype.loud = 1')`,
		`process.chdir('sub'); process.env.MINE = '$(mine)'`,
	}, "\n"))
	f.run(t, strings.Join([]string{
		`import size, { list } from './own.mjs'; list.push(2)`, `import * as own from './own.mjs'`,
		`const { join } = require('path'), events = require('events'), env = process.env`,
		`let n = 1, performance = 0.5, big = 10n, none, text = '"); globalThis.ran = 1; ("\n', re = /a+/g, day = new Date(5)`,
		`const data = { a: [1, { b: -0 }] }, alias = data, map = new Map([[data, new Set([data.a])]]), rows = Array.from({ length: 500 }, (_, i) => i)`,
		`data.self = data; rows.columns = data; const bytes = Buffer.from('hey'), numbers = new Float64Array([1.5]), ofNumbers = new DataView(numbers.buffer)`,
		`function add(a) {`, `  return a + n`, `}`,
		`const plus = add, times = x => x * n, named = async () => await add(1), loads = async () => (await import('./own.mjs')).default`,
		`await 0; const later = x => [x, n]; function* upTo() { yield n }`,
	}, "\n"))
	f.run(t, strings.Join([]string{
		`class Point { constructor() { this.x = 1 } }`,
		`const p = new Point(), points = [p], api = { go() {} }, up = (() => { let c = 0; return () => ++c })(), mine = () => this, bound = add.bind(null)`,
		`const told = []; const proxy = new Proxy({}, { get() { told.push(1) }, ownKeys() { told.push(2); return [] } }), lazy = { get x() { told.push(3) } }`,
		`Object.defineProperty(globalThis, 'got', { get() { told.push(4) }, configurable: true }); add.calls = undefined; delete add.calls; function counts() {}; counts.n = 1; function Heir() {}; Object.setPrototypeOf(Heir.prototype, Point.prototype)`,
		`const { m } = { m() { return 1 } }, typed = Object.assign([...rows], { p }), open = fs.createReadStream('own.mjs'); function strict() { 'use strict' }`,
		`function patch() {}; fs.patch = patch; Array.prototype.last = function last() {}; Object.defineProperty(Set.prototype, 'size2', { get() { told.push(5) } })`, `const deep = {}; for (let at = deep, i = 0; i < 1e5; i++) at = at.next = {}`,
	}, "\n"))
	f.culled(t)
	text, told := f.run(t, strings.Join([]string{
		`n = 10`,
		`console.log(size(), own.default === size, list, join('a', 'b'), events === require('events'), env === process.env, process.env.MINE, process.cwd(), fs.readdirSync('/workspace'))`,
		`console.log(performance, big, none, text.length, typeof ran, re, day.getTime(), Object.is(data.a[1].b, -0), data.self === alias, map.get(data).has(data.a), rows.length, rows.columns === data, bytes, numbers, new DataView(numbers.buffer).getFloat64(0, true), ofNumbers.buffer.byteLength)`,
		`console.log(add(1), plus === add, times(2), times.name, await named(), later(1), [...upTo()], await loads() === size, told)`,
		`try { add(Symbol()) } catch (error) { console.log(error.stack.split('\n')[1].trim()) }`,
		`const data = 1; console.log(['Point', 'p', 'up', 'proxy', 'lazy', 'got', 'deep', 'patch'].filter(name => name in globalThis))`,
	}, "\n"))
	want := "1 true [ 1, 2 ] a/b true true $(mine) /workspace/sub [ 'sub' ]\n" +
		"0.5 10n undefined 27 undefined /a+/g 5 true true true 500 true <Buffer 68 65 79> Float64Array(1) [ 1.5 ] 1.5 8\n" +
		"11 true 20 times 11 [ 1, 10 ] [ 10 ] true []\nat add (saved-add:2:12)\n[]\n"
	if text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	left := "Not back: Point (class), p (Point), points (Array: Point in it), api (Object: function in it), up (function: a closure), mine (function), " +
		"bound (function), proxy (Proxy), lazy (Object), m (function), typed (Array: Point in it), open (ReadStream), counts (function), Heir (function), strict (function), got (accessor), deep (Object), patch (it is not in fs), Array.prototype.last (function), Set.prototype.size2 (accessor), background"
	if !strings.Contains(told, "its variables were saved. They are back") || !strings.Contains(told, left) {
		t.Errorf("it is told %s", told)
	}
}

// Environments of R are shared as they were, and classes go on working; what points into memory is left, by its name.
func TestRealVariablesOfRAreBack(t *testing.T) {
	spec, folders := kernelstest.R(t)
	f := newForgetful(t, spec, folders[0], folders...)
	f.run(t, `dir.create("sub"); setwd("sub"); options(digits = 4, own = "o"); Sys.setenv(MINE = "$(mine)"); library(splines); attach(list(attached = 9), name = "mine")
set.seed(7); drawn <- runif(3)
x <- 1; f <- function(y = 2) x + y; up <- (function() { n <- 0; function() { n <<- n + 1; n } })(); one <- up(); up2 <- up
.hidden <- 5; e <- new.env(); shared <- list(e, e); fit <- lm(mpg ~ wt, mtcars); fo <- local({ k <- 3; y ~ x + k })
setClass("P", representation(name = "character")); setGeneric("hello", function(o) standardGeneric("hello"))
setMethod("hello", "P", function(o) paste(o@name, x)); setMethod("+", signature("P", "P"), function(e1, e2) "sum"); p <- new("P", name = "ada")
A <- setRefClass("A", fields = list(v = "numeric"), methods = list(up = function() { v <<- v + x; v })); a <- A$new(v = 1)
con <- file("t.txt", "w"); held <- list(con = con); makeActiveBinding("active", function() stop("called"), globalenv()); delayedAssign("promise", stop("forced"))
data(iris); deep <- NULL; for (i in 1:1e5) deep <- list(deep)
lockBinding("one", globalenv()); lockBinding(".hidden", globalenv()); Sys.setlocale("LC_TIME", if (Sys.getlocale("LC_TIME") == "C") "C.UTF-8" else "C"); time <- Sys.getlocale("LC_TIME")`)
	f.culled(t)
	text, told := f.run(t, `x <- 10
cat(f(), up(), up2(), .hidden, identical(shared[[1]], e) && identical(shared[[2]], e), environment(fo)$k, basename(getwd()), getOption("own"), Sys.getenv("MINE"), attached, nrow(iris), "\n")
cat(hello(p), hello(new("P", name = "bob")), p + p, a$up(), A$new(v = 5)$up(), a$copy()$up(), update(fit, . ~ . + hp)$rank, "package:splines" %in% search(), "\n")
drawn <- runif(1); set.seed(7); cat(runif(4)[4] == drawn, exists("con"), exists("promise"), list.files("/workspace", all.files = TRUE, no.. = TRUE), bindingIsLocked("one", globalenv()) && bindingIsLocked(".hidden", globalenv()), bindingIsLocked("x", globalenv()), Sys.getlocale("LC_TIME") == time, "\n")`)
	if want := "12 2 3 5 TRUE 3 sub o $(mine) 9 150 \nada 10 bob 10 sum 11 15 21 3 TRUE \nTRUE FALSE FALSE .cellblock-variables sub TRUE FALSE TRUE \n"; text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	left := "Not back: active (active binding), promise (promise), con (file), deep (list), held (list), background work and what cells had set in packages."
	if !strings.Contains(told, "its variables were saved. They are back") || !strings.Contains(told, left) {
		t.Errorf("it is told %s", told)
	}
	// What was loaded is loaded again where its kernel dies.
	sessions.WaitFor(t, sessions.StartCell(t, f.Manager, sessions.Alice, sessions.Request{SessionID: "s", Language: "r", Code: "tools::pskill(Sys.getpid(), tools::SIGKILL)"}))
	if text, told := f.run(t, "cat(x, f(), up(), hello(p))"); text != "1 3 2 ada 1" || !strings.Contains(told, "its variables after cell 1 were saved") {
		t.Errorf("after a death %q, %s", text, told)
	}
	f.culled(t)
	if text, told := f.run(t, "cat(f(), hello(p), a$up())"); text != "3 ada 1 2" || strings.Contains(told, "con (") {
		t.Errorf("the last time %q, %s", text, told)
	}
}

// A data.table takes columns in place again, and tables of readr's are saved, though they point at what could not be read.
func TestRealTablesOfRAreBack(t *testing.T) {
	spec, folders := kernelstest.R(t)
	f := newForgetful(t, spec, folders[0], folders...)
	text, _ := f.run(t, "cat(requireNamespace('data.table', quietly = TRUE), requireNamespace('readr', quietly = TRUE))")
	kernelstest.Need(t, text == "TRUE TRUE", "data.table and readr (r-cran-data.table, r-cran-readr)")
	f.run(t, "library(data.table); library(readr)\ndt <- data.table(k = 1:2, key = 'k'); csv <- read_csv(I('a,b\\n1,2'), show_col_types = FALSE); csvs <- list(list(csv))")
	f.culled(t)
	text, told := f.run(t, "set(dt, j = 'z', value = 2:3); dt[, w := z]; cat(names(dt), key(dt), csv$b, csvs[[1]][[1]]$a)")
	if text != "k z w k 2 1" || !strings.Contains(told, "Not back: background work") {
		t.Errorf("%q, told %s", text, told)
	}
}
