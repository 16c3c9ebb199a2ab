package archtest

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// CheckSleeps returns the places outside tests that call time.Sleep. Waiting for a length of time instead of for an event
// is either too long or too short.
func CheckSleeps(files []File) []string {
	var broken []string
	for _, f := range files {
		if f.Test {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" && isPackage(s.X, "time") {
				broken = append(broken, f.At(s.Pos())+
					": time.Sleep; wait for the event itself, or for a timer in a select with the context")
			}
			return true
		})
	}
	return broken
}

func isPackage(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}

// heaps are names that say nothing about what belongs there, so that everything does.
var heaps = []string{"util", "utils", "helper", "helpers", "common", "misc", "shared", "lib"}

// CheckNames returns packages, folders and files with names that say nothing.
func CheckNames(files []File) []string {
	var broken []string
	for _, f := range files {
		file := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.Path), ".go"), "_test")
		for _, name := range []string{f.AST.Name.Name, path.Base(f.Folder), file} {
			if slices.Contains(heaps, name) {
				broken = append(broken, f.Path+": the name "+name+" says nothing; name it after what it is about")
				break
			}
		}
	}
	return broken
}

// CheckPure returns what in kernels/wire is not pure: sockets, files, goroutines.
func CheckPure(files []File) []string {
	var broken []string
	for _, f := range files {
		if f.Folder != "kernels/wire" || f.Test {
			continue
		}
		for imported, at := range f.Imports() {
			if slices.Contains([]string{"net", "os", "io/fs", "context"}, imported) {
				broken = append(broken, at+": kernels/wire imports "+imported+", but is bytes in, message out")
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				broken = append(broken, f.At(g.Pos())+": kernels/wire starts a goroutine, but is bytes in, message out")
			}
			return true
		})
	}
	return broken
}

var unfinished = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}, "|") + `)\b`)

// CheckFinished returns the lines of a text that say that something is left to do.
func CheckFinished(name string, text []byte) []string {
	var broken []string
	line := 1
	for s := range strings.Lines(string(text)) {
		if mark := unfinished.FindString(s); mark != "" {
			broken = append(broken, at(name, line)+": "+mark+"; finish it, or describe it where work is planned")
		}
		line++
	}
	return broken
}
