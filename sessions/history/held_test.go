package history

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// Whoever asks for a session of another process is told where that one is reached, where that is known.
func TestHeldSessionNamesItsServer(t *testing.T) {
	folder, owner := t.TempDir(), sessions.Owner{Issuer: "i", Subject: "s"}
	open := func(slot string) *Store {
		t.Helper()
		s, err := Open(t.Context(), Options{Folder: folder, Slot: slot, Logger: slog.New(slog.DiscardHandler), Address: func(slot string) string {
			return map[string]string{"s0": "http://127.0.0.1:1/mcp"}[slot]
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	claim := func(s *Store, id string) error {
		_, err := s.Open(t.Context(), sessions.StoredSession{Owner: owner, ID: id, Language: "python", Created: time.Now()})
		return err
	}
	server, client, asker := open("s0"), open("c0"), open("s1")
	for id, s := range map[string]*Store{"served": server, "own": client} {
		if err := claim(s, id); err != nil {
			t.Fatal(err)
		}
	}
	const text = "in use by another cellblock process on the same data folder"
	for id, want := range map[string]string{
		"served": text + ", the server at http://127.0.0.1:1/mcp\nHint: use another session_id, or the server at http://127.0.0.1:1/mcp, where it runs",
		"own":    text + "\nHint: use another session_id, or close it where it runs",
	} {
		err := claim(asker, id)
		if fault.KindOf(err) != fault.Conflict || !strings.HasSuffix(fault.Text(err), want) {
			t.Errorf("%s: %v", id, fault.Text(err))
		}
	}
}
