package mcpserver

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/egress"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver/terminal"
	"cellblock/sessions"
)

// WrittenFirst is how a hint ends that a cell gets which reads a file that is not there.
const WrittenFirst = "what it reads must be written there first."

// filesHint is for a file, to be read or written, whose name or folder is not there. Code of the language that lists files is in it.
func filesHint(list string) string {
	return "The kernel sees the files of its session, in /workspace (" + list + " lists them), and none of the user's machine: " +
		"it writes there, and " + WrittenFirst
}

// windows are Python's packages for windows and widgets; noWindow is what matplotlib says where there are none.
var (
	windows  = regexp.MustCompile(`^(?:_?tkinter|Tkinter|PyQt[456]|PySide[26]?|wx|gi|ipympl)(?:\.|$)`)
	noWindow = regexp.MustCompile(`^(?:Cannot load backend '.*' which requires the '.*' interactive framework|Failed to import any of the following Qt binding modules)`)
)

// noScreen is for code that wants a window.
const noScreen = "There is no screen here, and plots need none: leave the backend out and run %matplotlib inline, and figures are shown as pictures."

// noNetwork is what programs print where there is no network, of which they make no exception.
var noNetwork = []string{"name resolution", "Name or service not known", "Network is unreachable", "Could not resolve host", "Couldn't resolve host",
	"unable to resolve host", "NameResolutionFailure", "getaddrinfo EAI_AGAIN", "getaddrinfo ENOTFOUND", "Tunnel connection failed: 403", "CONNECT tunnel failed, response 403",
	"Proxy response (403)", "(cellblock: ", egress.Unresolved, tunnelFailed}

// missingFolder is what pandas says of a folder that is not there.
var missingFolder = regexp.MustCompile(`^Cannot save file into a non-existent directory: '([^'\\]+)'$`)

// unmade finds the folder of a file that Python or Node could not open or make; writes tells in a line of a traceback that the file was to be
// written, so that it is the folder which is not there.
var (
	unmade = regexp.MustCompile(`^(?:\[Errno 2\] No such file or directory: |ENOENT: no such file or directory, \w+ )'([^'\n]+)/[^/'\n]+'$`)
	writes = regexp.MustCompile(`(?m)^-+> *\d+ .*(?:\bopen\((?:[^\n]*, *)?(?:mode *= *)?['"][wxa][bt+]{0,2}['"] *[,)]|\b(?:savefig|write_text|write_bytes|mkdir|(?:writeFile|appendFile|mkdir)Sync|writeFile|appendFile)\()`)
)

// missingPackage is what Node says of a package, and not of a file, that it cannot find.
var missingPackage = regexp.MustCompile(`^Cannot find (?:package|module) '([^'./][^']*)'`)

// optional is what pandas, and others after its manner, say of a package that only some of what they do needs.
var optional = regexp.MustCompile("(?:Missing optional dependency '|Unable to find a usable engine; tried using: '|[Rr]equires the optional dependency '?)([A-Za-z][A-Za-z0-9._-]*)|^`Import ([A-Za-z][A-Za-z0-9._-]*)`")

// missingLibrary is what R says of a package that is not there, in any locale's quotes; missingFile of a file, in a warning
// before the error of the function that was opening it.
var (
	missingLibrary = regexp.MustCompile(`there is no package called ['‘]([A-Za-z][A-Za-z0-9.]*)['’]`)
	missingFile    = regexp.MustCompile(`cannot open (?:file '[^'\n]*': |compressed file '[^'\n]*', probable reason ')No such file or directory`)
	opening        = regexp.MustCompile(`^Error in (?:file|gzfile|bzfile|xzfile|readChar)\(`)
)

// noSuchFile is what readr and data.table say of a file that is not there, in words of their own.
var noSuchFile = regexp.MustCompile(`(?:^|: )(?:'[^'\n]+' does not exist in current working directory|'/[^'\n]+' does not exist\.?$|File '[^'\n]+' does not exist or is non-readable)`)

// noMemory is what R and Node say where the memory has no room for a single vector or array.
var noMemory = regexp.MustCompile(`(?:^|: )cannot allocate vector of size |^Array buffer allocation failed`)

// unspawned is what a process of Python's multiprocessing says that was spawned, not forked, and is to call a function of a cell. Its pool
// starts others for ever.
var unspawned = regexp.MustCompile(`Can't get attribute '([^'\n]+)' on <module '__main__'`)

