package e2e

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	_ "modernc.org/sqlite"

	"cellblock/e2e/rig"
	"cellblock/sessions/history"
)

// writeOn runs cells in a session until it is told to stop, and counts those that were answered.
type writeOn struct {
	mu       sync.Mutex
	answered int
	stop     chan struct{}
	done     sync.WaitGroup
}

func (w *writeOn) run(t *testing.T, s *rig.Server, token string) {
	c := s.Connect(t, token, false)
	w.done.Go(func() {
		for number := 1; ; number++ {
			select {
			case <-w.stop:
				return
			default:
			}
			code := fmt.Sprintf("print('%d begin ' + 'x' * 100_000 + ' %d end')", number, number) // too much for the database, so a file
			if r := call(t, c, "execute_python", map[string]any{"session_id": "busy", "code": code}); r.IsError {
				t.Errorf("cell %d: %.300s", number, r.Text)
				return
			}
			w.mu.Lock()
			w.answered = number
			w.mu.Unlock()
		}
	})
}

func (w *writeOn) so() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered
}

// A backup that is made while cells run has all that was answered before it, and a server works with it, beside the one
// that it was made of.
func TestBackupWhileTheServerWorks(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		token := s.Token(t)
		c := s.Connect(t, token, false)
		python(t, c, "kept", "x = 42\nopen('note.txt', 'w').write('in the workspace')")
		plot := python(t, c, "kept", "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]); plt.show()")
		w := &writeOn{stop: make(chan struct{})}
		w.run(t, s, token)
		waitFor(t, func() bool { return w.so() >= 5 || t.Failed() })

		answered, dest := w.so(), filepath.Join(t.TempDir(), "copy")
		said, code := cellblock(t, nil, "", "backup", "--data-dir", s.DataDir, dest)
		close(w.stop)
		w.done.Wait()
		if code != 0 {
			t.Fatalf("exit status %d: %s", code, said)
		}
		wantText(t, said, "cells", "files of outputs", "not in it: keys and tokens", "cellblock restore --data-dir FOLDER "+dest)
		for _, name := range []string{"dev_private_key.pem", "dev_token.txt", "mcp_session_key", "installation", "cellblock.db-wal"} {
			if _, err := os.Lstat(filepath.Join(dest, name)); !os.IsNotExist(err) {
				t.Errorf("%s is in the backup: %v", name, err)
			}
		}
		if said, code := cellblock(t, nil, "", "backup", "--data-dir", s.DataDir, dest); code != 65 || !strings.Contains(said, "nothing is overwritten") {
			t.Errorf("once more: exit status %d: %s", code, said)
		}

		data := filepath.Join(t.TempDir(), "data")
		if said, code := cellblock(t, nil, "", "restore", "--data-dir", data, dest); code != 0 {
			t.Fatalf("exit status %d: %s", code, said)
		}
		restored := startIn(t, data, runtime, noPool)
		again := restored.Connect(t, restored.Token(t), false)
		for number := 1; number <= answered; number++ {
			r := call(t, again, "get_execution", map[string]any{"session_id": "busy", "execution_id": number})
			for _, want := range []string{fmt.Sprintf("%d begin xxx", number), fmt.Sprintf("xxx %d end", number), fmt.Sprintf("cell %d · ok", number)} {
				if !strings.Contains(r.Text, want) {
					t.Errorf("cell %d does not say %q, but %.300s", number, want, r.Text)
				}
			}
		}
		if r := call(t, again, "get_execution", map[string]any{"session_id": "kept", "execution_id": 2}); len(r.Images) != 1 || !bytes.Equal(r.Images[0], plot.Images[0]) {
			t.Errorf("the plot: %s", r.Text)
		}
		next := python(t, again, "kept", "print(open('note.txt').read())")
		wantText(t, next.Text, "in the workspace", "cell 3", "variables")
		wantText(t, python(t, c, "kept", "print('still', x)").Text, "still 42")
	})
}

// What retention has dropped is told in words wherever it is asked for, and the code is still there.
func TestDroppedOutputsAreTold(t *testing.T) {
	dir, runtime := t.TempDir(), rig.Runtimes(t)
	s := startIn(t, dir, runtime[0], noPool)
	python(t, s.Connect(t, s.Token(t), false), "old", "print('what was said')")
	s.Stop(t)
	db, err := sql.Open("sqlite", filepath.Join(dir, history.FileName))
	if err == nil {
		_, err = db.Exec("UPDATE executions SET ended = ended - ?", int64(100*24*time.Hour))
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}

	s = startIn(t, dir, runtime[0], noPool)
	c := s.Connect(t, s.Token(t), false)
	const told = "1 output of this cell, "
	const day = "dropped by retention on 20"
	get := func() string {
		return call(t, c, "get_execution", map[string]any{"session_id": "old", "execution_id": 1}).Text
	}
	waitFor(t, func() bool { return strings.Contains(get(), "retention") })
	if text := get(); strings.Contains(text, "what was said") {
		t.Errorf("it is said still: %s", text)
	}
	wantText(t, get(), told, day, "cell 1 · ok")
	wantText(t, call(t, c, "list_executions", map[string]any{"session_id": "old"}).Text, "print('what was said')", "ok")
	read := func(uri string) (*mcp.ReadResourceResult, error) {
		return c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "cellblock://sessions/old/executions/1/" + uri}})
	}
	whole, err := read("output")
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, whole.Contents[0].(mcp.TextResourceContents).Text, told, day)
	if _, err := read("outputs/0"); err == nil || !strings.Contains(err.Error(), day) {
		t.Errorf("a single output: %v", err)
	}
}
