package transport

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseRefusesClearly(t *testing.T) {
	call := func(args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":` + args + `}}`
	}
	for _, tt := range []struct {
		name, raw string
		code      int
		says      string
	}{
		{"empty", "", -32700, "empty"},
		{"blank", " \n\t ", -32700, "empty"},
		{"not JSON", "{", -32700, "not valid JSON"},
		{"two messages", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, -32700, "not valid JSON"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600, "batches are not supported"},
		{"empty batch", `[]`, -32600, "batches"},
		{"a string", `"hello"`, -32600, "must be a JSON object"},
		{"no version", `{"id":1,"method":"ping"}`, -32600, `jsonrpc must be "2.0"`},
		{"old version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600, `jsonrpc must be "2.0"`},
		{"no method", `{"jsonrpc":"2.0","id":1}`, -32600, "method is missing"},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, -32600, "method is missing"},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":7}`, -32600, "not a JSON-RPC 2.0 object"},
		{"request and response", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, -32600, "not both"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "id must be"},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, "id must be"},
		{"fraction id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600, "id must be"},
		{"exponent id", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, -32600, "id must be"},
		{"long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, -32600, "id must be"},
		{"params list", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, -32602, "params must be an object"},
		{"meta list", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":[]}}`, -32602, "_meta must be an object"},
		{"duplicate", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, -32600, `the message has the key "id" twice`},
		{"duplicate, folded", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, -32600, "twice"},
		{"duplicate, escaped", `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/call"}`, -32600, "twice"},
		{"duplicate, Kelvin and long s", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"task":1,"taſK":2}}`, -32600, "twice"},
		{"duplicate in params", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a","NAME":"b"}}`, -32600, "params has the key"},
		{"duplicate in meta", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"_META":{"a":1,"A":2}}}`, -32600, "params._META has the key"},
		{"duplicate argument", call(`{"code":"a","code":"b"}`), -32600, `params.arguments has the key "code" twice`},
		{"duplicate, deep", call(`{"a":[{},{"b":1,"b":2}]}`), -32600, `params.arguments.a[1] has the key "b" twice`},
		{"not UTF-8", call("{\"code\":\"a\xff\"}"), -32600, "params.arguments.code is not valid UTF-8"},
		{"key not UTF-8", call("{\"a\xff\":1}"), -32600, "params.arguments is not valid UTF-8"},
		{"lone surrogate", call(`{"code":"\ud800"}`), -32600, "params.arguments.code has a"},
		{"lone low surrogate", call(`{"code":"\udc00x"}`), -32600, "surrogate"},
		{"surrogates the wrong way", call(`{"code":"\udc00\ud800"}`), -32600, "surrogate"},
		{"deep", call(strings.Repeat("[", 100) + strings.Repeat("]", 100)), -32600, "nests deeper than 64 levels"},
		{"deep objects", call(strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)), -32600, "nests deeper than 64 levels"},
		{"very deep", strings.Repeat("[", 1_000_000), -32700, "not valid JSON"},
		{"many keys", call(manyKeys(maxMembers + 1)), -32600, "more than 10000 keys"},
	} {
		_, _, err := parse([]byte(tt.raw))
		if err == nil || err.code != tt.code || !strings.Contains(err.message, tt.says) {
			t.Errorf("%s: %+v, want %d … %s", tt.name, err, tt.code, tt.says)
		}
		if err != nil && len(err.message) > 400 {
			t.Errorf("%s: a message of %d bytes", tt.name, len(err.message))
		}
	}
}

// A refusal reaches the call that it is of, wherever it is told beyond doubt which one that is.
func TestRefusalsAreAnswers(t *testing.T) {
	for raw, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"code":"\ud800"}}}`:                     "7",
		`{"jsonrpc":"2.0","method":"tools/call","params":{"a":1,"a":2},"id":"x"}`:                                     `"x"`,
		`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`:                                                             "",
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}":                                                   "",
		`{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}`:                                                             "",
		`{"jsonrpc":"2.0","id":{"a":"\ud800"},"method":"ping"}`:                                                       "",
		`{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800"}}`:                                                            "", // it answers a request of ours
		`{"jsonrpc":"2.0","id":1,"method":"ping"`:                                                                     "",
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                                                                  "",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`: "1",
	} {
		if _, id, err := parse([]byte(raw)); err == nil || string(id) != want {
			t.Errorf("%.80s: id %s, want %s: %+v", raw, id, want, err)
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestParseReads(t *testing.T) {
	m, id, err := parse([]byte(` {"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call",
		"params":{"name":"echo","arguments":{"a":1,"A":2,"s":"\ud83d\ude00 \\ \" \u00e9"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
	if err != nil || string(id) != "12345678901234567890" || m.tool() != "echo" || m.version != "2026-07-28" {
		t.Errorf("%+v %s %v", m, id, err)
	}
	for _, tt := range []struct {
		raw                    string
		response, notification bool
		cancels                string
	}{
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, true, false, ""},
		{`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":""}}`, true, false, ""},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, false, true, ""},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`, false, true, "5"},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}`, false, true, `"5`},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0035"}}`, false, true, `"5`},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}`, false, true, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, false, false, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, false, false, ""},
	} {
		m, _, err := parse([]byte(tt.raw))
		if err != nil || m.isResponse() != tt.response || m.isNotification() != tt.notification || m.cancels != tt.cancels {
			t.Errorf("%s: %+v %v", tt.raw, m, err)
		}
	}
}

