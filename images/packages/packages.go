// Package packages says which packages an image may be given, and how each package manager is told to install them.
//
// A package is written as its own manager writes it ("polars>=1,<2", "@scope/name@^2", "graphviz=2.42.4-3", "Newtonsoft.Json@13.0.3"),
// and every text is read by that manager's grammar before anything is done with it. What the grammars leave out on purpose is all
// that names a place instead of a package (addresses, paths, repositories), and all that a manager could take for an option.
// So what comes out can stand behind "--" in a manager's arguments. No shell ever sees it.
package packages

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"cellblock/internal/fault"
)

// Manager is a package manager.
type Manager string

// The managers, in the order in which they are run: what apt brings others may need.
const (
	Apt   Manager = "apt"
	Pip   Manager = "pip"
	Npm   Manager = "npm"
	Nuget Manager = "nuget"
)

// Managers returns all of them, in the order in which they are run.
func Managers() []Manager { return []Manager{Apt, Pip, Npm, Nuget} }

// ManagerOf is the one whose packages a language's own are.
func ManagerOf(language string) Manager {
	switch language {
	case "python":
		return Pip
	case "javascript", "typescript":
		return Npm
	case "csharp", "fsharp":
		return Nuget
	}
	return Apt // Bash has its programs from there, and R its libraries
}

// What a list of packages may have.
const (
	// Max is how many packages one image may be given.
	Max = 200
	// maxLength bounds the text of one package, in bytes.
	maxLength = 256
)

// Package is one package of a manager.
type Package struct {
	Manager Manager
	// Name is in the manager's canonical form, so that two names of one package are equal.
	Name string
	// Argument is what the manager is given: name and wanted version in its own words.
	Argument string
}

// String is the package as Parse reads it: "pip:polars>=1".
func (p Package) String() string { return string(p.Manager) + ":" + p.Argument }

// grammars read one package each.
var grammars = map[Manager]func(text string) (Package, error){Apt: parseApt, Pip: parsePip, Npm: parseNpm, Nuget: parseNuget}

// Set is packages without duplicates, sorted: sets of the same packages are equal.
type Set []Package

// Parse reads packages as people and models write them, each with its manager before it ("npm:lodash@4") or without ("polars"),
// when it is one of the language's own manager. The error is of kind Invalid and names what is wrong with which.
func Parse(texts []string, own Manager) (Set, error) {
	if len(texts) > Max {
		return nil, fault.New(fault.Invalid, "packages: %d are too many at once; at most %d", len(texts), Max)
	}
	var set Set
	for _, text := range texts {
		p, err := parse(text, own)
		if err != nil {
			return nil, err
		}
		set = append(set, p)
	}
	return set.tidy()
}

func parse(text string, own Manager) (Package, error) {
	manager, rest := split(text, own)
	switch {
	case len(text) > maxLength:
		return Package{}, fault.New(fault.Invalid, "packages: %.40q… is longer than %d bytes", text, maxLength)
	case rest == "":
		return Package{}, fault.New(fault.Invalid, "packages: %q names no package", text)
	}
	p, err := grammars[manager](rest)
	if err != nil {
		return Package{}, err
	}
	p.Manager = manager
	return p, nil
}

// split takes the manager's name off the front of a package.
func split(text string, own Manager) (Manager, string) {
	text = strings.TrimSpace(text)
	if name, rest, ok := strings.Cut(text, ":"); ok && grammars[Manager(name)] != nil {
		return Manager(name), strings.TrimSpace(rest)
	}
	return own, text
}

// tidy sorts a set and refuses two wishes about one package.
func (s Set) tidy() (Set, error) {
	slices.SortFunc(s, func(a, b Package) int { return strings.Compare(a.String(), b.String()) })
	s = slices.Compact(s)
	seen := map[Package]string{}
	for _, p := range s {
		key := Package{Manager: p.Manager, Name: p.Name}
		if other, twice := seen[key]; twice {
			return nil, fault.New(fault.Invalid, "packages: %s is named twice, as %q and %q", p.Name, other, p.Argument).
				WithHint("name it once, with one version")
		}
		seen[key] = p.Argument
	}
	return s, nil
}

// With is the set with further packages. Where both name one, the further one's version counts: it was asked for later.
func (s Set) With(further Set) (Set, error) {
	all := slices.Clone(further)
	for _, p := range s {
		if !slices.ContainsFunc(further, func(f Package) bool { return f.Manager == p.Manager && f.Name == p.Name }) {
			all = append(all, p)
		}
	}
	if len(all) > Max {
		return nil, fault.New(fault.Invalid, "packages: the image would have %d, and may have %d", len(all), Max)
	}
	return all.tidy()
}

// Of returns the arguments for one manager.
func (s Set) Of(m Manager) []string {
	var arguments []string
	for _, p := range s {
		if p.Manager == m {
			arguments = append(arguments, p.Argument)
		}
	}
	return arguments
}

// Strings returns the packages as Parse reads them.
func (s Set) Strings() []string {
	texts := make([]string, 0, len(s))
	for _, p := range s {
		texts = append(texts, p.String())
	}
	return texts
}

// Hash stands for what is made of a base and these packages: 24 hexadecimal digits. Further texts are whatever else it depends on.
func (s Set) Hash(base string, further ...string) string {
	sum := sha256.New()
	for _, text := range slices.Concat([]string{base}, further, []string{""}, s.Strings()) {
		sum.Write([]byte(text + "\x00"))
	}
	return hex.EncodeToString(sum.Sum(nil))[:24]
}

// wrong is the error of a package that its manager's grammar does not allow.
func wrong(m Manager, text, example string) error {
	err := fault.New(fault.Invalid, "packages: %q is no package of %s", text, m)
	switch {
	case strings.HasPrefix(text, "-"):
		return err.WithHint("options cannot be given; write only names and versions, such as %s", example)
	case strings.Contains(text, "/") && !strings.HasPrefix(text, "@") || strings.Contains(text, "://"):
		return err.WithHint("addresses, paths and repositories cannot be installed from; use a name of the index, such as %s", example)
	}
	return err.WithHint("write it as %s", example)
}
