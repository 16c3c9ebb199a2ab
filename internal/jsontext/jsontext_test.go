package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// whole is a text as encoding/json writes it, which escapes U+FFFD only in the place of what is none.
func whole(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(string([]rune(text)))
	return strings.TrimSuffix(b.String(), "\n")
}

func check(t *testing.T, text string) {
	t.Helper()
	var b strings.Builder
	if err := NewWriter(&b).Write(text); err != nil || b.String() != whole(text) {
		t.Fatalf("%v: %q is written as\n%s, want\n%s", err, text, b.String(), whole(text))
	}
	if got := Append([]byte("before "), []byte(text)); string(got) != "before "+b.String() {
		t.Fatalf("%q is appended as\n%s, want\n%s", text, got, b.String())
	}
	var read string
	if err := json.Unmarshal([]byte(b.String()), &read); err != nil || read != string([]rune(text)) {
		t.Fatalf("%q is read as %q, %v", text, read, err)
	}
	if Size(text) != b.Len() {
		t.Fatalf("%q: size %d, written %d", text, Size(text), b.Len())
	}
}

// Wherever a text is cut into pieces, it is written as if it were not.
func TestWrite(t *testing.T) {
	for _, part := range []string{"", "a", "é", "€", "😀", "\"\\\n\x00<&>\u2028", "\u2027\u2029\u202a", "\b\f\r\t\x1f\x7f", "\xff", "\xe2\x82", "\x80\x80\x80\x80\x80"} {
		check(t, part)
		for before := piece - 5; before <= piece+1; before++ {
			check(t, strings.Repeat("x", before)+part+part+"tail")
		}
	}
}

func FuzzWrite(f *testing.F) {
	f.Add("text\xff€", uint8(254))
	f.Fuzz(func(t *testing.T, text string, before uint8) {
		check(t, strings.Repeat("y", piece-255+int(before))+text)
	})
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFails(t *testing.T) {
	if err := NewWriter(full{}).Write("x"); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
