package archtest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tree is the module's source, read once.
var tree = sync.OnceValues(func() ([]File, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return Load(root)
})

func check(t *testing.T, rule func([]File) []string) {
	t.Helper()
	files, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found: the module is not where this test looks", len(files))
	}
	for _, problem := range rule(files) {
		t.Error(problem)
	}
}

func TestImportsPointDown(t *testing.T)     { check(t, CheckImports) }
func TestNobodySleeps(t *testing.T)         { check(t, CheckSleeps) }
func TestNamesSaySomething(t *testing.T)    { check(t, CheckNames) }
func TestWireIsPure(t *testing.T)           { check(t, CheckPure) }
func TestExportsAreDocumented(t *testing.T) { check(t, CheckDocumented) }
func TestNoTestIsForgotten(t *testing.T)    { check(t, CheckUnraced) }

func TestNothingIsLeftToDo(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	err = Walk(root, func(name string) error {
		if !isCode(name) {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		for _, problem := range CheckFinished(name, text) {
			t.Error(problem)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isCode(name string) bool {
	if slices.Contains([]string{".go", ".sh", ".py", ".js", ".mjs", ".css", ".html", ".yaml", ".yml"}, path.Ext(name)) {
		return true
	}
	base := path.Base(name)
	return base == "Makefile" || strings.HasPrefix(base, "Dockerfile")
}
