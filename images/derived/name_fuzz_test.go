package derived

import (
	"regexp"
	"strings"
	"testing"
)

// tagRule is what engines take for an image's tag.
var tagRule = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

// FuzzCheckName holds images' names to their promise: what is taken is the tag of an image and nothing else.
func FuzzCheckName(f *testing.F) {
	for _, seed := range []string{"", "a", "plots", "a.b_c-d", "-a", ".a", "a/b", "a:b", "a@sha256:00", "../a", "a b", "ä", "a\n", "LATEST"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != nil {
			return
		}
		if !tagRule.MatchString(name) || strings.Contains(name, "\n") {
			t.Errorf("%q is taken", name)
		}
	})
}
