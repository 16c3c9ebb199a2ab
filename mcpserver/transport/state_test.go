package transport

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"
	"time"
)

func TestSealedState(t *testing.T) {
	key, other := NewSessionKey(), NewSessionKey()
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	sealed := key.Seal("alice", []byte("execution 7"), now.Add(time.Minute))
	if got, err := key.Open("alice", sealed, now.Add(59*time.Second)); err != nil || string(got) != "execution 7" {
		t.Fatalf("%q, %v", got, err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(sealed)
	later := bytes.Clone(raw)
	later[1] = 0x01 // a time after all times
	tests := map[string]struct {
		key           SessionKey
		owner, sealed string
		now           time.Time
	}{
		"another owner":       {key, "bob", sealed, now},
		"owner and state run": {key, "aliceexecution 7", key.Seal("alice", nil, now.Add(time.Minute)), now},
		"another key":         {other, "alice", sealed, now},
		"expired":             {key, "alice", sealed, now.Add(time.Minute)},
		"a later end":         {key, "alice", base64.RawURLEncoding.EncodeToString(later), now},
		"more behind it":      {key, "alice", sealed + "-TAMPERED", now},
		"a line break":        {key, "alice", sealed + "\n", now},
		"empty":               {key, "alice", "", now},
		"a session id":        {key, "alice", key.mint("alice", &client{version: "2025-11-25"}, now), now},
	}
	for name, tt := range tests {
		if got, err := tt.key.Open(tt.owner, tt.sealed, tt.now); !errors.Is(err, ErrState) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, ok := key.verify(sealed, "alice"); ok {
		t.Error("a state is taken for a session id")
	}
}

// Whatever a client brings back, it is refused or it is what was sealed.
func FuzzOpenState(f *testing.F) {
	key := SessionKey(bytes.Repeat([]byte{7}, keyBytes))
	now := time.Unix(1_800_000_000, 0)
	good := key.Seal("alice", []byte("state"), now.Add(time.Hour))
	f.Add(good)
	f.Add("")
	f.Add(good[:20])
	f.Fuzz(func(t *testing.T, sealed string) {
		if got, err := key.Open("alice", sealed, now); (err == nil) != (sealed == good) || err == nil && string(got) != "state" {
			t.Errorf("%q: %q, %v", sealed, got, err)
		}
	})
}
