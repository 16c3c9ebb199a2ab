package sessionid

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

var idPattern = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,64}\z`)

// What is accepted as an id is the same in a path, a label, a query and a line of a log.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{"", ".", "..", "...", "a", "analysis-1", "a/b", "a\\b", "a b", "a\n", "é", "а", "\xff", "a\x00", strings.Repeat("x", 65), "-rf", "%2e", "'; --"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		err := Validate(id)
		if want := idPattern.MatchString(id) && id != "." && id != ".."; (err == nil) != want {
			t.Fatalf("%q: %v", id, err)
		}
		if err != nil && (fault.KindOf(err) != fault.Invalid || len(err.Error()) > 1000) {
			t.Errorf("%q: %v", id, err)
		}
		if err == nil && filepath.Join("/top", id) != "/top/"+id {
			t.Errorf("%q leads elsewhere as a path", id)
		}
	})
}
