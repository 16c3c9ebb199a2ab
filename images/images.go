// Package images says what kernels run in: which languages there are, and for each its image and how its kernel is
// started. It knows nothing of engines.
package images

import (
	_ "embed" // for the programs that kernels run
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cellblock/internal/fault"
)

// Language is one language that sessions can be in.
type Language struct {
	// Name is how tools and scopes call it, in lower case: "python".
	Name string
	// DisplayName is for people: "Python 3".
	DisplayName string
	// Kernel is the kernelspec's name: "python3".
	Kernel string
	// Image is what its kernels run in, where the provisioner has images.
	Image string
	// Argv is the kernel's command inside the image; "{connection_file}" stands for the connection file's path.
	Argv []string
	// InterruptMode is "signal" or "message" (jupyter_client, "Kernel specs").
	InterruptMode string
	// Transport is "ipc", or "tcp" for kernels that know no other.
	Transport string
	// Env is added to the kernel's environment.
	Env map[string]string
	// Variables is an expression that a kernel of the language evaluates to a description of what the user has defined: a
	// value whose form VariablesType is JSON. It is here and not with who sends it because it is made of what the kernel
	// understands, as Argv is. Empty: the language cannot tell.
	Variables string
	// RunFile is code that runs a script as if it were in the cell, but with its own name in tracebacks. "{path}" stands for a
	// literal with the file's path.
	RunFile string
}

// VariablesType is the MIME type of what Language.Variables evaluates to: a JSON text, {"variables": […], "more": n}.
const VariablesType = "application/vnd.cellblock.variables+json"

//go:embed python_threads.py
var pythonThreads string

//go:embed python_errors.py
var pythonErrors string

//go:embed python_pipes.py
var pythonPipes string

//go:embed python_interrupts.py
var pythonInterrupts string

//go:embed python_input.py
var pythonInput string

//go:embed python_pace.py
var pythonPace string

//go:embed python_kernel.py
var pythonKernel string

// pythonProgram is what a Python kernel runs. Python's "-c" puts the working directory first on the path, where a user's
// file could stand in for a module that the kernel needs; IPython does that itself, later.
var pythonProgram = strings.Join([]string{
	"import sys\n\ndel sys.path[0]\n", pythonThreads, pythonErrors, pythonPipes, pythonInterrupts, pythonInput,
	pythonPace, pythonKernel,
}, "\n\n")

//go:embed python_variables.py
var pythonVariables string

// pythonExpression runs a program in a namespace of its own and gives what its function describe_all returns. It relies on
// no name that the user may have given another meaning, and defines none.
func pythonExpression(program string) string {
	literal, err := json.Marshal(program) // JSON's strings are strings of Python, too
	if err != nil {
		panic(err)
	}
	return `(lambda b, n: (b.exec(` + string(literal) + `, n), n["describe_all"]())[1])(__import__("builtins"), {"__name__": "cellblock"})`
}

// python is IPython's kernel. Its own history database is off: sessions keep theirs, and it costs every cell 2 ms. The
// kernel's program travels in Argv, so that any image with ipykernel will do.
var python = Language{
	Name:          "python",
	DisplayName:   "Python 3",
	Kernel:        "python3",
	Image:         "cellblock-python:latest",
	Argv:          []string{"/usr/bin/python3", "-c", pythonProgram, "-f", "{connection_file}", "--HistoryManager.enabled=False"},
	InterruptMode: "signal",
	Transport:     "ipc",
	// Else the debugger, which nobody uses, warns at every start that it is slower than it could be.
	Env:       map[string]string{"PYDEVD_DISABLE_FILE_VALIDATION": "1"},
	Variables: pythonExpression(pythonVariables),
	RunFile:   "__file__ = {path}\nexec(compile(open(__file__, 'rb').read(), __file__, 'exec'))",
}

// Catalogue is a set of languages. It does not change once made.
type Catalogue struct {
	languages map[string]Language
}

// New returns the catalogue of all languages that cellblock knows. Images names, by language, images to use instead of
// the usual ones; a language in it that does not exist is an error of kind NotFound.
func New(images map[string]string) (*Catalogue, error) {
	c := &Catalogue{languages: map[string]Language{python.Name: python}}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		l, err := c.Lookup(name)
		if err != nil {
			return nil, err
		}
		if images[name] != "" {
			l.Image = images[name]
			c.languages[l.Name] = l
		}
	}
	return c, nil
}

// Lookup returns the language with this name, upper or lower case. The error is of kind NotFound and lists the names
// that there are.
func (c *Catalogue) Lookup(name string) (Language, error) {
	l, ok := c.languages[strings.ToLower(name)]
	if !ok {
		return Language{}, fault.New(fault.NotFound, "there is no language %q", name).
			WithHint("Use one of: %s.", strings.Join(c.Names(), ", "))
	}
	return l.clone(), nil
}

// All returns every language, sorted by name.
func (c *Catalogue) All() []Language {
	all := make([]Language, 0, len(c.languages))
	for _, name := range c.Names() {
		all = append(all, c.languages[name].clone())
	}
	return all
}

// Names returns the languages' names, sorted.
func (c *Catalogue) Names() []string { return slices.Sorted(maps.Keys(c.languages)) }

// clone keeps the catalogue's own slices and maps from its callers.
func (l Language) clone() Language {
	l.Argv = slices.Clone(l.Argv)
	l.Env = maps.Clone(l.Env)
	return l
}