// spawned and notThere are what Node and Python say of a program that they cannot find by its name alone, forks is how a frame of Python's
// looks that starts a process.
var (
	forks    = regexp.MustCompile(`\b_?fork(?:_exec|pty)?\(|/popen_fork\.py|\bposix_spawnp?\(|get_ipython\(\)\.(?:system|getoutput)\(`)
	spawned  = regexp.MustCompile(`^spawn(?:Sync)? (` + program + `) ENOENT$`)
	notThere = regexp.MustCompile(`^\[Errno 2\] No such file or directory: '(` + program + `)'$`)
)

var quoted = regexp.MustCompile(`'([^']+)'`)

// ErrorHints returns what tells the hint that a model gets with an error of a cell, in a session that is made of a choice: for whoever
// shows the error to others. Most errors have none; some name tools.
func (cfg Config) ErrorHints() func(c sessions.Choice, e kernels.ExecError) string {
	s := newService(cfg)
	return func(c sessions.Choice, e kernels.ExecError) string { return errorHint(e, s.boundsForAll(c)) }
}

// PrintedHints returns what tells the hint that a model gets with what a cell has printed, if its error, if there is one, has none: for
// whoever shows the texts to others.
func (cfg Config) PrintedHints() func(c sessions.Choice, texts []string, failed *kernels.ExecError) string {
	s := newService(cfg)
	return func(c sessions.Choice, texts []string, failed *kernels.ExecError) string {
		var blocks []mcp.Content
		for _, text := range texts {
			blocks = append(blocks, mcp.NewTextContent(terminal.Plain(text)))
		}
		return printedHint(blocks, failed, s.boundsForAll(c))
	}
}

// errorHint says what to do about an error that comes of where the code runs, and not of the code alone. Most errors
// need no hint.
func errorHint(e kernels.ExecError, within bounds) string {
	name := e.Name[strings.LastIndexByte(e.Name, '.')+1:]
	switch {
	case isAdvised(e):
		return ""
	case name == "ModuleNotFoundError":
		module := "this module"
		if m := quoted.FindStringSubmatch(e.Value); m != nil {
			module = m[1]
		}
		switch {
		case windows.MatchString(module):
			return noScreen
		case strings.Contains(module, "."):
			return ""
		}
		return within.pythonHint(module)
	case name == "ImportError" && noWindow.MatchString(e.Value):
		return noScreen
	case name == "ImportError" && strings.HasPrefix(e.Value, "IProgress not found."): // tqdm.notebook, of ipywidgets
		return "There are no widgets here: from tqdm import tqdm has bars of text, of which the last state is shown."
	case name == "ImportError" && optional.MatchString(e.Value):
		said := optional.FindStringSubmatch(e.Value)
		return within.pythonHint(strings.TrimRight(said[1]+said[2], "."))
	case missingPackage.MatchString(e.Value):
		name := clean(missingPackage.FindStringSubmatch(e.Value)[1])
		return within.network.missing(name, "npm install "+name+" in the workspace", "in Node, or put modules into the workspace")
	case missingLibrary.MatchString(e.Value):
		return within.rHint(missingLibrary.FindStringSubmatch(e.Value)[1])
	case name == "RuntimeError" && (strings.Contains(e.Value, "cannot be called from a running event loop") || strings.Contains(e.Value, "event loop is already running")):
		return "A cell may await at its top level: await main()."
	case strings.Contains(e.Value, "unable to install packages"): // R says so where it may not write
		return cmp.Or(within.installHint(), "R's own libraries cannot be written to: "+rInstall("…")+" installs into the workspace.")
	case strings.HasSuffix(name, "MemoryError"), noMemory.MatchString(e.Value):
		if within.memory > 0 {
			return "The kernel may use " + words.Bytes(within.memory) + ": work on the data in pieces, use smaller types, or delete what is not needed."
		}
		return "Work on the data in pieces, use smaller types, or delete what is not needed."
	case name == "gaierror", name == "URLError", name == "NewConnectionError", name == "MaxRetryError", name == "ProxyError",
		containsAny(e.Value, noNetwork):
		return within.network.hint(e.Value)
	case missingCommand(e) != "":
		return within.programHint(missingCommand(e))
	case unmadeFolder(e) != "":
		return within.folderHint(unmadeFolder(e), name == "FileNotFoundError")
	case name == "FileNotFoundError":
		return filesHint("os.listdir()")
	case strings.HasPrefix(e.Value, "ENOENT: no such file or directory, "):
		return filesHint("fs.readdirSync('.')")
	case noSuchFile.MatchString(e.Value):
		return filesHint("list.files()")
	case name == "FileNotFoundException", name == "DirectoryNotFoundException": // of .NET
		return filesHint(`Directory.GetFiles(".")`)
	case missingFolder.MatchString(e.Value):
		return within.folderHint(missingFolder.FindStringSubmatch(e.Value)[1], true)
	case strings.Contains(e.Value, "Read-only file system"), strings.HasPrefix(e.Value, "EROFS: "):
		return within.writableHint(e.Value)
	case name == "PermissionError", strings.HasPrefix(e.Value, "EACCES: "):
		return within.deniedHint(e.Value)
	case name == "CalledProcessError" && len(e.Traceback) > 0: // with what the program has printed, if its caller kept it
		return printedHint([]mcp.Content{mcp.NewTextContent(terminal.Plain(e.Traceback[len(e.Traceback)-1]))}, nil, within)
	case name == "BlockingIOError" && forks.MatchString(terminal.Plain(strings.Join(e.Traceback, "\n"))):
		return within.processHint()
	}
	return within.roomHint(e.Value)
}

