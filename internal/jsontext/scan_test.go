package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// samples are texts at the edges of JSON.
var samples = []string{
	``, ` `, `{}`, ` { } `, `[]`, `[ ]`, `null`, ` null `, `nulll`, `nul`, `true`, `false`, `fals`, `"`, `""`, `"a"`, `"a" `, `"a" "b"`,
	`{"a":1}`, `{"a":1,}`, `{"a" : 1 , "b":[1,2,{"c":null}]}`, `{"a"}`, `{"a":}`, `{:1}`, `{,}`, `{"a":1 "b":2}`, `{"a":1`, `{a:1}`, `{} {}`,
	`[1,]`, `[,1]`, `[1 2]`, `[1`, `[[]`, `]`, `}`, `{]`, `[}`, `{"a":{"a":{}}}`, `{"a":1,"a":2}`, `{"\u0061":1}`, "{\"a\":\"\\n\"}",
	`0`, `-`, `-0`, `01`, `1.`, `.5`, `1.5`, `1e`, `1e5`, `1E+5`, `1e-`, `-1.0e-07`, `+1`, `1 `, `1x`, `--1`, `0x1`, `1.e5`,
	`"\"\\\/\b\f\n\r\t"`, `"\a"`, `"\`, `"\"`, `"\u00e9"`, `"\u00E9\uD83D\uDE00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ude00\ud83d"`,
	`"\ud83d\ud83d\ude00"`, `"\u12"`, `"\u12g4"`, `"\u"`, "\"\x1f\"", "\"\n\"", "\"\x7f\"", "\"\x00\"", "\"é€😀\"", "\"\xff\xfe\"", "\"\xe2\x82\"",
	"\"\xff\\n\"", "\"\\\xff\"", "\"12345678\x1f90\"", `"1234567\"890abcdefgh"`, `"12345678\\90abcdefghijklmnop"`, "\xef\xbb\xbf{}", "\u00a0{}", "\v{}",
	strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth), strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1),
}

// compare holds Valid, Members and Text to encoding/json.
func compare(t *testing.T, b []byte) {
	t.Helper()
	shown := b[:min(len(b), 200)]
	if got, want := Valid(b), json.Valid(b); got != want {
		t.Fatalf("%q is valid: %v, want %v", shown, got, want)
	}
	want := map[string]json.RawMessage{}
	wantErr := json.Unmarshal(b, &want)
	got := map[string]json.RawMessage{}
	err := Members(b, func(name []byte, value json.RawMessage) error {
		got[string(name)] = value
		return nil
	})
	if (err == nil) != (wantErr == nil) || err == nil && len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q has the members %q, %v, want %q, %v", shown, got, err, want, wantErr)
	}
	compareKnown(t, b, got, err == nil)
	var wantText string
	isText := len(b) > 0 && b[0] == '"' && b[len(b)-1] == '"' && json.Unmarshal(b, &wantText) == nil
	if text, ok := Text(b); ok != isText || text != wantText {
		t.Fatalf("%q is the text %q, %v, want %q, %v", shown, text, ok, wantText, isText)
	}
}

// compareKnown holds KnownMembers and KnownText to what Members and Text return; of what is not valid they only return.
func compareKnown(t *testing.T, b []byte, want map[string]json.RawMessage, isObject bool) {
	t.Helper()
	got := map[string]json.RawMessage{}
	err := KnownMembers(b, func(name []byte, value json.RawMessage) error {
		got[string(name)] = value
		return nil
	})
	b = bytes.TrimSpace(b)
	text, isText := KnownText(b)
	if !Valid(b) {
		return
	}
	if (err == nil) != isObject || isObject && !reflect.DeepEqual(got, want) {
		t.Fatalf("%.200q is known to have the members %q, %v, want %q", b, got, err, want)
	}
	if want, ok := Text(b); text != want || isText != ok {
		t.Fatalf("%.200q is known as the text %q, %v, want %q, %v", b, text, isText, want, ok)
	}
}

func TestScan(t *testing.T) {
	for _, s := range samples {
		compare(t, []byte(s))
		if len(s) < 100 {
			compare(t, []byte(`{"member": `+s+`, "other":`+s+`}`))
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range samples {
		if len(s) < 100 {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { compare(t, b) })
}

var errEnough = errors.New("enough")

func TestMembersStops(t *testing.T) {
	n := 0
	err := Members([]byte(`{"a":1,"b":2}`), func([]byte, json.RawMessage) error { n++; return errEnough })
	if err != errEnough || n != 1 {
		t.Errorf("%v after %d members, want what f returned after one", err, n)
	}
}

// What a picture costs must not be what its copies cost.
func TestMembersShareMemory(t *testing.T) {
	object := []byte(`{"image/png":"` + strings.Repeat("A", 1<<20) + `"}`)
	allocations := testing.AllocsPerRun(10, func() {
		_ = Members(object, func([]byte, json.RawMessage) error { return nil })
	})
	if allocations > 0 {
		t.Errorf("%v allocations, want none", allocations)
	}
}

func BenchmarkValid(b *testing.B) {
	picture := []byte(`{"image/png":"` + strings.Repeat("A", 5<<20) + `"}`)
	lines := []byte(`{"text":"` + strings.Repeat(`a line of output\n`, 1<<16) + `"}`)
	numbers := bytes.Join([][]byte{[]byte("["), bytes.Repeat([]byte("12.5, "), 1<<16), []byte("0]")}, nil)
	for name, text := range map[string][]byte{"picture": picture, "lines": lines, "numbers": numbers} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !Valid(text) {
					b.Fatal("not valid")
				}
			}
		})
		b.Run(name+"/encoding-json", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				json.Valid(text)
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	lines := []byte(`"` + strings.Repeat(`a line of output\n`, 1<<16) + `"`)
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		if _, ok := Text(lines); !ok {
			b.Fatal("no text")
		}
	}
}

// Who keeps a text counts its length, and not the escapes that it was made of.
func TestTextHoldsNoRoom(t *testing.T) {
	const length = 1 << 20
	value := []byte(`"` + strings.Repeat(`\u0061`, length) + `"`)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	text, ok := Text(value)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); !ok || len(text) != length || held > 2*length {
		t.Errorf("%v: a text of %d bytes holds %d", ok, len(text), held)
	}
	runtime.KeepAlive(value)
}
