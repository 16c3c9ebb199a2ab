package auth

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

func TestRememberedTokenExpires(t *testing.T) {
	now := noon
	c := testConfig()
	c.Now = func() time.Time { return now }
	v := must(NewKeyVerifier(c))
	signed := token{}.sign(t)
	first := must(v(context.Background(), signed))
	if again := must(v(context.Background(), signed)); again.Owner() != first.Owner() || !again.Has("python:execute") {
		t.Errorf("the second time it speaks for %+v, not %+v", again, first)
	}
	now = first.Expires.Add(DefaultLeeway - time.Second)
	if _, err := v(context.Background(), signed); err != nil {
		t.Errorf("within the leeway: %v", err)
	}
	now = first.Expires.Add(DefaultLeeway)
	if _, err := v(context.Background(), signed); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("after it expired: %v", err)
	}
}

func TestRememberedTokenDoesNotCoverAnother(t *testing.T) {
	v := testVerifier(t)
	signed := token{}.sign(t)
	must(v(context.Background(), signed))
	for _, changed := range []string{signed[:len(signed)-2], signed + "A", "A" + signed, strings.Replace(signed, ".", "..", 1)} {
		if p, err := v(context.Background(), changed); err == nil {
			t.Errorf("%q speaks for %+v", changed, p)
		}
	}
	if _, err := testVerifier(t)(context.Background(), token{key: otherKey()}.sign(t)); err == nil {
		t.Error("another key's token holds")
	}
}

func TestFewTokensAreRemembered(t *testing.T) {
	var k known
	add := func(n int, expires time.Time) (d digest) {
		binary.BigEndian.PutUint64(d[:], uint64(n))
		k.add(d, Principal{Expires: expires}, noon, 0)
		return d
	}
	late := add(0, noon.Add(time.Hour))
	for n := range maxKnown {
		add(n+1, noon) // has just expired
	}
	if _, ok := k.find(late, noon, 0); !ok {
		t.Error("one that holds was forgotten for some that have expired")
	}
	for n := range 3 * maxKnown {
		add(n, noon.Add(time.Hour))
	}
	if n := len(k.tokens); n > maxKnown {
		t.Errorf("%d tokens are remembered", n)
	}
}

// Tokens with thousands of scopes are remembered as far as there is room, and are forgotten with what they took.
func TestLargeTokensAreRememberedWithinBounds(t *testing.T) {
	var k known
	large := Principal{Expires: noon.Add(time.Hour), Scopes: make([]string, 8000)}
	for n := range 3 * maxKnownBytes / weight(large) { // far fewer than maxKnown
		var d digest
		binary.BigEndian.PutUint64(d[:], uint64(n))
		for range 2 {
			k.add(d, large, noon, 0)
		}
		if _, ok := k.find(d, noon, 0); !ok {
			t.Fatalf("the token that came last, the %dth, is not remembered", n)
		}
		total := 0
		for _, p := range k.tokens {
			total += weight(p)
		}
		if total != k.bytes || total > maxKnownBytes {
			t.Fatalf("%d tokens take %d bytes, counted as %d", len(k.tokens), total, k.bytes)
		}
	}
}

// BenchmarkVerify holds a token that is new beside one that is known.
func BenchmarkVerify(b *testing.B) {
	signed := token{}.sign(b)
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			must(testVerifier(b)(context.Background(), signed))
		}
	})
	b.Run("known", func(b *testing.B) {
		v := testVerifier(b)
		for b.Loop() {
			must(v(context.Background(), signed))
		}
	})
}
