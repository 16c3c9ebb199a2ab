package viewer

import (
	"regexp"
	"slices"
	"strings"
)

// toolWords are what only models know: tools, and what they are given.
var toolWords = regexp.MustCompile(`\b((call|create|delete|execute|get|inspect|install|interrupt|list|read|restart|restore|write|close)_[a-z_]+|session_id)\b`)

// hintForPeople is a hint of the sessions', which are written for models, without the advice to call tools.
func hintForPeople(hint string) string {
	clauses := strings.Split(hint, "; ")
	return strings.Join(slices.DeleteFunc(clauses, toolWords.MatchString), "; ")
}