// isAdvised tells whether Python's kernel has told beside an error what is likely to be meant.
func isAdvised(e kernels.ExecError) bool {
	if len(e.Traceback) == 0 {
		return false
	}
	last := terminal.Plain(e.Traceback[len(e.Traceback)-1])
	return strings.Contains(last, e.Value+". Did you mean: ") || strings.Contains(last, e.Value+". The working directory has been deleted: ")
}

// unmadeFolder is the folder in which code could not write a file because there is none.
func unmadeFolder(e kernels.ExecError) string {
	said := unmade.FindStringSubmatch(e.Value)
	if said == nil || !writes.MatchString(terminal.Plain(strings.Join(e.Traceback, "\n"))) {
		return ""
	}
	return clean(said[1])
}

// missingCommand is the program that Python or Node could not start, because there is none of that name.
func missingCommand(e kernels.ExecError) string {
	if said := spawned.FindStringSubmatch(e.Value); said != nil {
		return said[1]
	}
	said := notThere.FindStringSubmatch(e.Value)
	if said == nil {
		return ""
	}
	frames := terminal.Plain(strings.Join(e.Traceback, "\n"))
	if !strings.Contains(frames, "/subprocess.py") || strings.Contains(frames, "cwd='"+said[1]+"'") || strings.Contains(frames, `cwd="`+said[1]+`"`) {
		return ""
	}
	return said[1]
}

// pythonHint is for a Python package that is not there.
func (b bounds) pythonHint(name string) string {
	name = clean(name)
	return b.network.missing(name, "%pip install "+name, "there (importlib.metadata.distributions() lists it), or put a pure "+
		"Python module into the workspace")
}

// rHint is for a package of R that is not there. CRAN has sources, of which those in C and the like need a compiler, that images
// lack; Debian's packages are built.
func (b bounds) rHint(name string) string {
	name = clean(name)
	install := rInstall(name)
	switch {
	case b.network.images:
		return name + ` is not installed: install_package gets Debian's build of it into the session's image, "apt:r-cran-` + strings.ToLower(name) +
			`", if there is one.`
	case !b.network.host:
		install += ", which works for a package that needs no compiler"
	}
	return b.network.missing(name, install, "there (rownames(installed.packages()) lists it)")
}

// rInstall is code that installs where an unprivileged kernel may write.
func rInstall(name string) string {
	return `dir.create("library"); .libPaths("library"); install.packages("` + name + `")`
}

// printedHint is the hint for a failure of which the outputs alone tell: a shell command, pip among them, fails without
// failing its cell. An error that has a hint of its own needs no other.
func printedHint(outputs []mcp.Content, failed *kernels.ExecError, within bounds) string {
	hint := ""
	if failed != nil && errorHint(*failed, within) != "" {
		return hint
	}
	for _, block := range outputs {
		text, _ := block.(mcp.TextContent)
		if missed := within.notInstalled(text.Text); missed != "" {
			return missed
		}
		switch {
		case containsAny(text.Text, noNetwork):
			hint = within.network.hint(text.Text)
		case failed != nil && opening.MatchString(failed.Value) && missingFile.MatchString(text.Text):
			hint = filesHint("list.files()")
		case unspawned.MatchString(text.Text):
			hint = "A process that is spawned has nothing of the cells: write " + clean(unspawned.FindStringSubmatch(text.Text)[1]) +
				" into a module (%%writefile work.py) and import it, or take multiprocessing.get_context(\"fork\")."
		case missingLibrary.MatchString(text.Text):
			hint = within.rHint(missingLibrary.FindStringSubmatch(text.Text)[1])
		case readOnly.MatchString(ends(text.Text)):
			hint = within.writableHint(ends(text.Text))
		default:
			hint = cmp.Or(hint, within.roomHint(text.Text))
		}
	}
	return hint
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// clean shortens a name from the kernel for use in a sentence.
func clean(s string) string {
	return words.Part(strings.ReplaceAll(terminal.Plain(s), "\n", " "), maxInLine)
}
