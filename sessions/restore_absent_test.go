package sessions

import (
	"testing"

	"cellblock/kernels"
)

func TestWhoSetWhatIsMissing(t *testing.T) {
	cell := func(number int, code string) ExecutionInfo { return ExecutionInfo{Number: number, Code: code} }
	for name, tt := range map[string]struct {
		says   string
		failed []ExecutionInfo
		want   int
	}{
		"import as":      {"name 'plt' is not defined", []ExecutionInfo{cell(2, "import numpy as np, matplotlib.pyplot as plt\n1/0")}, 2},
		"import":         {"name 'time' is not defined. Did you forget to import 'time'?", []ExecutionInfo{cell(2, "import os, time\ntime.sleep(99)")}, 2},
		"from":           {"name 'sqrt' is not defined", []ExecutionInfo{cell(2, "from math import (sin, sqrt)\n1/0")}, 2},
		"assigned":       {"name 'b' is not defined", []ExecutionInfo{cell(2, "a, b = 1, 2\n1/0")}, 2},
		"semicolon":      {"name 'x' is not defined", []ExecutionInfo{cell(2, "import time; x = 1; time.sleep(99)")}, 2},
		"defined":        {"name 'f' is not defined", []ExecutionInfo{cell(2, "def f(x): return x\n1/0")}, 2},
		"JavaScript":     {"total is not defined", []ExecutionInfo{cell(2, "const total = 3; fail()")}, 2},
		"R":              {"object 'd' not found", []ExecutionInfo{cell(2, "d <- 1\nstop()")}, 2},
		"the last":       {"name 'x' is not defined", []ExecutionInfo{cell(2, "x = 1\n1/0"), cell(4, "x = 2\n1/0"), cell(9, "x = 3\n1/0")}, 4},
		"only compared":  {"name 'x' is not defined", []ExecutionInfo{cell(2, "x == 1"), cell(3, "print(x)"), cell(4, "max = 1")}, 0},
		"something else": {"division by zero", []ExecutionInfo{cell(2, "x = 1\n1/0")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := RestoreReport{Cells: []RestoredCell{{Original: 7, Result: Result{
				Result: kernels.Result{Status: kernels.StatusError, Error: &kernels.ExecError{Name: "NameError", Value: tt.says}}}}}}
			if r.whoSetWhatIsMissing(tt.failed); r.SetBy != tt.want || (r.Absent == "") != (tt.want == 0) {
				t.Errorf("%q is set by %d, want %d", r.Absent, r.SetBy, tt.want)
			}
		})
	}
	(&RestoreReport{}).whoSetWhatIsMissing(nil)
}

// A cell is said to have set a name only where a statement's beginning says so: to run all cells again for nothing is dear.
func TestSetsAtTop(t *testing.T) {
	for code, name := range map[string]string{
		"import numpy as np, matplotlib.pyplot as plt": "plt", "import os, time": "time",
		"from math import sin, sqrt": "sqrt", "a, b = 1, 2": "b", "1/1\ndef f(x): return x": "f", "async def g(): pass": "g",
		"for i, row in rows: pass": "row", "const total = 3": "total", "d <- 1": "d", "class A: pass": "A", "df = read()": "df",
		"import time; t0 = time.time()": "t0", "x = f(1); import numpy as np": "np", "s = 'a;b'; d = {'k': 1}; y = 2": "y", "1/1\na <- 1; b <- 2": "b",
	} {
		if !setsAtTop(name).MatchString(code) {
			t.Errorf("%s is not set by %q", name, code)
		}
	}
	for code, name := range map[string]string{
		"plt.plot(xs,\n    color='red')": "color", "[x*x for x in range(3)]": "x", "def f():\n    total = 1": "total", "# import pandas as df": "df",
		"print('a class is there')": "is", "x == 1": "x", "def f(y): return y": "y", "y = [n for n in range(3)]": "n", "print(max)": "max",
		"f <- function(x) { y <- 1; z <- 2 }": "z", "print('a; q = 1')": "q", "if a:\n    b = 1; w = 2": "w", "1 # then; v = 2": "v", "print(1); x == 1": "x",
	} {
		if setsAtTop(name).MatchString(code) {
			t.Errorf("%s is not set by %q", name, code)
		}
	}
}
