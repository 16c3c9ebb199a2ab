//go:build linux

package mcpserver

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/local"
	"cellblock/sessions"
)

// newLanguageWorld is a world whose kernels are one of another language, from the sources.
func newLanguageWorld(t *testing.T, kernelspec func(testing.TB) (kernels.Kernelspec, []string)) (run func(code string, more ...any) called) {
	t.Helper()
	_, run = languageWorld(t, kernelspec)
	return run
}

// languageWorld is newLanguageWorld for who calls other tools, too.
func languageWorld(t *testing.T, kernelspec func(testing.TB) (kernels.Kernelspec, []string)) (w *world, run func(code string, more ...any) called) {
	t.Helper()
	spec, folders := kernelspec(t)
	dir := kernelstest.ShortDir(t)
	p, err := local.New(local.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), ShimPath: kernelstest.BuildShim(t), ReadOnlyPaths: folders,
	})
	kernelstest.Need(t, err == nil, fmt.Sprintf("the local provisioner (%v)", err))
	t.Cleanup(func() { _ = p.Close() })
	w = newRealWorld(t, func(c *sessions.Config) {
		variables := kernelstest.FromSources(t, spec.Language).Variables
		c.Provisioner, c.Runtimes = p, map[string]sessions.Runtime{spec.Language: {Kernelspec: spec, Variables: variables}}
	})
	w.service.Languages = []string{spec.Language}
	w.server, w.scopes = w.service.server(), append(w.scopes, spec.Language+":execute")
	return w, func(code string, more ...any) called {
		args := map[string]any{"session_id": "s", "code": code, "wait_seconds": 60}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return w.call("execute_"+spec.Language, args)
	}
}

// saying is code, and what a model gets to read of it: all of it, but for the last line.
type saying struct{ name, code, want string }

