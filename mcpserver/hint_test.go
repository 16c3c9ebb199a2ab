package mcpserver

import (
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/egress"
	"cellblock/images/packages"
	"cellblock/kernels"
	"cellblock/sessions"
)

func TestPrintedHint(t *testing.T) {
	here := bounds{workspace: 10 << 30, manager: packages.Pip}
	const pip = "WARNING: Retrying … Temporary failure in name resolution\nERROR: No matching distribution found for humanize"
	for _, tt := range []struct {
		name   string
		said   []string
		failed *kernels.ExecError
		want   string
	}{
		{"nothing", nil, nil, ""},
		{"all is well", []string{"42", "resolved"}, nil, ""},
		{"pip", []string{pip}, nil, here.installHint()},
		{"pip on Debian", []string{"[stderr]\nerror: externally-managed-environment\n\n× This"}, nil, here.installHint()},
		{"no pip", []string{"/usr/bin/python3: No module named pip\nNote: you may need to restart the kernel to use updated packages."}, nil, here.installHint()},
		{"no pip in the shell", []string{"/usr/bin/sh: 1: pip: not found"}, nil, here.installHint()},
		{"pip after curl", []string{"curl: (6) Could not resolve host: example.com", pip}, nil, here.installHint()},
		{"curl", []string{"before", "curl: (6) Could not resolve host: example.com", "after"}, nil, network{}.hint("")},
		{"a program that is checked", []string{pip}, &kernels.ExecError{Name: "CalledProcessError"}, here.installHint()},
		{"cp", []string{"cp: error writing 'b': Disk quota exceeded"}, nil, "The workspace may hold 10 GiB: delete files that are not needed."},
		{"spawned", []string{"[stderr]\nAttributeError: Can't get attribute 'work' on <module '__main__' (built-in)>"}, nil,
			`A process that is spawned has nothing of the cells: write work into a module (%%writefile work.py) and import it, or take multiprocessing.get_context("fork").`},
		{"an error that has a hint", []string{pip}, &kernels.ExecError{Name: "ModuleNotFoundError", Value: "No module named 'humanize'"}, ""},
	} {
		var outputs []mcp.Content
		for _, text := range tt.said {
			outputs = append(outputs, mcp.NewTextContent(text))
		}
		if got := printedHint(outputs, tt.failed, here); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// What a program has printed that failed is looked at where its caller has it in the error, too.
func TestHintOfACapturedError(t *testing.T) {
	failed := kernels.ExecError{Name: "CalledProcessError", Value: "Command '['curl']' returned non-zero exit status 6.", Traceback: []string{"frames",
		"CalledProcessError: Command '['curl']' returned non-zero exit status 6.\nIts stderr: curl: (6) Could not resolve host: example.com"}}
	if got := errorHint(failed, bounds{}); got != (network{}).hint("") {
		t.Errorf("%q", got)
	}
	failed.Traceback = failed.Traceback[:1]
	if got := errorHint(failed, bounds{}); got != "" {
		t.Errorf("%q", got)
	}
}

// Code that wants a window is told that plots need none, however the window is missing.
func TestHintOfAScreen(t *testing.T) {
	for said, name := range map[string]string{
		"No module named 'tkinter'":         "ModuleNotFoundError",
		"No module named 'PyQt5.QtWidgets'": "ModuleNotFoundError",
		"No module named 'ipympl'":          "ModuleNotFoundError",
		"Failed to import any of the following Qt binding modules: PyQt6, PySide6, PyQt5, PySide2":                      "ImportError",
		"Cannot load backend 'TkAgg' which requires the 'tk' interactive framework, as 'headless' is currently running": "ImportError",
	} {
		if got := errorHint(kernels.ExecError{Name: name, Value: said}, bounds{}); got != noScreen {
			t.Errorf("%s: %q", said, got)
		}
	}
	if got := errorHint(kernels.ExecError{Name: "ModuleNotFoundError", Value: "No module named 'gizmo'"}, bounds{}); !strings.Contains(got, "gizmo is not installed") {
		t.Error(got)
	}
}

// A progress bar that wants widgets is told of the one that needs none.
func TestHintOfWidgets(t *testing.T) {
	said := "IProgress not found. Please update jupyter and ipywidgets. See https://ipywidgets.readthedocs.io/en/stable/user_install.html"
	if got := errorHint(kernels.ExecError{Name: "ImportError", Value: said}, bounds{}); !strings.Contains(got, "from tqdm import tqdm") {
		t.Error(got)
	}
}

// A program that is not there, or that would have to be root, is told how programs get there, in whatever language the session is.
func TestHintOfAProgram(t *testing.T) {
	images, internet := network{images: true}, network{images: true, mode: egress.Internet}
	const inside, asJq = "cannot be changed from inside", `install_package gets Debian's packages into the session's image: "apt:jq"`
	for _, tt := range []struct {
		said    string
		network network
		manager packages.Manager
		want    string
	}{
		{"/bin/sh: 1: python: not found", images, packages.Pip, "It is called python3 here."},
		{"bash: git: command not found", images, packages.Apt, `git is not installed. install_package gets Debian's packages into the session's image: "apt:git"`},
		{"before\nbash: line 3: git: command not found\nafter", internet, packages.Apt, `"apt:git"`},
		{"/bin/sh: 1: git: not found\r\n", images, packages.Pip, `git is not installed. install_package`},
		{"[stderr] sh: 1: git: not found", images, packages.Npm, `"apt:git"`},
		{"bash: git: command not found", network{host: true}, packages.Apt, "git is not installed. Programs are installed on the server's host, by its operator."},
		{"bash: git: command not found", network{}, packages.Apt, "git is not installed. Programs come with the kernels' image, which is the operator's."},
		{"bash: npm: command not found", images, packages.Apt, "npm is not installed, and could fetch nothing, as the kernel has no network. " + asJq},
		{"bash: pip: command not found", images, packages.Apt, "pip is not installed, and could fetch nothing, as the kernel has no network. " + asJq},
		{"/bin/sh: 1: pip: not found", images, packages.Pip, "Nothing can be installed, as the kernel has no network: use what is there (importlib"},
		{"bash: sudo: command not found", internet, packages.Apt, inside},
		{"E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\nE: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?", images, packages.Apt, inside},
		{"E: List directory /var/lib/apt/lists/partial is missing. - Acquire (30: Read-only file system)", internet, packages.Pip, asJq},
		{"E: Could not open lock file /var/lib/dpkg/lock - open (30: Read-only file system)", images, packages.Pip, asJq},
		{"page: not found", images, packages.Apt, ""},
		{"He said: command not found", images, packages.Apt, ""},
		{"Error: object 'x' not found", images, packages.Apt, ""},
	} {
		got := printedHint([]mcp.Content{mcp.NewTextContent(tt.said)}, nil, bounds{network: tt.network, manager: tt.manager})
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" || tt.manager != packages.Pip && strings.Contains(got, "importlib") {
			t.Errorf("%s:\n%q", tt.said, got)
		}
	}
}

// What fails for want of a network is told what the session's profile has, and which have one.
func TestNetworkHint(t *testing.T) {
	cfg := sessions.Config{Profiles: map[string]sessions.Profile{
		"session": {}, "web": {Network: egress.Policy{Mode: egress.Internet}}, "named": {Network: egress.Policy{Mode: egress.Hosts, Hosts: []string{"pypi.org", "*.example.com"}}},
	}}
	refused := kernels.ExecError{Name: "OSError", Value: "Tunnel connection failed: 403 Forbidden"}
	missing := kernels.ExecError{Name: "ModuleNotFoundError", Value: "No module named 'humanize'"}
	for _, tt := range []struct {
		profile string
		err     kernels.ExecError
		want    []string
	}{
		{"session", refused, []string{"no network", "A new session has a network with the profile named or web."}},
		{"named", refused, []string{"pypi.org, *.example.com", "network.private"}},
		{"named", kernels.ExecError{Name: "HTTPError", Value: "HTTP Error 403: Forbidden (cellblock: no)"}, []string{"pypi.org, *.example.com"}},
		{"web", refused, []string{"public addresses"}},
		{"web", kernels.ExecError{Name: "ProxyError", Value: "Tunnel connection failed: 502 Bad Gateway (cellblock: the name pypi.org " + egress.Unresolved + ")"}, []string{"its machine is offline"}},
		{"named", kernels.ExecError{Name: "HTTPError", Value: "HTTP Error 502: cellblock: the name pypi.org " + egress.Unresolved}, []string{"its machine is offline"}},
		{"session", kernels.ExecError{Name: "ValueError", Value: "it " + egress.Unresolved}, []string{"The kernel has no network"}},
		{"session", missing, []string{"no network to install it", "named or web", "kernels' image"}},
		{"web", missing, []string{"%pip install humanize"}},
	} {
		got := errorHint(tt.err, bounds{network: networkOf(cfg, tt.profile)})
		for _, part := range tt.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s, %s: %q", tt.profile, tt.err.Value, got)
			}
		}
	}
	printed := func(said string) string {
		return printedHint([]mcp.Content{mcp.NewTextContent(said)}, nil, bounds{network: networkOf(cfg, "web")})
	}
	if got := printed("curl: (56) CONNECT tunnel failed, response 502"); !strings.Contains(got, "curl -v") {
		t.Errorf("curl: %q", got)
	}
	if got := printed("cellblock: the name pypi.org " + egress.Unresolved); !strings.Contains(got, "its machine is offline") {
		t.Errorf("what the way out says: %q", got)
	}
	if got := errorHint(kernels.ExecError{Name: "HTTPError", Value: "HTTP Error 502: cellblock: there is no host pypi.orgg"}, bounds{network: networkOf(cfg, "web")}); got != "" {
		t.Errorf("what says all: %q", got)
	}
	for said, name := range map[string]string{
		"Missing optional dependency 'Jinja2'. DataFrame.style requires jinja2. Use pip or conda to install Jinja2.": "Jinja2",
		"`Import openpyxl` failed.  Use pip or conda to install the openpyxl package.":                               "openpyxl",
		"Unable to find a usable engine; tried using: 'pyarrow', 'fastparquet'.\nA suitable version of pyarrow":      "pyarrow",
	} {
		got := errorHint(kernels.ExecError{Name: "ImportError", Value: said}, bounds{network: networkOf(cfg, "session")})
		if !strings.HasPrefix(got, name+" is not installed, and the kernel has no network to install it") {
			t.Errorf("%s: %q", said, got)
		}
	}
	for _, said := range []string{"cannot import name 'x' from 'y'", "Import error: libfoo.so.1: cannot open shared object file", "`Import error: libfoo.so.1", "Import openpyxl"} {
		if got := errorHint(kernels.ExecError{Name: "ImportError", Value: said}, bounds{}); got != "" {
			t.Errorf("a hint for another error: %s: %q", said, got)
		}
	}
	if got := (network{host: true}).missing("a", "b", "c"); !strings.Contains(got, "on the server's host") || strings.Contains(got, "image") {
		t.Errorf("without images: %q", got)
	}
	if got := (bounds{network: network{mode: egress.Internet}}).installHint(); got != "" {
		t.Errorf("with a network: %q", got)
	}
}

