package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestPartsRoundTrip(t *testing.T) {
	header := NewHeader("id-1", "session-1", "execute_request")
	odd := Header{MsgID: "\"\\\n\u00e9\u2028", MsgType: "x", Username: "\u0000"}
	tests := map[string]struct{ in, want Message }{
		"nothing optional": {
			Message{Header: header},
			Message{Header: header, Metadata: empty, Content: empty, Buffers: [][]byte{}},
		},
		"everything": {
			Message{Header: header, Parent: odd, Metadata: json.RawMessage(`{"a":1}`), Content: json.RawMessage(` {"b":[]}`), Buffers: [][]byte{{0}, nil, []byte("<IDS|MSG>")}},
			Message{Header: header, Parent: odd, Metadata: json.RawMessage(`{"a":1}`), Content: json.RawMessage(` {"b":[]}`), Buffers: [][]byte{{0}, nil, []byte("<IDS|MSG>")}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FromParts(tt.in.Parts())
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestFromPartsErrors(t *testing.T) {
	head := `{"msg_type":"stream"}`
	tests := map[string]struct {
		parts []string
		says  string
	}{
		"none":                 {nil, "0 parts"},
		"too few":              {[]string{head, "{}", "{}"}, "3 parts"},
		"header no JSON":       {[]string{"{", "{}", "{}", "{}"}, "header"},
		"header no object":     {[]string{"[]", "{}", "{}", "{}"}, "header"},
		"header without type":  {[]string{"{}", "{}", "{}", "{}"}, "msg_type"},
		"header field no text": {[]string{`{"msg_type":1}`, "{}", "{}", "{}"}, "header"},
		"header too long":      {[]string{`{"msg_type":"` + strings.Repeat("x", MaxHeader) + `"}`, "{}", "{}", "{}"}, "at most"},
		"parent no JSON":       {[]string{head, "x", "{}", "{}"}, "parent"},
		"metadata no JSON":     {[]string{head, "{}", "{]", "{}"}, "metadata"},
		"metadata empty":       {[]string{head, "{}", "", "{}"}, "metadata"},
		"content no JSON":      {[]string{head, "{}", "{}", "{}}"}, "content"},
		"content no object":    {[]string{head, "{}", "{}", ` [1]`}, "content"},
		"content too deep":     {[]string{head, "{}", "{}", `{"a":` + strings.Repeat("[", 1<<20)}, "content"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := FromParts(byteParts(tt.parts...))
			if !errors.Is(err, ErrNotJupyter) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want ErrNotJupyter that says %q", err, tt.says)
			}
		})
	}
}

func TestFromPartsTakesNullForEmpty(t *testing.T) {
	m, err := FromParts(byteParts(`{"msg_type":"status"}`, "null", " null ", "null"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Parent != (Header{}) || string(m.Metadata) != "{}" || string(m.Content) != "{}" {
		t.Errorf("got %+v", m)
	}
}

func TestParseHeader(t *testing.T) {
	full := Header{MsgID: "1_2", Session: "s", Username: "u", Date: "2026-11-20T12:00:00Z", MsgType: "status", Version: "5.3", SubshellID: "x"}
	tests := map[string]struct {
		in   string
		want Header
	}{
		"empty":                {"", Header{}},
		"no fields":            {" { } ", Header{}},
		"null":                 {"null", Header{}},
		"as jupyter writes it": {`{"msg_id": "1_2", "session": "s", "username": "u", "date": "2026-11-20T12:00:00Z", "msg_type": "status", "version": "5.3", "subshell_id": "x"}`, full},
		"line breaks":          {"\n{\"msg_type\"\t:\r\"status\" \n, \"version\":\"5.3\"\n}\n", Header{MsgType: "status", Version: "5.3"}},
		"escapes":              {`{"msg_id":"\u00e9\"\\"}`, Header{MsgID: "é\"\\"}},
		"UTF-8":                {`{"msg_id":"é"}`, Header{MsgID: "é"}},
		"unknown fields":       {`{"msg_id":"1","more":{"a":[1]}}`, Header{MsgID: "1"}},
		"null field":           {`{"msg_id":"1","subshell_id":null}`, Header{MsgID: "1"}},
		"last one counts":      {`{"msg_id":"1","msg_id":"2"}`, Header{MsgID: "2"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseHeader([]byte(tt.in))
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
	for _, in := range []string{"{", "{}x", `{"msg_id"}`, `{"msg_id":}`, `{"msg_id":"1",}`, `{"msg_id":"1"`, `{"msg_id":"1"}}`, `{"msg_id":"1}`, "{\"msg_id\":\"\n\"}", `{,}`, "[]", `"x"`} {
		if h, err := ParseHeader([]byte(in)); !errors.Is(err, ErrNotJupyter) {
			t.Errorf("%q: got %+v, %v, want ErrNotJupyter", in, h, err)
		}
	}
}

func TestNewHeader(t *testing.T) {
	h := NewHeader("id", "session", "shutdown_request")
	date, err := time.Parse("2006-01-02T15:04:05.999999Z07:00", h.Date)
	if err != nil || time.Since(date) > time.Minute || date.Location() != time.UTC {
		t.Errorf("date %q: %v", h.Date, err)
	}
	h.Date = ""
	if want := (Header{MsgID: "id", Session: "session", Username: "cellblock", MsgType: "shutdown_request", Version: ProtocolVersion}); h != want {
		t.Errorf("got %+v, want %+v", h, want)
	}
}

// FuzzFromParts: whatever comes is refused as ErrNotJupyter, or survives a round trip unchanged.
func FuzzFromParts(f *testing.F) {
	f.Add([]byte(`{"msg_type":"stream"}`), []byte("{}"), []byte("{}"), []byte("{}"), []byte("buffer"))
	f.Add([]byte(`{"msg_type":"\ud800"}`), []byte("null"), []byte(" null"), []byte("\t{}"), []byte(nil))
	f.Add([]byte(`{"MSG_TYPE":"x","msg_id":""}`), []byte(""), []byte("{"), []byte("[]"), []byte(nil))
	f.Fuzz(func(t *testing.T, header, parent, metadata, content, buffer []byte) {
		m, err := FromParts([][]byte{header, parent, metadata, content, buffer})
		if err != nil {
			if !errors.Is(err, ErrNotJupyter) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		again, err := FromParts(m.Parts())
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("got %+v, %v, want %+v", again, err, m)
		}
		if !bytes.Equal(m.Buffers[0], buffer) {
			t.Fatalf("buffer %q became %q", buffer, m.Buffers[0])
		}
	})
}

// FuzzParseHeader holds our own scanner to what encoding/json says.
func FuzzParseHeader(f *testing.F) {
	for _, s := range []string{"", "{}", "null", `{"msg_id": "1", "session":"s","version":"5.3"}`, `{"msg_id":"\n"}`, `{"msg_id":"é","Date":"x"}`, `{"date":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseHeader(b)
		var want Header
		wantErr := json.Unmarshal(b, &want)
		if len(b) == 0 || len(b) > MaxHeader {
			return
		}
		if (err == nil) != (wantErr == nil) || err == nil && got != want {
			t.Fatalf("%q: got %+v, %v, want %+v, %v", b, got, err, want, wantErr)
		}
	})
}

func byteParts(texts ...string) [][]byte {
	parts := make([][]byte, len(texts))
	for i, s := range texts {
		parts[i] = []byte(s)
	}
	return parts
}
