package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
)

func at(name string, line int) string { return name + ":" + strconv.Itoa(line) }

// CheckDocumented returns the exported names without a comment, and the packages without one. Commands export nothing.
func CheckDocumented(files []File) []string {
	var broken []string
	described := map[string]bool{}
	for _, f := range files {
		if f.Test {
			continue
		}
		described[f.Folder] = described[f.Folder] || f.AST.Doc != nil
		if f.AST.Name.Name != "main" {
			broken = append(broken, undocumented(f)...)
		}
	}
	for folder, ok := range described {
		if !ok {
			broken = append(broken, folder+": no file has a package comment; say what the package is for")
		}
	}
	slices.Sort(broken)
	return broken
}

func undocumented(f File) []string {
	var broken []string
	report := func(name *ast.Ident) {
		broken = append(broken, f.At(name.Pos())+": "+name.Name+
			" is exported without a comment; say what it means, in which units, and which errors it returns")
	}
	for _, d := range f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
				report(d.Name)
			}
		case *ast.GenDecl:
			checkSpecs(d, report)
		}
	}
	return broken
}

// checkSpecs reports names of types, constants and variables. In a group one comment above it serves for constants and
// variables, because their names share a meaning; types each need their own.
func checkSpecs(d *ast.GenDecl, report func(*ast.Ident)) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				report(s.Name)
			}
		case *ast.ValueSpec:
			if s.Doc != nil || s.Comment != nil || d.Doc != nil || d.Tok == token.IMPORT {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					report(name)
				}
			}
		}
	}
}

// exportedReceiver tells whether a function has no receiver or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	for t := d.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
