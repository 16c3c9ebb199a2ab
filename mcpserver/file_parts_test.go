package mcpserver

import (
	"encoding/base64"
	"testing"
)

// A file goes in by parts, none of which is lost or taken twice, and comes out from any offset on.
func TestFilesInParts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const text = "the first part, the second"
		part := func(offset int, content string) called {
			return w.call("write_file", map[string]any{"session_id": "s", "path": "big", "upload": "u1", "encoding": "base64",
				"content": base64.StdEncoding.EncodeToString([]byte(content)), "offset": offset})
		}
		part(0, text[:15]).expect(t, false, "15 bytes of big so far; go on at offset=15.")
		part(0, text[:15]).expect(t, false, "15 bytes of big so far") // the answer was lost
		part(len(text), "x").expect(t, true, "go on at offset 15")
		part(len(text), "").expect(t, true, "15 bytes have come")
		w.call("read_file", map[string]any{"session_id": "s", "path": "big"}).expect(t, true, "there is no \"big\"")
		w.call("write_file", map[string]any{"session_id": "s", "path": "big", "upload": "u1", "content": "x"}).expect(t, true, "offset: say where")
		w.call("write_file", map[string]any{"session_id": "s", "path": "big", "content": "x", "offset": 1}).expect(t, true, "goes with upload")
		part(15, text[15:]).expect(t, false, "26 bytes of big so far")
		part(len(text), "").expect(t, false, "Wrote big in session s, 26 bytes.")
		part(len(text), "").expect(t, true, "nothing has come")
		for offset, want := range map[string]string{"0": text, "15": text[15:], "26": "", "99999999": ""} {
			c, err := w.read("cellblock://sessions/s/files/big?offset=" + offset)
			if err != nil || len(c) != 1 || c[0].Blob != base64.StdEncoding.EncodeToString([]byte(want)) {
				t.Errorf("from %s on: %+v, %v", offset, c, err)
			}
		}
	})
}
