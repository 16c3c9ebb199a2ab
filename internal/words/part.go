package words

import "unicode/utf8"

// Part returns s if it has at most n characters, else its beginning and its end with "…" between them: what is cut stays in its line.
func Part(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	head, tail := 0, len(s)
	for range n / 2 {
		_, size := utf8.DecodeRuneInString(s[head:])
		head += size
	}
	for range n - n/2 - 1 {
		_, size := utf8.DecodeLastRuneInString(s[:tail])
		tail -= size
	}
	return s[:head] + "…" + s[tail:]
}
