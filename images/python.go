package images

import (
	_ "embed" // for the programs that kernels run
	"encoding/json"
	"strings"
)

// PythonInterpreter is where images have Python.
const PythonInterpreter = "/usr/bin/python3"

//go:embed python_collector.py
var pythonCollector string

//go:embed python_debugger.py
var pythonDebugger string

//go:embed python_threads.py
var pythonThreads string

//go:embed python_frames.py
var pythonFrames string

//go:embed python_errors.py
var pythonErrors string

//go:embed python_traces.py
var pythonTraces string

//go:embed python_flood.py
var pythonFlood string

//go:embed python_pipes.py
var pythonPipes string

//go:embed python_interrupts.py
var pythonInterrupts string

//go:embed python_input.py
var pythonInput string

//go:embed python_packages.py
var pythonPackages string

//go:embed python_commands.py
var pythonCommands string

//go:embed python_json.py
var pythonJSON string

//go:embed python_pace.py
var pythonPace string

//go:embed python_pages.py
var pythonPages string

//go:embed python_plots.py
var pythonPlots string

//go:embed python_values.py
var pythonValues string

//go:embed python_own.py
var pythonOwn string

//go:embed python_kernel.py
var pythonKernel string

// pythonProgram is what a Python kernel runs. Python's "-c" puts the working directory first on the path, where a user's
// file could stand in for a module that the kernel needs; IPython does that itself, later.
var pythonProgram = strings.Join([]string{
	"import sys\n\ndel sys.path[0]\n", pythonCollector, pythonDebugger, pythonThreads, pythonFrames, pythonErrors, pythonTraces, pythonFlood, pythonPipes, pythonInterrupts,
	pythonInput, pythonPackages, pythonCommands, pythonJSON, pythonPace, pythonPages, pythonPlots, pythonValues, pythonOwn, pythonKernel,
}, "\n\n")

// pythonRunFile runs a script with a command line of its own, as Python does: one that leaves without an error has succeeded. It
// stands in notebooks, too, so that it needs nothing of this kernel's, and it leaves no name behind but __file__. A script may delete
// all names.
const pythonRunFile = `__file__ = {path}
__import__("sys").argv, __argv__ = [__file__, *{args}], __import__("sys").argv
try:
    exec(compile(open(__file__, 'rb').read(), __file__, 'exec'))
except SystemExit as __exit__:
    if __exit__.code:
        raise
finally:
    __import__("sys").argv = globals().pop("__argv__", [""])`

//go:embed python_answers.py
var pythonAnswers string

//go:embed python_variables.py
var pythonVariables string

//go:embed python_saved.py
var pythonSaved string

//go:embed python_lost.py
var pythonLost string

// pythonExpression runs a program, behind python_answers.py, in a namespace of its own and gives what a call of one of its functions returns. It relies on
// no name that the user may have given another meaning, and defines none.
func pythonExpression(program, call string) string {
	literal, err := json.Marshal(pythonAnswers + "\n\n" + program) // JSON's strings are strings of Python, too
	if err != nil {
		panic(err)
	}
	return `(lambda b, n: (b.exec(` + string(literal) + `, n), b.eval("` + call + `", n))[1])(__import__("builtins"), {"__name__": "cellblock"})`
}

// Python is IPython's kernel with an interpreter that has ipykernel. Its own history database is off: sessions keep
// theirs, and it costs every cell 2 ms. Names are completed by what is there: jedi, which guesses at what code would do, takes
// seconds for the first one. The kernel's program travels in Argv, so that any image with ipykernel will do.
func Python(interpreter string) Language {
	return Language{
		Name:          "python",
		Title:         "Python",
		DisplayName:   "Python 3",
		Kernel:        "python3",
		Argv:          []string{interpreter, "-c", pythonProgram, "-f", "{connection_file}", "--HistoryManager.enabled=False", "--Completer.use_jedi=False"},
		InterruptMode: "signal",
		Transport:     "ipc",
		Waits:         true,
		Env: with(unattended, map[string]string{
			// There is no network: pip says so in two lines, and not after five attempts, or with a page of advice for a system's
			// administrator.
			"PIP_NO_INDEX": "1", "PIP_BREAK_SYSTEM_PACKAGES": "1",
			// Python takes a module for unchanged that is as large as before and was written in the same second. Cells are as fast as that,
			// and so are the programs that they start.
			"PYTHONDONTWRITEBYTECODE": "1",
		}),
		Online: with(online, map[string]string{"PIP_NO_INDEX": "0", "PIP_USER": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUSERBASE": "/workspace/.local"}),
		Note: "The value of the last expression is shown, top-level await works, plots are returned as images " +
			"(plt.show() at the end of the cell); input() asks the user if the client can, pip install needs a network.",
		Endings:    []string{".py"},
		Variables:  pythonExpression(pythonVariables, "describe_all()"),
		Save:       pythonExpression(pythonSaved, "save({cell})"),
		Checkpoint: pythonExpression(pythonSaved, "checkpoint({cell}, {most})"),
		Load:       pythonExpression(pythonSaved+"\n\n"+pythonLost, "load()"),
		RunFile:    pythonRunFile,
	}
}
