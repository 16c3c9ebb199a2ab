package sessions

import (
	"fmt"
	"strings"
	"time"
)

// past remembers why sessions that are gone ended, for whoever comes back to one. It forgets the oldest beyond a bound;
// a store remembers them all. Its user holds the Manager's lock.
type past struct {
	ends  map[key]pastEnd
	order []key
	count int // of the ends that were ever put here
}

// pastEnd is the end of a session, in a sentence. Where the session had no kernel yet, nothing was lost with it.
type pastEnd struct {
	sentence string
	lost     bool
	nth      int // of all ends, from 1
}

// maxPast bounds the sessions that are remembered.
const maxPast = 1024

func newPast() *past { return &past{ends: map[key]pastEnd{}} }

func (p *past) put(k key, end pastEnd) {
	if _, known := p.ends[k]; !known {
		p.order = append(p.order, k)
	}
	p.count++
	end.nth = p.count
	p.ends[k] = end
	if len(p.order) > maxPast {
		delete(p.ends, p.order[0])
		p.order = p.order[1:]
	}
}

// get returns what is remembered of k.
func (p *past) get(k key) (pastEnd, bool) {
	end, ok := p.ends[k]
	return end, ok
}

// endedSince tells whether a session has ended after so many ends.
func (p *past) endedSince(k key, count int) bool { return p.ends[k].nth > count }

func pastSentence(id, cause string, at time.Time) string {
	return fmt.Sprintf("The earlier session %q ended at %s: %s.", id, at.UTC().Format(clock), strings.TrimSuffix(cause, "."))
}
