// Package archtest holds the house rules that a compiler does not know, as tests: which folder may import which, who may
// use which library, and a few habits. It reads the source of the whole module, so it sees files of every platform and
// needs no build. A rule that stands in the way of a good change is changed here, in the same commit, with its reason.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Module is the module's path, which own imports begin with.
const Module = "cellblock"

// A File is one Go file of the module.
type File struct {
	// Path is relative to the module's root, with slashes.
	Path string
	// Folder is the package's folder, relative likewise: what follows Module/ in its import path.
	Folder string
	// Test tells whether it is compiled for tests only.
	Test bool
	// AST is its syntax, with comments; Positions says where what stands.
	AST       *ast.File
	Positions *token.FileSet
}

// At returns path:line of a place in the file.
func (f File) At(pos token.Pos) string {
	return f.Path + ":" + strconv.Itoa(f.Positions.Position(pos).Line)
}

// Imports returns the import paths of the file with their places.
func (f File) Imports() map[string]string {
	imports := map[string]string{}
	for _, spec := range f.AST.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err == nil {
			imports[name] = f.At(spec.Pos())
		}
	}
	return imports
}

// ParseFile parses one Go file from its text.
func ParseFile(name string, text []byte) (File, error) {
	positions := token.NewFileSet()
	syntax, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, err
	}
	return File{
		Path: name, Folder: path.Dir(name), Test: strings.HasSuffix(name, "_test.go"), AST: syntax, Positions: positions,
	}, nil
}

// Load parses every Go file under root.
func Load(root string) ([]File, error) {
	var files []File
	err := Walk(root, func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		f, err := ParseFile(name, text)
		files = append(files, f)
		return err
	})
	return files, err
}

// Walk calls visit with each file of the source under root, by its path relative to root with slashes. What is built,
// fetched or hidden is left out.
func Walk(root string, visit func(name string) error) error {
	return filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, full)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && notSource(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		return visit(filepath.ToSlash(name))
	})
}

func notSource(folder string) bool {
	switch folder {
	case "bin", "dist", "testdata", "vendor", "node_modules", "demo-output":
		return true
	}
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

// Root returns the folder of the module's go.mod, starting at the working folder.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("archtest: no go.mod above the working folder")
		}
		dir = parent
	}
}
