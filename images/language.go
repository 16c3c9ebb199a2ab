// Package images says what kernels run in: which languages an image or a host brings, and how the kernel of each is
// started. A language is known by its kernelspec (jupyter_client, "Kernel specs"), and nothing here names one, but Python,
// whose kernel is started with more than its kernelspec says. It knows nothing of engines.
package images

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cellblock/internal/fault"
)

// Language is one language that sessions can be in.
type Language struct {
	// Name is how tools and scopes call it, in lower case: "python", "csharp". See Name.
	Name string
	// Title is how people write it: "Python", "C#".
	Title string
	// DisplayName is the kernelspec's, for people: "Python 3".
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
	// Waits tells that the kernel waits while nobody reads its IOPub. Others drop what they cannot send (zmq_setsockopt, ZMQ_XPUB_NODROP).
	Waits bool
	// Env is added to the kernel's environment.
	Env map[string]string
	// Online is added to that of kernels with a network.
	Online map[string]string
	// Note is a sentence or two for models about what is special with this kernel. It may be empty.
	Note string
	// Endings are how names of scripts in the language end: ".py".
	Endings []string
	// Variables is an expression that a kernel of the language evaluates to a description of what the user has defined: a
	// value whose form VariablesType is JSON. It is here and not with who sends it because it is made of what the kernel
	// understands, as Argv is. Empty: the language cannot tell.
	Variables string
	// Save is an expression that saves what the user has defined, in a file that SavedFile names, and Load one that has that file's back,
	// in another kernel, and removes it. Their values have a form whose VariablesType is JSON: {"saved": n}, and {"back": n, "left":
	// ["name (type)", …], "more": n, "why": "", "never": ""}, with what is not back, how many more are not, what went wrong, and what of
	// the language's never is. Empty: the language cannot. In Save, "{cell}" stands for the number of the session's last cell, with which
	// the file may begin: as JSON in a line of its own, {"cell": n}. A Load that leaves such a file where it is, once all of it is loaded,
	// has it back should the new kernel die.
	Save, Load string
	// Checkpoint is an expression that saves the same while the kernel goes on, and gives a value before that is done: {"took": s}, how
	// many seconds that of what is saved by now has taken, if it knows. The file begins with its cell's number, and has at most as many
	// bytes as "{most}" stands for. Empty: the language cannot.
	Checkpoint string
	// RunFile is code that runs a script as if it were in the cell, but with its own name in tracebacks. "{path}" stands for a
	// literal with the file's path, as most languages understand it, "{path:sh}" for a word as shells do, "{args}" for a list of
	// literals in square brackets, the script's arguments: code without it can give a script none. Empty: the kernel cannot.
	RunFile string
	// Folder is where its kernelspec lies, if Argv names files there. Empty: it does not.
	Folder string
}

// SavedFile is where Language.Save puts what it saves, in the folder in which the kernel has started.
const SavedFile = ".cellblock-variables"

// UnfinishedFiles may be left beside it, by a kernel that ended while it saved or loaded. They become that file when it comes to its end.
var UnfinishedFiles = []string{SavedFile + ".new", SavedFile + ".checkpoint", SavedFile + ".loading"}

// VariablesType is the MIME type of what Language.Variables evaluates to: a JSON text, {"variables": […], "more": n}.
const VariablesType = "application/vnd.cellblock.variables+json"

// wellKnown are languages whose name is not made of letters alone, or is written in more than one way.
var wellKnown = map[string]string{
	"c#": "csharp", "f#": "fsharp", "c++": "cpp", "objective-c": "objectivec", "js": "javascript", "ts": "typescript",
	"node": "javascript", "shell": "bash", "sh": "bash", "py": "python", "pwsh": "powershell",
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// Name is how tools and scopes call a language that a kernelspec or a person calls so: in lower case, of letters and
// digits, "csharp" for "C#". It is empty when nothing of the name is left.
func Name(language string) string {
	name := strings.ToLower(strings.TrimSpace(language))
	if known := wellKnown[name]; known != "" {
		return known
	}
	if strings.HasPrefix(name, "c++") { // with the year of its standard
		return "cpp"
	}
	name = strings.Trim(notInName.ReplaceAllString(name, "_"), "_")
	return strings.TrimLeft(name[:min(len(name), maxName)], "0123456789_")
}

// maxName bounds a language's name: with "execute_" before it, it is a tool's.
const maxName = 40

var titles = map[string]string{
	"javascript": "JavaScript", "typescript": "TypeScript", "r": "R", "csharp": "C#", "fsharp": "F#", "cpp": "C++", "sql": "SQL",
	"powershell": "PowerShell", "php": "PHP", "ocaml": "OCaml",
}

// Title is how people write a language that is called name.
func Title(name string) string {
	if title := titles[name]; title != "" || name == "" {
		return title
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// Set is the languages that sessions can be in somewhere, by name. It does not change once made.
type Set struct {
	languages map[string]Language
}

// NewSet returns the set of these languages. Of several with the same name it has the first.
func NewSet(languages ...Language) *Set {
	s := &Set{languages: map[string]Language{}}
	for _, l := range languages {
		if _, ok := s.languages[l.Name]; !ok {
			s.languages[l.Name] = l.clone()
		}
	}
	return s
}

// Lookup returns the language with this name, upper or lower case. The error is of kind NotFound and lists the names
// that there are.
func (s *Set) Lookup(name string) (Language, error) {
	l, ok := s.languages[Name(name)]
	if !ok {
		return Language{}, fault.New(fault.NotFound, "there is no language %q", name).
			WithHint("Use one of: %s.", cmp.Or(strings.Join(s.Names(), ", "), "none is here"))
	}
	return l.clone(), nil
}

// All returns every language, sorted by name.
func (s *Set) All() []Language {
	all := make([]Language, 0, len(s.languages))
	for _, name := range s.Names() {
		all = append(all, s.languages[name].clone())
	}
	return all
}

// Names returns the languages' names, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.languages)) }

// clone keeps the set's own slices and maps from its callers.
func (l Language) clone() Language {
	l.Argv, l.Endings = slices.Clone(l.Argv), slices.Clone(l.Endings)
	l.Env, l.Online = maps.Clone(l.Env), maps.Clone(l.Online)
	return l
}
