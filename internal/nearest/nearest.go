// Package nearest finds the known word that an unknown one was probably meant to be, for error messages.
package nearest

import "github.com/agext/levenshtein"

// Of returns the known word closest to word, or "" when none is close enough to be meant.
func Of(word string, known []string) string {
	best, bestScore := "", 0.59
	for _, k := range known {
		if score := levenshtein.Match(word, k, nil); score > bestScore {
			best, bestScore = k, score
		}
	}
	return best
}