func sayAll(t *testing.T, run func(string, ...any) called, sayings []saying) {
	for _, tt := range sayings {
		t.Run(tt.name, func(t *testing.T) {
			got, _, _ := strings.Cut(run(tt.code).String(), "[session s ")
			got, _, _ = strings.Cut(got, "\nFiles: ")
			if got = strings.TrimSpace(got); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// R's errors have the user's own calls, the line of the cell or of the file, and the message once.
func TestRealErrorsOfR(t *testing.T) {
	run := newLanguageWorld(t, kernelstest.R)
	sayAll(t, run, []saying{
		{"syntax", "x <- 1\nif (x == 1) {\n  y <- 2 3\n}", "Error: unexpected numeric constant (line 3, column 10)\n2: if (x == 1) {\n3:   y <- 2 3\n            ^"},
		{"runtime", "x <- 1\nstop('broken here')", "Cell In[2], line 2\n----> 2 stop('broken here')\nError: broken here"},
		{"in a loop", "for (i in 1:3) {\n  x <- i\n  if (i == 2) y <- x + nothere\n}", "Cell In[3], line 3\n----> 3   if (i == 2) y <- x + nothere\nError: object 'nothere' not found"},
		{"nested", "f <- function(a) g(a)\ng <- function(b) {\n  stop('inner ', b)\n}\nf(3)", "Cell In[4], line 1, in f(3)\n----> 1 f <- function(a) g(a)\n" +
			"Cell In[4], line 3, in g(a)\n----> 3   stop('inner ', b)\nError in g(a): inner 3"},
		{"a function of a file", "writeLines(c('g <- function(x) {', '  x + nothere', '}', 'h <- function(x) g(x)'), 'own.R')\nsource('own.R')\nh(2)",
			"File /workspace/own.R:4, in h(2)\n----> 4 h <- function(x) g(x)\nFile /workspace/own.R:2, in g(x)\n----> 2   x + nothere\nError in g(x): object 'nothere' not found"},
		{"one after another", "tryCatch(stop('a'), error = function(e) stop('outer: ', conditionMessage(e)))", "Cell In[6], line 1, in value[[3L]](cond)\n" +
			"----> 1 tryCatch(stop('a'), error = function(e) stop('outer: ', conditionMessage(e)))\nError in value[[3L]](cond): outer: a"},
		{"a function that calls itself", "f <- function(n) if (n == 0) stop('deep') else f(n - 1)\nf(50)", "Cell In[7], line 1, in f(50)\n" +
			"----> 1 f <- function(n) if (n == 0) stop('deep') else f(n - 1)\nCell In[7], line 1, in f(n - 1)\n" +
			"----> 1 f <- function(n) if (n == 0) stop('deep') else f(n - 1)\n[... 49 more calls like this one ...]\nError in f(n - 1): deep"},
		{"a warning", "f <- function() { warning('take care'); c(1.5, NA) }\nf()", "[stderr] Warning in f(): take care\n[1] 1.5  NA"},
		{"a question to nobody", "x <- readline('name? ')", "Error: nobody can answer readline() here: put the value into the code"},
		{"no package", "library(nothere)", "Error in library(nothere): there is no package called ‘nothere’\nHint: nothere is not installed, and the kernel has no network to install it: " +
			"use what is there (rownames(installed.packages()) lists it). Other packages are installed on the server's host, by its operator."},
		{"a debugger that nobody answers", "x <- 1; browser(); y <- x + 1", "[stderr] browser() is passed over: nobody can answer it here"},
		{"it steps through nothing later", "for (i in 1:2) print(i + y)", "[1] 3\n[1] 4"},
		{"nor does debug()", "f <- function(x) { y <- x + 1; y * 2 }; debug(f); f(1); debugonce(f)",
			"[stderr] debug() is passed over: nobody can answer it here\n[1] 4\n[stderr] debugonce() is passed over: nobody can answer it here"},
		{"a file that is not there", "readRDS('nothere.rds')", "[stderr] Warning in gzfile(file, \"rb\"): cannot open compressed file 'nothere.rds', probable reason 'No such file or directory'\n" +
			"Error in gzfile(file, \"rb\"): cannot open the connection\nHint: " + filesHint("list.files()")},
		{"an error of the user's", "stop(\"cannot open file 'x': No such file or directory\")", "Error: cannot open file 'x': No such file or directory"},
		{"what programs print", "status <- system('echo out; echo err >&2; exit 3'); status\nsystem2('echo', c('a', 'b'))\nsystem('echo c', intern = TRUE)",
			"out\nerr\n[1] 3\na b\n[1] \"c\""},
		{"a page", "writeLines(c('first', 'last'), 'pages'); file.show('pages')", "R Information\n\nfirst\nlast"},
		{"what the kernel needs is not the user's", "rm(list = ls()); ls()", "character(0)"},
		{"of cat()", "f <- function(x) cat(x)\nf(list(1, list(2)))", "Cell In[19], line 1, in f(list(1, list(2)))\n----> 1 f <- function(x) cat(x)\nError in cat(x): argument 1 (type 'list') cannot be handled by 'cat'"},
		{"of Sys.sleep()", "Sys.sleep('a')", "[stderr] Warning in Sys.sleep(\"a\"): NAs introduced by coercion\nError in Sys.sleep(\"a\"): invalid 'time' value"},
		{"to files", "cat('a', 'b\n', file = 'printed', sep = '-'); cat('c\n', file = 'printed', append = TRUE); cat(readLines('printed'), sep = '|', fill = TRUE)", "a-b|c"},
		{"what is captured", "x <- capture.output({ cat('one\n'); Sys.sleep(0.2); cat('two\n') }); x", "[1] \"one\" \"two\""},
		{"warnings of the cell itself", "for (i in 1:2) warning('thing ', i)\nwarning('once', call. = FALSE)", "[stderr]\nWarning: thing 1\nWarning: thing 2\nWarning: once"},
		{"messages", "message('a'); message('b', appendLF = FALSE); message('c'); rlang::inform('d'); message('e')", "[stderr]\na\nbc\nd\ne"},
		{"of rlang", "rlang::abort('broken', body = c(i = 'why'))", "Error: broken\nℹ why"},
		{"a program that is not there", "system('nothere')", "[stderr] Warning in system(\"nothere\"): error in running command\nsh: 1: nothere: not found\n" +
			"Hint: nothere is not installed. Programs are installed on the server's host, by its operator."},
		{"a program that fails", "x <- system2('sh', c('-c', shQuote('exit 3')), stdout = TRUE)", "[stderr] Warning in system2(\"sh\", c(\"-c\", shQuote(\"exit 3\")), stdout = TRUE): running command ''sh' -c 'exit 3'' had status 3"},
		{"what forked processes print", "forked <- function(i) parallel::mccollect(parallel::mcparallel({ cat('é', i, '\\n'); print(i); message('m'); warning('w', call. = FALSE); i }))[[1]]\n" +
			"x <- forked(1)\ncat('between\\n')\nforked(2)", "é 1 \n[1] 1\nm\nWarning: w\nbetween\né 2 \n[1] 2\nm\nWarning: w\n[1] 2"},
		{"an error ends its line", "x <- 1; x; stop('two'); cat('went on')", "[1] 1\nError: two"},
		{"a value that cannot be printed", "print.own <- function(x, ...) stop('unprintable')\nstructure(1, class = 'own')\ncat('went on')",
			"Cell In[30], line 1, in print.own(obj)\n----> 1 print.own <- function(x, ...) stop('unprintable')\nError in print.own(obj): unprintable"},
		{"standard input", "readLines(stdin(), n = 1)", "Error: nobody can answer readLines() here: put the value into the code"},
		{"as a file", "f <- file('stdin'); read <- try(readLines(f), silent = TRUE); close(f); cat(read); scan('stdin')",
			"Error : nobody can answer readLines() here: put the value into the code\nError: nobody can answer scan() here: put the value into the code"},
		{"the console", "scan(n = 1)", "Error: nobody can answer scan() here: put the value into the code"},
		{"other input", "cat('4 5\n', file = 'numbers'); scan('numbers', quiet = TRUE); scan(text = '6 7', quiet = TRUE); readLines(textConnection('a\nb')); readLines('numbers')\nstdin <- 'c'; readLines(textConnection(stdin)); rm(stdin)",
			"[1] 4 5\n[1] 6 7\n[1] \"a\" \"b\"\n[1] \"4 5\"\n[1] \"c\""},
		{"a connection that is closed", "closed <- file('numbers'); close(closed); readLines(closed)", "Error in readLines(closed): invalid connection"},
		{"the output of forked processes is not kept", "forked(3)\nlist.files(tempdir(), 'forked')", "é 3 \n[1] 3\nm\nWarning: w\n[1] 3\ncharacter(0)"},
	})
	if got := run("plot(1); cat('before\\n'); if (TRUE) quit()\ncat('after\\n')").String(); !strings.Contains(got, "before\n") || strings.Contains(got, "after\n") || !strings.Contains(got, "kernel died") {
		t.Errorf("quit() in the middle:\n%s", got)
	}
	// What was printed when a cell is interrupted, also by an expression that never ends.
	for name, code := range map[string]string{
		"it sleeps":   "for (i in 1:1000) { cat('line', i, '\\n'); Sys.sleep(0.05) }",
		"it computes": "for (i in 1:1000) { cat('line', i, '\\n'); end <- proc.time()[[3]] + 0.05; while (proc.time()[[3]] < end) 1 }",
	} {
		got := run(code, "timeout_seconds", 1).String()
		if !strings.Contains(got, "line 1 \nline 2 \n") || strings.Count(got, "line ") < 5 {
			t.Errorf("%s, and is interrupted:\n%s", name, got)
		}
	}
	for name, code := range map[string]string{
		"the last line": "f <- function() { cat('loading\n'); cat('fitting\n'); repeat x <- 1 }\nf()",
		"print()":       "f <- function() { print('loading'); print('fitting'); repeat x <- 1 }\nf()",
		"one by one":    "f <- function() { writeLines('loading'); writeLines('fitting'); repeat x <- 1 }; f()",
	} {
		if got := run(code, "timeout_seconds", 1).String(); !strings.Contains(got, "loading") || !strings.Contains(got, "fitting") {
			t.Errorf("%s, and is interrupted:\n%s", name, got)
		}
	}
	for of, said := range map[string]string{"500": "evaluation nested too deeply", "5e5": "too close to the limit"} {
		got := run("options(expressions = " + of + "); f <- function(n) f(n + 1)\nf(1)\ncat('went on')").String()
		if strings.Count(got, said) != 1 || strings.Contains(got, "went on") {
			t.Errorf("calls without end, of which R allows %s:\n%s", of, got)
		}
	}
	if got := run("stop(strrep('x', 20000))").String(); len(got) > 2*maxMessage || strings.Count(got, "Error") != 1 {
		t.Errorf("a huge message: %d bytes\n%.300s", len(got), got)
	}
}

// An interrupt that comes when a cell's code has ended, while its last plot is sent, ends neither the kernel nor the next cell.
func TestRealInterruptBesideACellOfR(t *testing.T) {
	run := newLanguageWorld(t, kernelstest.R)
	run("kept <- 42\nregisterS3method('repr_png', 'recordedplot', function(obj, ...) {\n  tools::pskill(Sys.getpid(), tools::SIGINT)\n  for (i in 1:1e5) identity(i)\n  as.raw(1)\n}, asNamespace('repr'))\nplot(1)")
	if got := run("kept").String(); !strings.HasPrefix(got, "[1] 42\n") {
		t.Error(got)
	}
}

// R's tables are as R prints them; of one that is large the ends and the size are told.
func TestRealTablesOfR(t *testing.T) {
	run := newLanguageWorld(t, kernelstest.R)
	if got := run("data.frame(a = 1:100000)").String(); !strings.Contains(got, "\n30         30\n⋮           ⋮\n99971   99971\n") ||
		!strings.Contains(got, "\n100000 100000\n# 100,000 rows × 1 columns") {
		t.Error(got)
	}
	if got := run("x <- rnorm(1e6)\nx").String(); len(got) > maxValue+1000 || !strings.Contains(got, "left out here") || !strings.Contains(got, "omitted 995000 entries") {
		t.Errorf("a long vector: %d bytes\n%.300s", len(got), got)
	}
	if got := run("options(max.print = 6000)\nx").String(); !strings.Contains(got, "omitted 994000 entries") {
		t.Errorf("with an option of his own: %.300s", got)
	}
	sayAll(t, run, []saying{
		{"small", "data.frame(n = c(1.5, 20), s = c('a', NA))", "n    s\n1  1.5    a\n2 20.0 <NA>"},
		{"one that prints itself", "print.own <- function(x, ...) cat('own, of', nrow(x), 'rows')\nstructure(data.frame(a = 1:100), class = c('own', 'data.frame'))", "own, of 100 rows"},
		{"many rows", "options(repr.matrix.max.rows = 4)\ndata.frame(n = c(1.5, 2:2000), s = c('a', NA))", "n    s\n1       1.5    a\n2       2.0 <NA>\n⋮         ⋮    ⋮\n" +
			"1999 1999.0    a\n2000 2000.0 <NA>\n# 2,000 rows × 2 columns"},
		{"many columns", "options(repr.matrix.max.cols = 2)\nas.data.frame(matrix(1:200, 2))", "V1 ⋯ V100\n1  1 ⋯  199\n2  2 ⋯  200\n# 2 rows × 100 columns"},
		{"a matrix", "matrix(1:20)", "[,1]\n [1,]    1\n [2,]    2\n⋮        ⋮\n[19,]   19\n[20,]   20\n# 20 rows × 1 columns"},
		{"strings", "matrix(c('a', 'b'), 1)", "[,1] [,2]\n[1,] \"a\"  \"b\""},
	})
}

// A program that Bash does not have is told in words for Bash.
func TestRealErrorsOfBash(t *testing.T) {
	run := newLanguageWorld(t, kernelstest.Bash)
	sayAll(t, run, []saying{
		{"no program", "nosuchprogram --version", "bash: nosuchprogram: command not found\nExitStatus: 127\n" +
			"Hint: nosuchprogram is not installed. Programs are installed on the server's host, by its operator."},
		{"no program in a script", "bash -c 'nosuchprogram\necho after'", "bash: line 1: nosuchprogram: command not found\nafter\n" +
			"Hint: nosuchprogram is not installed. Programs are installed on the server's host, by its operator."},
		{"a pager", "printf '%s\\n' first last >pages; less pages", "first\nlast"},
		{"another", "more pages; more -1 +1 pages; cat pages | more", "first\nlast\nfirst\nlast\nfirst\nlast"},
		{"a program's", "seq 300 >long; (bash -c 'more long'; xargs more <<<long; env more long) | wc -l; env | grep -a FUNC || echo none", "900\nnone"},
	})
}

// C#'s errors have the calls in the user's code, and of libraries what it has called; the message comes once.
func TestRealErrorsOfCSharp(t *testing.T) {
	run := newLanguageWorld(t, kernelstest.CSharp)
	sayAll(t, run, []saying{
		{"syntax", "var x = 1;\nvar y = (2 + ;", "CompilationError: (2,13): error CS1525: Unexpected symbol `;'"},
		{"types", "int x = \"a\";\nstring y = 3;", "CompilationError: (1,10): error CS0029: Cannot implicitly convert type `string' to `int'\n(2,12): error CS0029: Cannot implicitly convert type `int' to `string'"},
		{"runtime", "var a = 1;\nthrow new Exception(\"broken here\");", "System.Exception: broken here"},
		{"nested", "class A {\n public static int F(int a) { return G(a); }\n public static int G(int b) { throw new InvalidOperationException(\"inner \" + b); }\n}\nA.F(3)",
			"at A.F (System.Int32 a)\n  at A.G (System.Int32 b)\nSystem.InvalidOperationException: inner 3"},
		{"a cause", "try { int.Parse(\"q\"); }\ncatch (Exception e) { throw new Exception(\"outer\", e); }",
			"at System.Int32.Parse (System.String s)\nSystem.FormatException: Input string was not in a correct format.\n" +
				"The above exception was the direct cause of the following exception:\nSystem.Exception: outer"},
		{"what a library is made of", "File.ReadAllText(\"/nowhere/x\")", "at System.IO.File.ReadAllText (System.String path)\nSystem.IO.DirectoryNotFoundException: Could not find a part of the path \"/nowhere/x\".\nHint: " + filesHint(`Directory.GetFiles(".")`)},
		{"a method that calls itself", "class R { public static int F(int a) { if (a == 0) throw new Exception(\"deep\"); return F(a - 1) + 1; } }\nR.F(50)",
			"at R.F (System.Int32 a)\n[... 50 more calls like this one ...]\nSystem.Exception: deep"},
		{"a warning", "int unused;\n1 + 1", "2"},
	})
	if got := run("throw new Exception(new string('x', 20000));").String(); len(got) > 2*maxMessage || strings.Count(got, "System.Exception") != 1 {
		t.Errorf("a huge message: %d bytes\n%.300s", len(got), got)
	}
}
