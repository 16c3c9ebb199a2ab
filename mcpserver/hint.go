package mcpserver

import (
	"regexp"
	"strings"

	"cellblock/kernels"
)

var quoted = regexp.MustCompile(`'([^']+)'`)

// errorHint says what to do about an error that comes of where the code runs, and not of the code alone. Most errors
// need no hint.
func errorHint(e kernels.ExecError, memory int64) string {
	name := e.Name[strings.LastIndexByte(e.Name, '.')+1:]
	switch {
	case name == "ModuleNotFoundError":
		module := "this module"
		if m := quoted.FindStringSubmatch(e.Value); m != nil {
			module = m[1]
		}
		if strings.Contains(module, ".") {
			return ""
		}
		return clean(module) + " is not installed, and the kernel has no network to install it: use what is there " +
			"(importlib.metadata.distributions() lists it), or put a pure Python module into the workspace. Other packages come " +
			"with the kernels' image, which is the operator's."
	case strings.HasSuffix(name, "MemoryError"):
		if memory > 0 {
			return "The kernel may use " + bytesText(memory) + ": work on the data in pieces, use smaller types, or delete what is not needed."
		}
		return "Work on the data in pieces, use smaller types, or delete what is not needed."
	case name == "StdinNotImplementedError":
		return "Nobody can answer a prompt here: put the value into the code."
	case name == "gaierror", name == "URLError", name == "NewConnectionError", name == "MaxRetryError", name == "ProxyError",
		strings.Contains(e.Value, "Network is unreachable"), strings.Contains(e.Value, "name resolution"):
		return "The kernel has no network: use data that is in the workspace or that installed packages bring along."
	case strings.Contains(e.Value, "Read-only file system"):
		return "Only the working directory and /tmp can be written."
	}
	return ""
}

// clean shortens a name from the kernel for use in a sentence.
func clean(s string) string { return cutMiddle(strings.ReplaceAll(plain(s), "\n", " "), 80) }
