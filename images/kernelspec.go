package images

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cellblock/internal/fault"
)

// KernelspecFile is the name of the file that describes a kernel, in a folder with the kernelspec's name.
const KernelspecFile = "kernel.json"

// MaxKernelspec bounds a kernelspec, in bytes: all of it travels to the shim with each start.
const MaxKernelspec = 64 << 10

// kernelJSON is a kernelspec as it is written.
type kernelJSON struct {
	Argv          []string          `json:"argv"`
	DisplayName   string            `json:"display_name"`
	Language      string            `json:"language"`
	InterruptMode string            `json:"interrupt_mode"`
	Env           map[string]string `json:"env"`
	Metadata      struct {
		Cellblock extras `json:"cellblock"`
	} `json:"metadata"`
}

// extras are what Jupyter's kernelspecs have no place for, under metadata.cellblock. All of it may be left out.
type extras struct {
	Transport  string   `json:"transport"`
	Waits      bool     `json:"waits"`
	Note       string   `json:"note"`
	Endings    []string `json:"endings"`
	Variables  string   `json:"variables"`
	Save       string   `json:"save"`
	Load       string   `json:"load"`
	Checkpoint string   `json:"checkpoint"`
	RunFile    string   `json:"run_file"`
}

var endingRule = regexp.MustCompile(`^\.[a-z0-9]{1,12}$`)

// maxNote bounds a note: every model reads it with every call.
const maxNote = 300

// ParseKernelspec reads a kernelspec, the file KernelspecFile in folder. Its error says what is wrong with it.
//
// Kernels of others are reached by TCP on the loopback of their own namespace, which every kernel knows; one that knows
// ipc says so in its metadata.
func ParseKernelspec(folder string, data []byte) (Language, error) {
	name := path.Base(folder)
	fail := func(format string, args ...any) (Language, error) {
		return Language{}, fault.New(fault.Invalid, "kernelspec "+name+": "+format, args...)
	}
	var k kernelJSON
	if len(data) > MaxKernelspec {
		return fail("it is larger than %d bytes", MaxKernelspec)
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return fail("%w", err)
	}
	x := k.Metadata.Cellblock
	l := Language{
		Name: Name(k.Language), DisplayName: cmp.Or(k.DisplayName, name), Kernel: name,
		Argv: k.Argv, InterruptMode: cmp.Or(k.InterruptMode, "signal"), Transport: cmp.Or(x.Transport, "tcp"), Waits: x.Waits,
		Env: with(unattended, k.Env), Online: with(online, nil),
		Note: x.Note, Variables: x.Variables, Save: x.Save, Load: x.Load, Checkpoint: x.Checkpoint, RunFile: x.RunFile,
	}
	l.Title = titleOf(k.Language, l.Name)
	switch {
	case l.Name == "":
		return fail("it names no language")
	case l.Name == "file": // the tool that runs it would be called as the one that runs files is
		return fail("a language cannot be called file")
	case len(l.Argv) == 0 || l.Argv[0] == "":
		return fail("it has no argv")
	case !slices.ContainsFunc(l.Argv, func(arg string) bool { return strings.Contains(arg, "{connection_file}") }):
		return fail("its argv has no {connection_file}")
	case l.InterruptMode != "signal" && l.InterruptMode != "message":
		return fail("interrupt_mode is %q, and may be signal or message", l.InterruptMode)
	case l.Transport != "ipc" && l.Transport != "tcp":
		return fail("metadata.cellblock.transport is %q, and may be ipc or tcp", l.Transport)
	case len(l.Note) > maxNote || strings.ContainsFunc(l.Note, unicode.IsControl):
		return fail("metadata.cellblock.note must be one line of at most %d bytes", maxNote)
	}
	for _, ending := range x.Endings {
		if !endingRule.MatchString(ending) {
			return fail("metadata.cellblock.endings: %q is no ending such as .py", ending)
		}
	}
	if l.Endings = x.Endings; len(l.Endings) == 0 {
		l.Endings = Endings(l.Name)
	}
	for i, arg := range l.Argv {
		if strings.Contains(arg, "{resource_dir}") {
			l.Argv[i], l.Folder = strings.ReplaceAll(arg, "{resource_dir}", folder), folder
		}
	}
	return adapt(l, k.Env), nil
}

// titleOf keeps how a kernelspec writes its language, if it does so with care.
func titleOf(written, name string) string {
	if written == strings.ToLower(written) || Name(written) != name || len(written) > maxName {
		return Title(name)
	}
	return written
}

// endings are how names of scripts end where a kernelspec does not say and the language's own name is not it.
var endings = map[string][]string{
	"python": {".py"}, "javascript": {".js", ".mjs", ".cjs"}, "typescript": {".ts", ".mts"}, "bash": {".sh", ".bash"}, "csharp": {".cs", ".csx"},
	"fsharp": {".fs", ".fsx"}, "julia": {".jl"}, "ruby": {".rb"}, "rust": {".rs"}, "perl": {".pl"},
}

// Endings are how names of scripts end in a language whose kernelspec does not say.
func Endings(name string) []string {
	if known := endings[name]; known != nil {
		return slices.Clone(known)
	}
	return []string{"." + name}
}

// adapt starts ipykernel as we do, whatever its kernelspec says of its arguments. The environment variables that it says stay.
func adapt(l Language, said map[string]string) Language {
	ours := l.Name == "python" && slices.ContainsFunc(l.Argv, func(arg string) bool { return strings.HasPrefix(arg, "ipykernel") })
	if !ours {
		return l
	}
	p := Python(l.Argv[0])
	p.Kernel, p.DisplayName = l.Kernel, l.DisplayName
	p.Env = with(p.Env, said)
	return p
}

// ReadKernelspecs reads kernelspecs, given by the paths of their files. Of several of one language, that comes first whose
// folder comes first in order, which says where kernelspecs are looked for, and then by name. What cannot be read is left
// out, and told.
func ReadKernelspecs(files map[string][]byte, order []string) (found []Language, problems []error) {
	rank := func(file string) int { return slices.Index(order, path.Dir(path.Dir(file))) }
	paths := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	for _, file := range paths {
		if path.Base(file) != KernelspecFile {
			continue
		}
		l, err := ParseKernelspec(path.Dir(file), files[file])
		switch {
		case err != nil:
			problems = append(problems, err)
		case !slices.ContainsFunc(found, func(have Language) bool { return have.Name == l.Name }):
			found = append(found, l)
		}
	}
	return found, problems
}

// KernelspecFolders are where an image or a host has kernelspecs, those that come first first. Path is what the variable
// JUPYTER_PATH says there, further are data folders of Jupyter beside the system's.
func KernelspecFolders(jupyterPath string, further ...string) []string {
	var folders []string
	for _, dir := range slices.Concat(strings.Split(jupyterPath, ":"), further, []string{"/usr/local/share/jupyter", "/usr/share/jupyter"}) {
		if folder := path.Join(dir, "kernels"); path.IsAbs(folder) && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}
