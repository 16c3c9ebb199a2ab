package nearest

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	known := []string{"addr", "data_dir", "docker.host", "session_id"}
	for word, want := range map[string]string{
		"adr": "addr", "data-dir": "data_dir", "dataDir": "data_dir", "docker.hst": "docker.host",
		"sessionid": "session_id", "colour": "", "": "", "docker": "docker.host", "the_session_id_of_the_session": "session_id", "dat": "", "dadr": "addr", "adrd": "addr", "da": "",
	} {
		if got := Of(word, known); got != want {
			t.Errorf("Of(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Of("x", nil); got != "" {
		t.Errorf("nothing known, got %q", got)
	}
}

// Whoever sends a long word does not make the server compare it, letter by letter.
func TestOfLongWords(t *testing.T) {
	for word, want := range map[string]string{strings.Repeat("x", maxWord-4) + "addr": "addr", strings.Repeat("x", maxWord-3) + "addr": ""} {
		if got := Of(word, []string{"addr"}); got != want {
			t.Errorf("%d bytes: %q, want %q", len(word), got, want)
		}
	}
	long, known := strings.Repeat("x", 1<<16), []string{"addr", "data_dir"}
	if n := testing.AllocsPerRun(1, func() { Of(long, known) }); n > 0 {
		t.Errorf("a long word takes %v allocations", n)
	}
}