// FuzzParse holds parse to two promises: it never panics, and what it lets through means the same to encoding/json, which
// mcp-go reads it with, as it does here.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,{"b":"\ud83d\ude00"}]}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"x","METHOD":"y"}`))
	f.Add([]byte(`[1,2,"\\",{}]`))
	f.Add([]byte(" { \"a\" : [ ] , \"b\" : { } , \"c\" : -1.5e+3 , \"d\" : null } "))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, _, err := parse(raw)
		if err != nil || m.isResponse() {
			return
		}
		var asMCP struct {
			Method string `json:"method"`
			Params struct {
				Name any `json:"name"`
			} `json:"params"`
		}
		if json.Unmarshal(m.raw, &asMCP) != nil {
			return // refused by mcp-go too
		}
		name, _ := asMCP.Params.Name.(string)
		if asMCP.Method != m.method || name != m.name {
			t.Errorf("read %q %q, mcp-go reads %q %q", m.method, m.name, asMCP.Method, name)
		}
	})
}

// FuzzScan compares the search for duplicates with a slow one.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, `{"a":{"b":[{"c":1,"c":2}]}}`, `[[],[{"x":"\u00e9"}]]`, ` "x" `, `{"a":1,"\u0061":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		trimmed := strings.TrimLeft(string(raw), " \t\r\n")
		if !json.Valid([]byte(trimmed)) {
			return
		}
		if err := scan([]byte(trimmed)); err == nil && hasDuplicate(t, decoder(trimmed)) {
			t.Errorf("a duplicate in %q", trimmed)
		}
	})
}

// decoder keeps numbers as they are written: some that are valid are too large for Go's.
func decoder(text string) *json.Decoder {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d
}

func hasDuplicate(t *testing.T, d *json.Decoder) bool {
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	switch token {
	case json.Delim('{'):
		for d.More() {
			key, _ := d.Token()
			if seen[key.(string)] {
				return true
			}
			seen[key.(string)] = true
			if hasDuplicate(t, d) {
				return true
			}
		}
		d.Token()
	case json.Delim('['):
		for d.More() {
			if hasDuplicate(t, d) {
				return true
			}
		}
		d.Token()
	}
	return false
}

func BenchmarkParse(b *testing.B) {
	raw := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_python","arguments":{"code":"` + strings.Repeat("print(1)\\n", 400) + `","session_id":"analysis"}}}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}
