package packages

import (
	"regexp"
	"strings"
)

// The grammar of NuGet's ids and versions: letters, digits and "_", with "." and "-" between them; one to four numbers, with a
// SemVer suffix. Ranges are left out, because its clients do not agree on where they may stand.
var nugetPackage = regexp.MustCompile(`^([A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*)` +
	`(?:\s*[@,]\s*([0-9]+(?:\.[0-9]+){0,3}(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?))?$`)

const (
	nugetExample = `"Newtonsoft.Json" or "Newtonsoft.Json@13.0.3"`
	maxNugetID   = 100
)

// parseNuget reads an id with or without a version. Ids do not tell upper from lower case.
func parseNuget(text string) (Package, error) {
	m := nugetPackage.FindStringSubmatch(text)
	if m == nil || len(m[1]) > maxNugetID {
		return Package{}, wrong(Nuget, text, nugetExample)
	}
	p := Package{Name: strings.ToLower(m[1]), Argument: m[1]}
	if m[2] != "" {
		p.Argument += "@" + m[2]
	}
	return p, nil
}
