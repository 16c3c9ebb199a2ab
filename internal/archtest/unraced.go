package archtest

import (
	"go/ast"
	"go/build/constraint"
	"strings"
)

// unraced begins the names of tests that make test runs without the race detector.
const unraced = "TestUnraced"

// CheckUnraced returns the tests that never run: the gate builds all tests with the race detector, and of those that are no part
// of such a build it runs what is named for that.
func CheckUnraced(files []File) []string {
	var broken []string
	for _, f := range files {
		if !f.Test || f.raced() {
			continue
		}
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, unraced) {
				broken = append(broken, f.At(fn.Pos())+": nothing runs "+fn.Name.Name+", which the race detector's build leaves out; begin its name with "+unraced)
			}
		}
	}
	return broken
}

// raced tells whether the file is part of a build with the race detector wherever it is of one without.
func (f File) raced() bool {
	for _, group := range f.AST.Comments {
		for _, line := range group.List {
			x, err := constraint.Parse(line.Text)
			if err != nil || line.Pos() > f.AST.Package {
				continue
			}
			for _, others := range []bool{true, false} {
				built := func(race bool) bool {
					return x.Eval(func(tag string) bool { return tag == "race" && race || tag != "race" && others })
				}
				if built(false) && !built(true) {
					return false
				}
			}
		}
	}
	return true
}
