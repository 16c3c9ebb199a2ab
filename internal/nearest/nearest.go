// Package nearest finds the known word that an unknown one was probably meant to be, for error messages.
package nearest

import (
	"strings"

	"github.com/agext/levenshtein"
)

// partLength is how many letters tell what a word is a part of.
const partLength = 4

// maxWord is the longest word that is compared, in bytes: comparing takes time and memory with the length of both words, and
// nobody mistypes one as long as that.
const maxWord = 64

// Of returns the known word closest to word, or "" when none is close enough to be meant. One of which but two neighbours stand the other
// way round is closest. One that is a part of the other is close
// where no other is spelt like it. Nothing is close to a word of more than 64 bytes.
func Of(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, bestScore := "", 0.59
	for _, k := range known {
		if swapped(word, k) {
			return k
		}
		if score := levenshtein.Match(word, k, nil); score > bestScore {
			best, bestScore = k, score
		}
	}
	for _, k := range known {
		if best == "" && min(len(word), len(k)) >= partLength && (strings.Contains(k, word) || strings.Contains(word, k)) {
			best = k
		}
	}
	return best
}

// swapped tells whether one word is the other with two neighbouring letters the other way round: in a short word that is one slip
// of a finger, and for Levenshtein half of it.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
