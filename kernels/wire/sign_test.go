package wire

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What jupyter_client 7.4 makes of these parts:
// Session(key=b"5c1b…", signature_scheme="hmac-sha256").sign(parts).
const (
	foreignKey       = "5c1bd7d4-0f2f5a9d8d21e9c6c5f0f9b1"
	foreignSignature = "59fa09513eb56cdea6587c5d19f726ce76a9200f8880ea364d0e156c869586ef"
)

func foreignParts() [][]byte {
	return byteParts(
		`{"msg_id":"6f3a-1","session":"6f3a","username":"cellblock","date":"2026-11-20T12:00:00.000000Z","msg_type":"execute_request","version":"5.4"}`,
		`{}`, `{}`, `{"code":"print('é')","silent":false}`)
}

func TestSignatureIsJupyterClients(t *testing.T) {
	signer := NewSigner([]byte(foreignKey))
	frames, err := signer.Pack(foreignParts())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(frames[1]); got != foreignSignature {
		t.Errorf("signed %s, want %s", got, foreignSignature)
	}
	foreign := slices.Concat(byteParts("kernel.topic", Delimiter, foreignSignature), foreignParts(), byteParts("buffer"))
	parts, err := signer.Unpack(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if want := append(foreignParts(), []byte("buffer")); !reflect.DeepEqual(parts, want) {
		t.Errorf("got %q, want %q", parts, want)
	}
}

func TestPackUnpack(t *testing.T) {
	many := append(foreignParts(), slices.Repeat([][]byte{[]byte("buffer")}, 20)...)
	for _, key := range []string{"", "k", strings.Repeat("long", 100)} {
		for _, parts := range [][][]byte{foreignParts(), many[:5], many[:6], many[:7], many} {
			signer := NewSigner([]byte(key))
			frames, err := signer.Pack(parts)
			if err != nil {
				t.Fatal(err)
			}
			if signed := len(frames[1]) > 0; signed != (key != "") {
				t.Errorf("key %q: signature %q", key, frames[1])
			}
			got, err := signer.Unpack(frames)
			if err != nil || !reflect.DeepEqual(got, parts) {
				t.Errorf("key %q: got %q, %v, want %q", key, got, err, parts)
			}
		}
	}
}

func TestPackNeedsFourParts(t *testing.T) {
	if _, err := NewSigner(nil).Pack(foreignParts()[:3]); !errors.Is(err, ErrNotJupyter) {
		t.Errorf("got %v, want ErrNotJupyter", err)
	}
}

func TestUnpackErrors(t *testing.T) {
	good := slices.Concat(byteParts(Delimiter, foreignSignature), foreignParts())
	changed := slices.Clone(good)
	changed[5] = []byte(`{"code":"import os"}`)
	identities := slices.Repeat(byteParts("id"), MaxIdentities)
	tests := map[string]struct {
		frames [][]byte
		want   error
	}{
		"nothing":             {nil, ErrNotJupyter},
		"no delimiter":        {good[1:], ErrNotJupyter},
		"delimiter alone":     {good[:1], ErrNotJupyter},
		"one frame missing":   {good[:5], ErrNotJupyter},
		"most identities":     {slices.Concat(identities, good), nil},
		"too many identities": {slices.Concat(identities, byteParts("id"), good), ErrNotJupyter},
		"content changed":     {changed, ErrSignature},
		"no signature":        {slices.Concat(byteParts(Delimiter, ""), good[2:]), ErrSignature},
		"upper case":          {slices.Concat(byteParts(Delimiter, strings.ToUpper(foreignSignature)), good[2:]), ErrSignature},
		"second delimiter":    {slices.Concat(byteParts(Delimiter), good), ErrSignature},
	}
	signer := NewSigner([]byte(foreignKey))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := signer.Unpack(tt.frames); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if _, err := NewSigner([]byte("another")).Unpack(good); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: got %v, want ErrSignature", err)
	}
}

func TestSignerConcurrently(t *testing.T) {
	signer := NewSigner([]byte(foreignKey))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				frames, err := signer.Pack(foreignParts())
				if err != nil || string(frames[1]) != foreignSignature {
					t.Errorf("got %q, %v", frames[1], err)
				}
				if _, err := signer.Unpack(frames); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// raceEnabled tells that the race detector counts in allocations; sync.Pool then forgets at random.
var raceEnabled bool

func TestSigningAllocatesOnce(t *testing.T) {
	signer, parts := NewSigner([]byte(foreignKey)), foreignParts()
	frames, _ := signer.Pack(parts)
	if n := testing.AllocsPerRun(200, func() { signer.Pack(parts) }); n > 1 && !raceEnabled {
		t.Errorf("Pack allocates %v times, want once", n)
	}
	if n := testing.AllocsPerRun(200, func() { signer.Unpack(frames) }); n > 0 && !raceEnabled {
		t.Errorf("Unpack allocates %v times, want never", n)
	}
}

// FuzzUnpack cuts a text into frames at newlines: whatever comes is refused by kind or survives a round trip.
func FuzzUnpack(f *testing.F) {
	good := slices.Concat(byteParts("topic", Delimiter, foreignSignature), foreignParts())
	f.Add(bytes.Join(good, []byte("\n")), []byte(foreignKey))
	f.Add(bytes.Join(good[2:], []byte("\n")), []byte(foreignKey))
	f.Add(bytes.Join(good, []byte("\n")), []byte(nil))
	f.Add(bytes.Repeat([]byte("\n"), 100), []byte("k"))
	f.Fuzz(func(t *testing.T, text, key []byte) {
		signer, frames := NewSigner(key), bytes.Split(text, []byte("\n"))
		parts, err := signer.Unpack(frames)
		if err != nil {
			if !errors.Is(err, ErrNotJupyter) && !errors.Is(err, ErrSignature) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		packed, err := signer.Pack(parts)
		if err != nil {
			t.Fatal(err)
		}
		again, err := signer.Unpack(packed)
		if err != nil || !reflect.DeepEqual(parts, again) {
			t.Fatalf("got %q, %v, want %q", again, err, parts)
		}
	})
}

// A message whose content comes in pieces verifies as it does whole.
func TestCheck(t *testing.T) {
	parts := Message{Header: NewHeader("id", "session", "stream"), Content: []byte(`{"name":"stdout","text":"a"}`)}.Parts()
	for key, wrong := range map[string]error{"secret": ErrSignature, "": nil} {
		s := NewSigner([]byte(key))
		for range 2 { // what the first one used is used again
			frames, err := s.Pack(parts)
			if err != nil {
				t.Fatal(err)
			}
			for _, tt := range []struct {
				content string
				want    error
			}{{string(parts[3]), nil}, {string(parts[3]) + " ", wrong}, {"", wrong}} {
				c := s.Check(frames[1], parts[:3])
				for i := range len(tt.content) {
					_, _ = c.Write([]byte{tt.content[i]})
				}
				if err := c.Verify(); !errors.Is(err, tt.want) {
					t.Errorf("key %q, content %q: %v, want %v", key, tt.content, err, tt.want)
				}
			}
		}
	}
}
