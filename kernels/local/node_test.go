//go:build linux

package local

import (
	"strings"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

func TestPythonKernel(t *testing.T) {
	kernelstest.NeedPython(t)
	kernelstest.TestKernel(t, kernelSetup(kernelstest.Python, ""), kernelstest.PythonDialect)
}

func TestNodeKernel(t *testing.T) {
	for _, d := range []kernelstest.Dialect{kernelstest.JavaScriptDialect, kernelstest.TypeScriptDialect} {
		t.Run(d.Language, func(t *testing.T) {
			spec, folder := kernelstest.Node(t, d.Language)
			kernelstest.TestKernel(t, kernelSetup(spec, folder), d)
		})
	}
}

// What is wrong with a cell's types is told, and does not keep it from running.
func TestTypeErrors(t *testing.T) {
	spec, folder := kernelstest.Node(t, "typescript")
	b := kernelstest.Launch(t, kernelSetup(spec, folder))
	b.Want("interface P { name: string }\nlet p: P = { name: 'a' }", "")
	for _, c := range []struct{ code, value, says string }{
		{"p = { name: 5 }; p.name", "5", "line 1: TS2322: Type 'number' is not assignable to type 'string'."},
		{"const q: P = p\nq.nome", "", "line 2: TS2339: Property 'nome' does not exist on type 'P'."},
		{"(p.name as string).length === undefined", "true", ""},
		{"enum E { A = 3 }\nclass C { constructor(public e: E) {} }\nnew C(E.A).e", "3", ""},
	} {
		text := b.Run(c.code)
		if c.value != "" && !strings.Contains(text, c.value+"\n") {
			t.Errorf("%s: no %q in %q", c.code, c.value, text)
		}
		if c.says == "" && strings.Contains(text, "TS") || !strings.Contains(text, c.says) {
			t.Errorf("%s: no %q in %q", c.code, c.says, text)
		}
	}
}

// kernelSetup runs kernels that need to read a folder, if it is not empty.
func kernelSetup(spec kernels.Kernelspec, folder string) kernelstest.Setup {
	return kernelstest.Setup{Kernelspec: spec, New: func(t *testing.T, dir string) kernels.Provisioner {
		return newLocal(t, dir, withShim(t), func(c *Config) {
			if folder != "" {
				c.ReadOnlyPaths = append(c.ReadOnlyPaths, folder)
			}
		})
	}}
}
