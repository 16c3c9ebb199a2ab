package notebook

import (
	"encoding/json"
	"regexp"
	"strings"

	"cellblock/internal/jsontext"
)

// jsonType matches the MIME types whose values may be any JSON; of all others they are texts.
var jsonType = regexp.MustCompile(`^application/(.*\+)?json$`)

// bundle makes a MIME bundle one that nbformat allows: code may display anything under any name.
func bundle(data Object) Object {
	valid := make(Object, len(data))
	for mime, value := range data {
		switch {
		case jsonType.MatchString(mime):
			valid[mime] = value
		default:
			valid[mime] = textOf(value)
		}
	}
	return valid
}

// textOf is a value as a text: the lines of a list joined, what is no text as JSON.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		if text, ok := joined(v); ok {
			return text
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

func joined(parts []any) (string, bool) {
	var b strings.Builder
	for _, part := range parts {
		text, ok := part.(string)
		if !ok {
			return "", false
		}
		b.WriteString(text)
	}
	return b.String(), true
}

// bundleOf is a bundle that a kernel sent, in which every value is JSON of its own.
func bundleOf(data map[string]json.RawMessage) Object {
	o := make(Object, len(data))
	for mime, raw := range data {
		o[mime] = valueOf(raw)
	}
	return bundle(o)
}

// valueOf is a value that a kernel sent: most are texts, some of them large.
func valueOf(raw json.RawMessage) any {
	var text string
	if json.Unmarshal(raw, &text) == nil && !jsontext.IsNull(raw) {
		return text
	}
	var value any
	if decode(raw, &value) != nil {
		return string(raw)
	}
	return value
}

// objectOf is metadata that a kernel sent; what is no object is none.
func objectOf(raw json.RawMessage) Object {
	var o Object
	if decode(raw, &o) != nil || o == nil {
		return Object{}
	}
	return o
}
