package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxKnown bounds the tokens that are remembered, at some 300 bytes each.
const maxKnown = 4096

// known remembers whom tokens speak for whose signature was found to hold, so that a client that calls again and again
// with one token pays for the arithmetic once. It belongs to the key that the signatures were checked with, and holds
// digests: not the tokens. Its zero value is empty. It may be used concurrently.
type known struct {
	mu     sync.Mutex
	tokens map[digest]Principal
}

type digest = [sha256.Size]byte

// find returns whom a token speaks for that was added, unless it has expired by now.
func (k *known) find(d digest, now time.Time, leeway time.Duration) (Principal, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.tokens[d]
	return p, ok && now.Before(p.Expires.Add(leeway))
}

// add remembers a token. Where there are too many, those that have expired are forgotten, and else all.
func (k *known) add(d digest, p Principal, now time.Time, leeway time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.tokens) >= maxKnown {
		for d, p := range k.tokens {
			if !now.Before(p.Expires.Add(leeway)) {
				delete(k.tokens, d)
			}
		}
	}
	if k.tokens == nil || len(k.tokens) >= maxKnown {
		k.tokens = map[digest]Principal{}
	}
	k.tokens[d] = p
}
