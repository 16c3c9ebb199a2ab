package packages

import (
	"regexp"
	"slices"
	"strings"
)

// The grammar of PEP 508 names and extras and of PEP 440 versions, without addresses ("name @ https://…"), environment markers
// ("; python_version…") and arbitrary equality ("===").
var (
	pipRequirement = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?)` + // name
		`\s*(?:\[\s*([A-Za-z0-9._,\s-]*)\s*\])?` + // extras
		`\s*(?:\(([^()]*)\)|([^()]*))$`) // versions, in brackets or not
	pipExtra  = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)
	pipClause = regexp.MustCompile(`^(~=|==|!=|<=|>=|<|>)\s*(` +
		`v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*` + // epoch, release
		`(?:[._-]?(?:a|b|c|rc|alpha|beta|pre|preview)[._-]?[0-9]*)?` +
		`(?:-[0-9]+|[._-]?(?:post|rev|r)[._-]?[0-9]*)?` +
		`(?:[._-]?dev[._-]?[0-9]*)?` +
		`(?:\+[a-z0-9]+(?:[._-][a-z0-9]+)*)?` + // local version
		`(?:\.\*)?)$`)
	pipSeparators = regexp.MustCompile(`[-_.]+`)
)

const pipExample = `"polars", "polars>=1,<2" or "uvicorn[standard]==0.30.6"`

// parsePip reads a requirement. The name is normalised as PEP 503 says.
func parsePip(text string) (Package, error) {
	m := pipRequirement.FindStringSubmatch(text)
	if m == nil || strings.ContainsAny(text, "\r\n\x00") {
		return Package{}, wrong(Pip, text, pipExample)
	}
	extras, ok := list(m[2], strings.ToLower, pipExtra)
	clauses, ok2 := list(m[3]+m[4], func(clause string) string {
		return strings.Join(strings.Fields(strings.ToLower(clause)), "")
	}, pipClause)
	if !ok || !ok2 {
		return Package{}, wrong(Pip, text, pipExample)
	}
	name := strings.ToLower(pipSeparators.ReplaceAllString(m[1], "-"))
	argument := name
	if len(extras) > 0 {
		argument += "[" + strings.Join(extras, ",") + "]"
	}
	return Package{Name: name, Argument: argument + strings.Join(clauses, ",")}, nil
}

// list reads what stands between commas, sorted and without duplicates; nothing at all is an empty list.
func list(text string, normal func(string) string, rule *regexp.Regexp) (parts []string, ok bool) {
	if strings.TrimSpace(text) == "" {
		return nil, true
	}
	for _, part := range strings.Split(text, ",") {
		part = normal(strings.TrimSpace(part))
		if !rule.MatchString(part) {
			return nil, false
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return slices.Compact(parts), true
}
