//go:build linux

package mcpserver

import "testing"

// A script has a command line of its own, which is gone when it has ended; what it leaves with decides whether it has failed.
func TestRealScriptArguments(t *testing.T) {
	w := newRealWorld(t)
	script := func(name, text string) {
		t.Helper()
		w.call("write_file", map[string]any{"session_id": "a", "path": name, "content": text}).expect(t, false)
	}
	run := func(name string, args ...string) called {
		return w.call("execute_file", map[string]any{"session_id": "a", "path": name, "args": args})
	}
	script("arg.py", "import argparse, sys\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=1)\nn = p.parse_args().n\nprint('n is', n, sys.argv)\n")
	script("main.py", "import sys\ndef main(): return int(sys.argv[1])\nif __name__ == '__main__': sys.exit(main())\n")
	script("fails.py", "import sys\nprint(sys.argv[1:])\n1/0\n")
	w.run("a", "import sys; before = list(sys.argv); keep = 3").expect(t, false)
	run("arg.py").expect(t, false, "n is 1 ['/workspace/arg.py']", "ok")
	run("arg.py", "--n", "7").expect(t, false, "n is 7 ['/workspace/arg.py', '--n', '7']")
	run("arg.py", "--m").expect(t, true, "arg.py: error: unrecognized arguments: --m", "SystemExit: 2")
	run("arg.py", "--help").expect(t, false, "usage: arg.py", "ok")
	run("main.py", "0").expect(t, false, "ok")
	run("main.py", "3").expect(t, true, "SystemExit: 3")
	run("fails.py", "x y", `q"'`).expect(t, true, `['x y', 'q"\'']`, "File /workspace/fails.py:3", "ZeroDivisionError")
	w.run("a", "sys.argv == before, n, keep, '__argv__' in globals(), __file__").expect(t, false, "(True, 7, 3, False, '/workspace/fails.py')")

	script("clean.py", "get_ipython().run_line_magic('reset', '-f')\nprint('clean')\n")
	run("clean.py", "1").expect(t, false, "clean", "ok")
	w.run("a", "import sys; sys.argv").expect(t, false, "['']")
}
