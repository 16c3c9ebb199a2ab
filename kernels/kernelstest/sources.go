package kernelstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"cellblock/images"
	"cellblock/kernels"
)

// Bash returns the kernelspec of our Bash kernel, from the sources, and the folders that it must be able to read. It skips the
// test where there is no ipykernel, and in a short run.
func Bash(t testing.TB) (spec kernels.Kernelspec, folders []string) {
	t.Helper()
	Long(t)
	return terminalKernel(t, FromSources(t, "bash"))
}

// CSharp is Bash for our C# kernel, which it compiles. It skips the test where there is no Mono.
func CSharp(t testing.TB) (spec kernels.Kernelspec, folders []string) {
	t.Helper()
	Long(t)
	Need(t, hasMono(), "mono, mcs and Mono.CSharp (mono-runtime, mono-mcs, libmono-csharp4.0c-cil)")
	source, folder := FromSources(t, "csharp").Folder, ShortDir(t)
	for _, name := range []string{images.KernelspecFile, "kernel.py"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "mcs", "-r:Mono.CSharp", "-out:"+filepath.Join(folder, "driver.exe"), filepath.Join(source, "driver.cs"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("mcs: %v\n%s", err, out)
	}
	return terminalKernel(t, language(t, folder))
}

// R is Bash for IRkernel, as we start it.
func R(t testing.TB) (spec kernels.Kernelspec, folders []string) {
	t.Helper()
	Long(t)
	Need(t, hasR(), "R with IRkernel (r-cran-irkernel)")
	l := FromSources(t, "r")
	return kernelspecOf(l), []string{l.Folder}
}

// FromSources is a language as the kernelspec in our sources says it.
func FromSources(t testing.TB, name string) images.Language {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return language(t, filepath.Join(root, "images", "executor", name))
}

func language(t testing.TB, folder string) images.Language {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, images.KernelspecFile))
	if err != nil {
		t.Fatal(err)
	}
	l, err := images.ParseKernelspec(folder, data)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// terminalKernel is the kernelspec of a kernel on a terminal, which ipykernel speaks for.
func terminalKernel(t testing.TB, l images.Language) (kernels.Kernelspec, []string) {
	t.Helper()
	NeedPython(t)
	spec, terminal := kernelspecOf(l), filepath.Join(FromSources(t, "bash").Folder, "..", "terminal")
	spec.Argv[0] = images.PythonInterpreter
	spec.Env["PYTHONPATH"] = terminal // beside it, where it is installed
	return spec, []string{l.Folder, terminal}
}

func kernelspecOf(l images.Language) kernels.Kernelspec {
	return kernels.Kernelspec{
		Name: l.Kernel, DisplayName: l.DisplayName, Language: l.Name, Argv: l.Argv, Env: l.Env, InterruptMode: l.InterruptMode, Transport: l.Transport, Waits: l.Waits,
	}
}

var (
	hasR = sync.OnceValue(func() bool {
		return exec.Command("Rscript", "-e", "stopifnot(requireNamespace('IRkernel'))").Run() == nil
	})
	hasMono = sync.OnceValue(func() bool {
		_, noRuntime := exec.LookPath("mono")
		_, noCompiler := exec.LookPath("mcs")
		_, noLibrary := os.Stat("/usr/lib/mono/4.5/Mono.CSharp.dll")
		return noRuntime == nil && noCompiler == nil && noLibrary == nil
	})
)
