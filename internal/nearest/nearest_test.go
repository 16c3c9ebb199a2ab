package nearest

import "testing"

func TestOf(t *testing.T) {
	known := []string{"addr", "data_dir", "docker.host", "session_id"}
	for word, want := range map[string]string{
		"adr": "addr", "data-dir": "data_dir", "dataDir": "data_dir", "docker.hst": "docker.host",
		"sessionid": "session_id", "colour": "", "": "", "docker": "docker.host", "the_session_id_of_the_session": "session_id", "dat": "",
	} {
		if got := Of(word, known); got != want {
			t.Errorf("Of(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Of("x", nil); got != "" {
		t.Errorf("nothing known, got %q", got)
	}
}
