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
