package images

import (
	"slices"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func TestName(t *testing.T) {
	for written, want := range map[string]string{
		"python": "python", "R": "r", "C#": "csharp", "C++17": "cpp", "F#": "fsharp", "JavaScript": "javascript", " Bash ": "bash",
		"Wolfram Language": "wolfram_language", "sh": "bash", "../etc": "etc", "😀": "", "": "", "4gl": "gl",
		strings.Repeat("x", 100): strings.Repeat("x", 40),
	} {
		if got := Name(written); got != want {
			t.Errorf("Name(%q) = %q, want %q", written, got, want)
		}
	}
}

func TestLookup(t *testing.T) {
	s := NewSet(Python("/usr/bin/python3"), Language{Name: "python", DisplayName: "another"})
	for _, name := range []string{"python", "Python"} {
		if l, err := s.Lookup(name); err != nil || l.DisplayName != "Python 3" {
			t.Errorf("Lookup(%q) = %+v, %v", name, l, err)
		}
	}
	_, err := s.Lookup("cobol")
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(fault.Text(err), "cobol") || !strings.Contains(fault.Hint(err), "python") {
		t.Errorf("got %s", fault.Text(err))
	}
}

func TestCallersCannotChangeTheSet(t *testing.T) {
	s := NewSet(Python("/usr/bin/python3"))
	l, _ := s.Lookup("python")
	l.Argv[0], l.Env["X"] = "/bin/false", "1"
	if again, _ := s.Lookup("python"); again.Argv[0] == "/bin/false" || again.Env["X"] != "" {
		t.Fatal("changed from outside")
	}
}

func TestParseKernelspec(t *testing.T) {
	const folder = "/usr/share/jupyter/kernels/ours"
	l, err := ParseKernelspec(folder, []byte(`{"argv": ["sh", "{resource_dir}/run", "{connection_file}"], "display_name": "Tiny", "language": "C#",
		"env": {"A": "b"}, "metadata": {"debugger": true, "cellblock": {"transport": "ipc", "note": "It is tiny.", "endings": [".tiny"], "variables": "v", "run_file": "f {path}"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "csharp" || l.Title != "C#" || l.Kernel != "ours" || l.DisplayName != "Tiny" || l.InterruptMode != "signal" || l.Transport != "ipc" ||
		!slices.Equal(l.Argv, []string{"sh", folder + "/run", "{connection_file}"}) || l.Folder != folder || l.Env["A"] != "b" ||
		l.Note != "It is tiny." || !slices.Equal(l.Endings, []string{".tiny"}) || l.Variables != "v" || l.RunFile != "f {path}" {
		t.Errorf("%+v", l)
	}
}

// Whatever the language, nothing waits for somebody who turns pages, nor for a network that is not there. What a kernelspec says
// itself counts.
func TestUnattended(t *testing.T) {
	own, err := ParseKernelspec("/k/own", []byte(`{"argv": ["x", "{connection_file}"], "language": "bash", "env": {"PAGER": "less"}}`))
	if err != nil || own.Env["PAGER"] != "less" {
		t.Errorf("%+v, %v", own, err)
	}
	for _, l := range []Language{own, Python("python3")} {
		if l.Env["LESS"] != "-FRXd" || l.Env["GIT_PAGER"] != "cat" || l.Env["npm_config_fetch_retries"] != "0" || l.Env["PIP_RETRIES"] != "0" || l.Online["npm_config_fetch_retries"] != "2" || l.Online["PIP_RETRIES"] != "1" {
			t.Errorf("%s: %v, %v", l.Name, l.Env, l.Online)
		}
	}
}

// What Jupyter's own programs write names nothing of ours.
func TestParseForeignKernelspec(t *testing.T) {
	l, err := ParseKernelspec("/k/ir", []byte(`{"argv": ["R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"], "language": "R", "interrupt_mode": "message"}`))
	if err != nil || l.Name != "r" || l.Title != "R" || l.DisplayName != "ir" || l.InterruptMode != "message" || l.Transport != "tcp" ||
		!slices.Equal(l.Endings, []string{".r"}) || l.Folder != "" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestParseBrokenKernelspec(t *testing.T) {
	argv := `"argv": ["x", "{connection_file}"]`
	for text, word := range map[string]string{
		``:                                   "JSON",
		`[]`:                                 "array",
		`{` + argv + `}`:                     "language",
		`{` + argv + `, "language": "#"}`:    "language",
		`{` + argv + `, "language": "file"}`: "file",
		`{"language": "a"}`:                  "argv",
		`{"language": "a", "argv": [""]}`:    "argv",
		`{"language": "a", "argv": ["x"]}`:   "connection_file",
		`{` + argv + `, "language": "a", "interrupt_mode": "none"}`:                                                "interrupt_mode",
		`{` + argv + `, "language": "a", "metadata": {"cellblock": {"transport": "udp"}}}`:                         "transport",
		`{` + argv + `, "language": "a", "metadata": {"cellblock": {"note": "a\nb"}}}`:                             "note",
		`{` + argv + `, "language": "a", "metadata": {"cellblock": {"note": "` + strings.Repeat("n", 301) + `"}}}`: "note",
		`{` + argv + `, "language": "a", "metadata": {"cellblock": {"endings": ["py"]}}}`:                          "endings",
		`{"x": "` + strings.Repeat("y", MaxKernelspec) + `"}`:                                                      "larger",
	} {
		_, err := ParseKernelspec("/k/broken", []byte(text))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "broken") || !strings.Contains(err.Error(), word) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

// An image says what its kernels are: whatever that is, what comes of it can be started, and shown to a model.
func FuzzParseKernelspec(f *testing.F) {
	f.Add([]byte(`{"argv": ["sh", "{resource_dir}/run", "{connection_file}"], "language": "C#", "env": {"A": "b"},
		"metadata": {"cellblock": {"transport": "ipc", "note": "It is tiny.", "endings": [".tiny"], "run_file": "f {path}"}}}`))
	f.Add([]byte(`{"argv": ["/opt/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python", "interrupt_mode": "message"}`))
	f.Add([]byte(`{"argv": ["{connection_file}"], "language": "\u0000"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseKernelspec("/k/fuzzed", data)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%v", err)
			}
			return
		}
		if l.Name == "" || l.Name != Name(l.Name) || len(l.Argv) == 0 || len(l.Endings) == 0 || strings.ContainsAny(l.Note, "\n\x00") ||
			l.Transport != "ipc" && l.Transport != "tcp" {
			t.Errorf("%+v", l)
		}
	})
}

func TestIpykernelIsStartedAsOurs(t *testing.T) {
	l, err := ParseKernelspec("/k/venv", []byte(`{"argv": ["/opt/venv/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
		"display_name": "Mine", "language": "python", "env": {"A": "b"}}`))
	want := Python("/opt/venv/bin/python")
	if err != nil || !slices.Equal(l.Argv, want.Argv) || l.Variables != want.Variables || l.Kernel != "venv" || l.DisplayName != "Mine" ||
		l.Env["A"] != "b" || l.Env["PIP_NO_INDEX"] != "1" {
		t.Errorf("%+v, %v", l, err)
	}
	other, err := ParseKernelspec("/k/xpython", []byte(`{"argv": ["xpython", "-f", "{connection_file}"], "language": "python"}`))
	if err != nil || other.Argv[0] != "xpython" || other.Variables != "" {
		t.Errorf("%+v, %v", other, err)
	}
}

func TestReadKernelspecs(t *testing.T) {
	spec := func(language, program string) []byte {
		return []byte(`{"argv": ["` + program + `", "{connection_file}"], "language": "` + language + `"}`)
	}
	order := KernelspecFolders("/mine:relative::/mine", "/home/u/.local/share/jupyter")
	if want := []string{"/mine/kernels", "/home/u/.local/share/jupyter/kernels", "/usr/local/share/jupyter/kernels", "/usr/share/jupyter/kernels"}; !slices.Equal(order, want) {
		t.Errorf("folders: %v", order)
	}
	found, problems := ReadKernelspecs(map[string][]byte{
		"/usr/share/jupyter/kernels/a/kernel.json":       spec("go", "system"),
		"/mine/kernels/z/kernel.json":                    spec("go", "mine"),
		"/usr/local/share/jupyter/kernels/b/kernel.json": spec("rust", "b"),
		"/usr/local/share/jupyter/kernels/c/kernel.json": spec("rust", "c"),
		"/usr/local/share/jupyter/kernels/d/kernel.json": []byte(`{`),
		"/usr/local/share/jupyter/kernels/d/logo.png":    spec("logo", "logo"),
	}, order)
	if len(found) != 2 || found[0].Argv[0] != "mine" || found[1].Argv[0] != "b" || len(problems) != 1 {
		t.Errorf("%+v, %v", found, problems)
	}
}

func TestChoose(t *testing.T) {
	bash, r, python := Language{Name: "bash"}, Language{Name: "r"}, Language{Name: "python"}
	chosen := Choose([]Offer{
		{"cellblock-full:latest", []Language{bash, r, python}},
		{"cellblock-stats:latest", []Language{r, bash}},
		{"cellblock-python:latest", []Language{python, bash, r}},
	})
	var got []string
	for _, l := range chosen {
		got = append(got, l.Name+" "+l.Image)
	}
	if want := []string{"bash cellblock-stats:latest", "python cellblock-python:latest", "r cellblock-stats:latest"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestUsable(t *testing.T) {
	for name, want := range map[string]bool{
		"cellblock-bash:latest": true, "localhost/cellblock-bash:latest": true, "cellblock-bash:1": false, "cellblock-derived/x:latest": false,
		"evil.example/cellblock-bash:latest": false, "bash:latest": false, "cellblock-bash": false,
	} {
		if Usable(name) != want {
			t.Errorf("Usable(%q) is %v", name, !want)
		}
	}
	if got := Labelled("Python, C#,,python"); !slices.Equal(got, []string{"python", "csharp"}) {
		t.Errorf("labelled: %q", got)
	}
}