// A program that Python cannot start is no file that is missing.
func TestHintOfACommand(t *testing.T) {
	frames := []string{"Traceback", "\x1b[0;32m/usr/lib/python3.11/subprocess.py\x1b[0m in \x1b[0;36m_execute_child\x1b[0m"}
	for _, tt := range []struct {
		value  string
		frames []string
		want   string
	}{
		{"[Errno 2] No such file or directory: 'ffmpeg'", frames, "ffmpeg is not installed"},
		{"[Errno 2] No such file or directory: 'ffmpeg'", nil, "os.listdir()"},
		{"[Errno 2] No such file or directory: './run.sh'", frames, "os.listdir()"},
		{"[Errno 2] No such file or directory: '/nowhere'", frames, "os.listdir()"},
		{"[Errno 2] No such file or directory: 'nowhere'", append(frames, "run(\x1b[1m'ls'\x1b[0m, cwd\x1b[1m=\x1b[0m'nowhere')"), "os.listdir()"},
	} {
		if got := errorHint(kernels.ExecError{Name: "FileNotFoundError", Value: tt.value, Traceback: tt.frames}, bounds{}); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.value, got)
		}
	}
}

// Where a file is to be written, it is its folder that is missing.
func TestHintOfAFolder(t *testing.T) {
	const python, node = "[Errno 2] No such file or directory: ", "ENOENT: no such file or directory, open "
	for _, tt := range []struct{ name, value, line, want string }{
		{"FileNotFoundError", python + "'out/x.png'", "----> 1 plt.savefig('out/x.png')", "Make the folder first: import os; os.makedirs('out', exist_ok=True)."},
		{"FileNotFoundError", python + "'a/b/x.txt'", "----> 1 with open(path, \x1b[1m\"w\"\x1b[0m) as f:", "os.makedirs('a/b', exist_ok=True)"},
		{"FileNotFoundError", python + "'/workspace/a/x.bin'", "--> 579     with open(name, 'wb') as f:", "os.makedirs('/workspace/a', exist_ok=True)"},
		{"FileNotFoundError", python + "'data/x.csv'", "----> 1 open('data/x.csv')", "os.listdir()"},
		{"FileNotFoundError", python + "'data/x.csv'", "----> 1 open('data/x.csv', 'rb')", "os.listdir()"},
		{"FileNotFoundError", python + "'data/x.json'", "----> 1 json.load(open('data/x.json'))['x']", "os.listdir()"},
		{"FileNotFoundError", python + "'data/x.csv'", "----> 1 pd.read_csv(open('data/x.csv'), names=['x', 'a'])", "os.listdir()"},
		{"FileNotFoundError", python + "'a/x.txt'", "----> 1 Path('a/x.txt').open(mode='a')", "os.makedirs('a', exist_ok=True)"},
		{"FileNotFoundError", python + "'a/b/c'", "----> 1 os.mkdir('a/b/c')", "os.makedirs('a/b', exist_ok=True)"},
		{"FileNotFoundError", python + "'/mnt/data/x.csv'", "----> 1 open('/mnt/data/x.csv', 'w')", "Only the working directory, /tmp and /out can be written."},
		{"FileNotFoundError", python + "'/out/a/x.csv'", "----> 1 open('/out/a/x.csv', 'w')", "os.makedirs('/out/a', exist_ok=True)"},
		{"FileNotFoundError", python + "'/mnt/data/x.csv'", "----> 1 open('/mnt/data/x.csv')", "os.listdir()"},
		{"FileNotFoundError", python + "'x.csv'", "----> 1 open('x.csv', 'w')", "os.listdir()"},
		{"Error", node + "'out/x.json'", "----> 1 fs.writeFileSync('out/x.json', '{}')", "Make the folder first: fs.mkdirSync('out', {recursive: true})."},
		{"Error", node + "'out/x.json'", "----> 1 fs.readFileSync('out/x.json')", "fs.readdirSync('.')"},
	} {
		e := kernels.ExecError{Name: tt.name, Value: tt.value, Traceback: []string{"Cell In[1], line 1\n" + tt.line, tt.name + ": " + tt.value}}
		if got := errorHint(e, bounds{writable: []string{"/out"}}); !strings.Contains(got, tt.want) {
			t.Errorf("%s, %s: %q", tt.value, tt.line, got)
		}
	}
}

