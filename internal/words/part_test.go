package words

import "testing"

func TestPart(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 4, ""}, {"abcd", 4, "abcd"}, {"abcde", 4, "ab…e"}, {"абвгд", 3, "а…д"}, {"abc", 1, "…"}, {"a\xffc", 2, "a…"},
	} {
		if got := Part(tt.in, tt.n); got != tt.want {
			t.Errorf("%q, %d: %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}
