package sessions

import (
	"fmt"
	"strings"
	"time"
)

// past remembers why sessions that are gone ended, for whoever comes back to one. It forgets the oldest beyond a bound;
// a store remembers them all. Its user holds the Manager's lock.
type past struct {
	sentences map[key]string
	order     []key
}

// maxPast bounds the sessions that are remembered.
const maxPast = 1024

func newPast() *past { return &past{sentences: map[key]string{}} }

func (p *past) put(k key, sentence string) {
	if _, known := p.sentences[k]; !known {
		p.order = append(p.order, k)
	}
	p.sentences[k] = sentence
	if len(p.order) > maxPast {
		delete(p.sentences, p.order[0])
		p.order = p.order[1:]
	}
}

// get returns what is remembered of k.
func (p *past) get(k key) (string, bool) {
	sentence, ok := p.sentences[k]
	return sentence, ok
}

func pastSentence(id, cause string, at time.Time) string {
	return fmt.Sprintf("The earlier session %q ended at %s: %s.", id, at.UTC().Format(clock), strings.TrimSuffix(cause, "."))
}