// What Node says of what is not there.
func TestHintOfNode(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"Cannot find package 'lodash' imported from /workspace/", "lodash is not installed"},
		{"Cannot find module '@scope/name'\nRequire stack:\n- /workspace/cell.js", "@scope/name is not installed"},
		{"Cannot find module './mine.js'\nRequire stack:\n- /workspace/cell.js", ""},
		{"Cannot find module '/workspace/mine.mjs' imported from /workspace/", ""},
		{"ENOENT: no such file or directory, open 'a.csv'", "fs.readdirSync"},
		{"spawn git ENOENT", "git is not installed"},
		{"spawnSync git ENOENT", "git is not installed"},
		{"EROFS: read-only file system, open '/usr/a'", "Only the working directory"},
		{"getaddrinfo ENOTFOUND example.com", "no network"},
		{"Array buffer allocation failed", "Work on the data in pieces"},
	} {
		got := errorHint(kernels.ExecError{Name: "Error", Value: tt.value}, bounds{})
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.value, got)
		}
	}
}

// What R and C# say of what is not there.
func TestHintOfRAndCSharp(t *testing.T) {
	internet := network{mode: egress.Internet}
	for _, tt := range []struct {
		name, value string
		network     network
		want        string
	}{
		{"ERROR", "there is no package called ‘zoo’", network{}, "zoo is not installed, and the kernel has no network to install it: use what is there (rownames(installed.packages())"},
		{"ERROR", "there is no package called 'data.table'", internet, `install.packages("data.table"), which works for a package that needs no compiler.`},
		{"ERROR", "there is no package called 'data.table'", network{mode: egress.Internet, host: true}, `install.packages("data.table").`},
		{"ERROR", "there is no package called ‘RSQLite’", network{images: true}, `"apt:r-cran-rsqlite"`},
		{"ERROR", "there is no package called “zoo”", network{}, ""},
		{"ERROR", "'a.csv' does not exist in current working directory ('/workspace').", network{}, "list.files()"},
		{"ERROR", "'/mnt/data/a.csv' does not exist.", network{}, "list.files()"},
		{"ERROR", "Error in data.table::fread(\"a.csv\"): File 'a.csv' does not exist or is non-readable. getwd()=='/workspace'", network{}, "list.files()"},
		{"ERROR", "'f' does not exist.", network{}, ""},
		{"ERROR", "cannot allocate vector of size 74.5 Gb", network{}, "Work on the data in pieces"},
		{"ERROR", "unable to install packages", network{}, "Nothing can be installed, as the kernel has no network"},
		{"ERROR", "unable to install packages", internet, `.libPaths("library")`},
		{"System.Net.WebException", "Error: NameResolutionFailure", network{}, "no network"},
		{"System.IO.FileNotFoundException", "Could not find file \"/workspace/a.csv\"", network{}, "Directory.GetFiles"},
		{"System.IO.DirectoryNotFoundException", "Could not find a part of the path \"/home/me\".", network{}, "none of the user's machine"},
	} {
		got := errorHint(kernels.ExecError{Name: tt.name, Value: tt.value}, bounds{network: tt.network})
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", tt.value, got)
		}
	}
	for said, want := range map[string]string{
		"[stderr] Warning in file(file, \"rt\"): cannot open file '/home/me/x.csv': No such file or directory": "list.files()",
		"Loading required package: abc\n“there is no package called ‘abc’”":                                    "abc is not installed",
		"“package ‘lobstr’ is not available for this version of R":                                             "Nothing can be installed",
		"URL 'https://example.com/x.csv': status was 'Could not resolve hostname'":                             "no network",
		"URL 'https://example.com/x.csv': status was 'Couldn't resolve host name'":                             "no network",
	} {
		failed := &kernels.ExecError{Name: "ERROR", Value: "Error in file(file, \"rt\"): cannot open the connection"}
		if got := printedHint([]mcp.Content{mcp.NewTextContent(said)}, failed, bounds{manager: packages.Apt}); !strings.Contains(got, want) {
			t.Errorf("%s: %q", said, got)
		}
	}
	own := []mcp.Content{mcp.NewTextContent("cannot open file 'x': No such file or directory")}
	for _, failed := range []*kernels.ExecError{nil, {Name: "ERROR", Value: "Error in f(): cannot open file 'x': No such file or directory"}} {
		if got := printedHint(own, failed, bounds{}); got != "" {
			t.Errorf("what the user's code says itself: %q", got)
		}
	}
}

// A cell in which a command failed says so once, before its last line, although nothing was raised.
func TestHintOfAPrintedFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, elsewhere := range [][]string{nil, {"development"}} { // a profile is named to those alone who may use it
			for _, profile := range elsewhere {
				w.scopes = append(w.scopes, ProfileScope(profile))
			}
			got := w.run("s", "print ERROR: No matching distribution found for humanize")
			want := bounds{network: network{elsewhere: elsewhere, host: true}, manager: packages.Pip}.installHint()
			got.expect(t, false, "humanize\nHint: "+want+"\n[session s · cell ")
			if strings.Count(got.String(), "Hint: ") != 1 || strings.Contains(got.String(), "development") != (elsewhere != nil) {
				t.Error(got)
			}
		}
		if got := w.run("s", "print fine"); strings.Contains(got.String(), "Hint") {
			t.Error(got)
		}
	})
}
