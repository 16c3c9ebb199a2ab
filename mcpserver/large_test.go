//go:build !race

// The race detector takes ten times as long for what is large.

package mcpserver

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"
)

// A large file goes in by parts and comes out by parts.
func TestFilesInParts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		large := bytes.Repeat([]byte("0123456789abcdef"), (maxFilePart+maxFilePart/2)/16)
		part := func(offset int, content []byte) called {
			return w.call("write_file", map[string]any{"session_id": "s", "path": "big", "upload": "u1", "encoding": "base64",
				"content": base64.StdEncoding.EncodeToString(content), "offset": offset})
		}
		part(0, large[:maxFilePart]).expect(t, false, "8 MiB of big so far; go on at offset=8388608.")
		part(0, large[:maxFilePart]).expect(t, false, "8 MiB of big so far")
		part(len(large), []byte("x")).expect(t, true, "go on at offset 8388608")
		part(len(large), nil).expect(t, true, "8388608 bytes have come")
		w.call("read_file", map[string]any{"session_id": "s", "path": "big"}).expect(t, true, "there is no \"big\"")
		w.call("write_file", map[string]any{"session_id": "s", "path": "big", "upload": "u1", "content": "x"}).expect(t, true, "offset: say where")
		w.call("write_file", map[string]any{"session_id": "s", "path": "big", "content": "x", "offset": 1}).expect(t, true, "goes with upload")
		part(maxFilePart, large[maxFilePart:]).expect(t, false, "12 MiB of big so far")
		part(len(large), nil).expect(t, false, "Wrote big in session s, 12 MiB.")
		part(len(large), nil).expect(t, true, "nothing has come")

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
		if c, err := w.read("cellblock://sessions/s/files/big?offset=99999999"); err != nil || c[0].Blob != "" {
			t.Errorf("behind the end: %+v", err)
		}
	})
}
