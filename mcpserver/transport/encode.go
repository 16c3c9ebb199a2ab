package transport

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/jsontext"
)

// largeText is from how many bytes on a resource's text is written by itself: a notebook or a file has up to 32 MiB, of which
// encoding/json would have several copies at a time.
const largeText = 64 << 10

// encode writes a message as one line of JSON.
func encode(v any) ([]byte, error) {
	v, texts := withoutTexts(v)
	frame, err := encodeWhole(v)
	if err != nil || len(texts) == 0 {
		return frame, err
	}
	size := len(frame)
	for _, t := range texts {
		size += jsontext.Size(t.text)
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	w := jsontext.NewWriter(b)
	for _, t := range texts {
		before, after, _ := bytes.Cut(frame, []byte(`"`+t.stand+`"`))
		b.Write(before)
		if err := w.Write(t.text); err != nil {
			return nil, err
		}
		frame = after
	}
	b.Write(frame)
	return b.Bytes(), nil
}

func encodeWhole(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// standIn is a large text, and what stands in its place meanwhile: a word that nobody can have known.
type standIn struct{ stand, text string }

// withoutTexts takes the large texts out of a response with resources.
func withoutTexts(v any) (any, []standIn) {
	response, ok := v.(mcp.JSONRPCResponse)
	if !ok {
		return v, nil
	}
	result, ok := response.Result.(mcp.ReadResourceResult)
	if !ok {
		return v, nil
	}
	var texts []standIn
	take := func(text *string) {
		if len(*text) >= largeText {
			t := standIn{rand.Text(), *text}
			texts, *text = append(texts, t), t.stand
		}
	}
	result.Contents = slices.Clone(result.Contents)
	for i, content := range result.Contents {
		switch c := content.(type) {
		case mcp.TextResourceContents:
			take(&c.Text)
			result.Contents[i] = c
		case mcp.BlobResourceContents:
			take(&c.Blob)
			result.Contents[i] = c
		}
	}
	response.Result = result
	return response, texts
}
