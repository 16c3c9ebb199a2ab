package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/internal/jsontext"
	"cellblock/internal/nearest"
)

// arguments are a call's, by name, undecoded. The first thing that is wrong with them is kept in err: a handler reads all
// it needs and then looks once.
type arguments struct {
	values map[string]json.RawMessage
	err    error
	// stray is err, where it is about a name that there is not: what is missing is told with it.
	stray *fault.Error
}

// argumentsOf takes a call's arguments. Names other than the allowed ones are an error: a model that misspells an
// optional argument would otherwise never learn that it had no effect. Null is as good as absent.
func argumentsOf(r mcp.CallToolRequest, allowed ...string) *arguments {
	a := &arguments{}
	raw, ok := r.GetRawArguments().(json.RawMessage)
	if !ok {
		raw, a.err = json.Marshal(r.Params.Arguments)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return a
	}
	a.values = map[string]json.RawMessage{}
	if jsontext.Members(raw, func(name []byte, value json.RawMessage) error { a.values[string(name)] = value; return nil }) != nil {
		a.fail("arguments: must be an object, got %s", typeName(raw))
		return a
	}
	for _, name := range slices.Sorted(maps.Keys(a.values)) {
		if !slices.Contains(allowed, name) {
			a.unknown(name, allowed)
		}
	}
	return a
}

func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fault.New(fault.Invalid, format, args...)
	}
}

// missing fails for an argument that must be there.
func (a *arguments) missing(name string) {
	if a.stray != nil {
		a.stray.Message += "; " + name + ": is required"
	}
	a.fail("%s: is required", name)
}

func (a *arguments) unknown(name string, allowed []string) {
	if a.err != nil {
		return
	}
	defer func() { a.stray, _ = errors.AsType[*fault.Error](a.err) }()
	shown := clean(name)
	if len(allowed) == 0 {
		a.fail("%s: there is no such argument, this tool takes none", shown)
		return
	}
	if near := nearest.Of(name, allowed); near != "" {
		a.fail("%s: there is no such argument, do you mean %s?", shown, near)
		return
	}
	a.fail("%s: there is no such argument, this tool takes %s", shown, strings.Join(allowed, ", "))
}

// value returns an argument that is there and not null.
func (a *arguments) value(name string) (json.RawMessage, bool) {
	v, ok := a.values[name]
	return v, ok && !jsontext.IsNull(v)
}

// text returns a string argument, "" when it is absent.
func (a *arguments) text(name string) string {
	raw, ok := a.value(name)
	if !ok {
		return ""
	}
	s, ok := jsontext.Text(raw)
	if !ok {
		a.fail("%s: must be a string, got %s", name, typeName(raw))
	}
	if !utf8.Valid(raw) {
		a.fail("%s: not valid UTF-8", name)
	}
	return s
}

// required is text for an argument that must be there.
func (a *arguments) required(name string) string {
	if _, ok := a.value(name); !ok {
		a.missing(name)
	}
	return a.text(name)
}

// unquoted is a value that is no text: some models write numbers and true as texts, and mean the same.
func unquoted(raw json.RawMessage) []byte {
	if text, ok := jsontext.Text(raw); ok && text != "null" {
		return []byte(text)
	}
	return raw
}

// seconds returns a duration argument between one second and most, 0 when it is absent.
func (a *arguments) seconds(name string, most time.Duration) time.Duration {
	return a.duration(name, 1, most, 0)
}

// wait returns how long a call is to wait, zero and up, or fallback when it does not say.
func (a *arguments) wait(fallback time.Duration) time.Duration {
	return a.duration("wait_seconds", 0, maxWait, fallback)
}

// duration returns an argument in seconds, of at least least, or fallback when it is absent.
func (a *arguments) duration(name string, least float64, most, fallback time.Duration) time.Duration {
	raw, ok := a.value(name)
	if !ok {
		return fallback
	}
	var n float64
	if json.Unmarshal(unquoted(raw), &n) != nil {
		a.fail("%s: must be a number, got %s", name, typeName(raw))
		return 0
	}
	if !(n >= least && n <= most.Seconds()) {
		a.fail("%s: must be between %v and %v, got %v", name, least, most.Seconds(), n)
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// index returns an integer argument of at least least, or fallback when it is absent.
func (a *arguments) index(name string, least, fallback int) int {
	raw, ok := a.value(name)
	if !ok {
		return fallback
	}
	n, err := strconv.Atoi(string(unquoted(raw)))
	if err != nil {
		a.fail("%s: must be an integer, got %s", name, clean(string(raw)))
	} else if n < least {
		a.fail("%s: must be at least %d, got %d", name, least, n)
	}
	return n
}

// number returns a cell's number, which must be there.
func (a *arguments) number(name string) int {
	if _, ok := a.value(name); !ok {
		a.missing(name)
	}
	return a.index(name, 1, 0)
}

// flag returns a boolean argument, false when it is absent.
func (a *arguments) flag(name string) bool {
	raw, ok := a.value(name)
	if !ok {
		return false
	}
	var b bool
	if json.Unmarshal(unquoted(raw), &b) != nil {
		a.fail("%s: must be true or false, got %s", name, typeName(raw))
	}
	return b
}

// typeName says what a JSON value is, for people.
func typeName(raw json.RawMessage) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '"':
		return "a string"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case raw[0] == 't', raw[0] == 'f':
		return "a boolean"
	case raw[0] == 'n':
		return "null"
	}
	return "a number"
}
