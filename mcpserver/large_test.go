//go:build !race

// The race detector takes ten times as long for what is large.

package mcpserver

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"
)

// A file of several parts goes in by parts and comes out by parts of their full size.
func TestUnracedFilesInParts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		large := bytes.Repeat([]byte("0123456789abcdef"), (maxFilePart+maxFilePart/2)/16)
		part := func(offset int, content []byte) called {
			return w.call("write_file", map[string]any{"session_id": "s", "path": "big", "upload": "u1", "encoding": "base64",
				"content": base64.StdEncoding.EncodeToString(content), "offset": offset})
		}
		part(0, large[:maxFilePart]).expect(t, false, "8 MiB of big so far; go on at offset=8388608.")
		part(0, large[:maxFilePart]).expect(t, false, "8 MiB of big so far")
		part(maxFilePart, large[maxFilePart:]).expect(t, false, "12 MiB of big so far")
		part(len(large), nil).expect(t, false, "Wrote big in session s, 12 MiB.")

		var got []byte
		for len(got) < len(large) {
			uri := fmt.Sprintf("cellblock://sessions/s/files/big?offset=%d", len(got))
			c, err := w.read(uri)
			if err != nil || len(c) != 1 || c[0].URI != uri {
				t.Fatalf("%+v", err)
			}
			raw, decodeErr := base64.StdEncoding.DecodeString(c[0].Blob)
			if got = append(got, raw...); decodeErr != nil || len(raw) == 0 {
				t.Fatalf("%d bytes, %v", len(raw), decodeErr)
			}
		}
		if !bytes.Equal(got, large) {
			t.Error("another file came out")
		}
	})
}
