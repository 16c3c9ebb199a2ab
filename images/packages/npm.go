package packages

import (
	"regexp"
	"strings"
)

// The grammar of npm's names (validate-npm-package-name, of new packages) and of what may stand behind "@": a version or a range of
// node-semver, or a tag. What npm-package-arg takes for a file, an address, an alias or a repository is in none of them.
var (
	npmName    = regexp.MustCompile(`^(?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`)
	npmTag     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	npmVersion = `v?(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*])){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`
	npmClause  = regexp.MustCompile(`^(?:(?:\^|~>?|>=|<=|>|<|=)?` + npmVersion + `)$`)
	npmGap     = regexp.MustCompile(`(\^|~>|~|>=|<=|>|<|=)\s+`)
	npmFile    = regexp.MustCompile(`(?i)\.(?:tgz|tar|tar\.gz)$`)
)

const (
	npmExample = `"lodash", "lodash@4.17.21" or "@scope/name@^2"`
	maxNpmName = 214
)

// parseNpm reads a name with or without a version.
func parseNpm(text string) (Package, error) {
	name, version, versioned := text, "", false
	if i := strings.LastIndex(text, "@"); i > 0 {
		name, version, versioned = text[:i], text[i+1:], true
	}
	name = strings.TrimSpace(name)
	if !npmName.MatchString(name) || len(name) > maxNpmName || npmFile.MatchString(text) {
		return Package{}, wrong(Npm, text, npmExample)
	}
	if !versioned {
		return Package{Name: name, Argument: name}, nil
	}
	version, ok := npmRange(version)
	if !ok {
		return Package{}, wrong(Npm, text, npmExample)
	}
	return Package{Name: name, Argument: name + "@" + version}, nil
}

// npmRange reads a version, a range ("^1.2", ">=1 <3", "1.2 - 2", "1 || 2") or a tag ("latest").
func npmRange(text string) (string, bool) {
	text = strings.Join(strings.Fields(text), " ")
	if npmTag.MatchString(text) {
		return text, true
	}
	text = npmGap.ReplaceAllString(text, "$1")
	for _, either := range strings.Split(text, "||") {
		clauses := strings.Fields(either)
		if len(clauses) == 3 && clauses[1] == "-" {
			clauses = []string{clauses[0], clauses[2]}
		}
		if len(clauses) == 0 {
			return "", false
		}
		for _, clause := range clauses {
			if !npmClause.MatchString(clause) {
				return "", false
			}
		}
	}
	return text, true
}
