package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// maxKnown bounds the tokens that are remembered, and maxKnownBytes about what they take.
	maxKnown      = 4096
	maxKnownBytes = 8 << 20
)

// known remembers whom tokens speak for whose signature was found to hold, so that a client that calls again and again
// with one token pays for the arithmetic once. It belongs to the key that the signatures were checked with, and holds
// digests: not the tokens. Its zero value is empty. It may be used concurrently.
type known struct {
	mu     sync.Mutex
	tokens map[digest]Principal
	bytes  int
}

type digest = [sha256.Size]byte

// find returns whom a token speaks for that was added, unless it has expired by now.
func (k *known) find(d digest, now time.Time, leeway time.Duration) (Principal, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.tokens[d]
	return p, ok && now.Before(p.Expires.Add(leeway))
}

// weight is about what a token takes, in bytes: a token of 16 KB may name eight thousand scopes.
func weight(p Principal) int {
	n := 300 + len(p.Issuer) + len(p.Subject) + len(p.ClientID)
	for _, scope := range p.Scopes {
		n += 16 + len(scope)
	}
	return n
}

// add remembers a token. Where there are too many, those that have expired are forgotten, and else all.
func (k *known) add(d digest, p Principal, now time.Time, leeway time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	more := weight(p)
	if old, ok := k.tokens[d]; ok {
		k.drop(d, old)
	}
	if k.full(more) {
		for d, p := range k.tokens {
			if !now.Before(p.Expires.Add(leeway)) {
				k.drop(d, p)
			}
		}
	}
	if k.tokens == nil || k.full(more) {
		k.tokens, k.bytes = map[digest]Principal{}, 0
	}
	k.tokens[d] = p
	k.bytes += more
}

// full tells whether there is no room for so many bytes. k.mu is held.
func (k *known) full(more int) bool { return len(k.tokens) >= maxKnown || k.bytes+more > maxKnownBytes }

// drop forgets a token. k.mu is held.
func (k *known) drop(d digest, p Principal) {
	delete(k.tokens, d)
	k.bytes -= weight(p)
}
