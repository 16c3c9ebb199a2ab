package words

import "testing"

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"data/größe 1.csv":   "data/größe 1.csv",
		"":                   "",
		"it's \"it\"":        `it's "it"`,
		"a\n4 bytes  b.csv":  `"a\n4 bytes  b.csv"`,
		"esc\x1b[31mred":     `"esc\x1b[31mred"`,
		"bad\xff\xfe":        `"bad\xff\xfe"`,
		"\u202evsc.exe":      `"\u202evsc.exe"`,
		"real replacement �": "real replacement �",
	} {
		if got := Name(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}
