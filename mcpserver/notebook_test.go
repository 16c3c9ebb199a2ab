package mcpserver

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/notebook"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// book reads a session's notebook.
func (w *world) book(session string) *notebook.Notebook {
	w.t.Helper()
	uri := "cellblock://sessions/" + session + "/notebook.ipynb"
	c, rpcError := w.read(uri)
	if rpcError != nil || len(c) != 1 || c[0].URI != uri || c[0].MIMEType != "application/x-ipynb+json" {
		w.t.Fatalf("%+v, %+v", c, rpcError)
	}
	n, err := notebook.Parse([]byte(c[0].Text))
	if err != nil {
		w.t.Fatalf("%v\n%s", err, c[0].Text)
	}
	return n
}

// outline is a notebook's cells, each on a line: id, prompt, status and what it showed.
func outline(n *notebook.Notebook) string {
	var lines []string
	for _, c := range n.Cells {
		about, _ := c.Metadata["cellblock"].(notebook.Object)
		line := fmt.Sprintf("%s [%d] %v:", c.ID, c.ExecutionCount, about["status"])
		if c.Type != notebook.Code {
			line = c.ID + " " + strings.TrimPrefix(c.Source, "---\n")
		}
		for _, o := range c.Outputs {
			line += " " + shownBy(o) + ";"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func shownBy(o *notebook.Output) string {
	switch o.Type {
	case notebook.Stream:
		return o.Name + " " + strings.TrimSpace(o.Text)
	case notebook.Error:
		return o.EName
	}
	return fmt.Sprint(o.Data["text/plain"])
}

// A session's notebook has its cells with what they showed, in their generations, also when the session has ended.
func TestNotebookOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := storetest.NewMemory(), t.TempDir()
		keep := func(store sessions.Store) func(*sessions.Config) {
			return func(c *sessions.Config) { c.Store, c.DataDir = store, dir }
		}
		w := newWorld(t, keep(store))
		defer func() { w.kernels.StopAll() }()
		w.run("s", "print a\nprint b\n1+1")
		w.run("s", "late 1s afterwards")
		w.run("s", "error")
		time.Sleep(2 * time.Second)
		w.run("s", "print before\ndie")
		w.run("s", "print again")
		w.call("execute_python", map[string]any{"session_id": "s", "code": "print runs\nsleep 1h", "wait_seconds": 1})
		w.call("execute_python", map[string]any{"session_id": "s", "code": "print queued", "wait_seconds": 0})
		want := []string{
			"cell-1 [1] ok: stdout a\nb; 2;",
			"cell-2 [2] ok: stdout afterwards;",
			"cell-3 [3] error: Error;",
			"cell-4 [0] kernel died: stdout before; stderr … the cell did not end: the kernel",
			"generation-2 **Kernel generation 2.** The one before ended: the kernel",
			"cell-5 [1] ok: stdout again;",
			"cell-6 [0] running: stdout runs;",
		}
		check := func(when string, n *notebook.Notebook, want []string) {
			t.Helper()
			got := outline(n)
			at := 0
			for _, part := range want {
				i := strings.Index(got[at:], part)
				if i < 0 {
					t.Errorf("%s: %q is missing or out of place in\n%s", when, part, got)
					return
				}
				at += i
			}
			if strings.Contains(got, "queued") || len(n.Cells) != len(want) {
				t.Errorf("%s: too much in\n%s", when, got)
			}
			if n.Language() != "python" {
				t.Errorf("%s: language %q", when, n.Language())
			}
		}
		check("while it runs", w.book("s"), want)
		w.call("close_session", map[string]any{"session_id": "s"})
		want[6] = "cell-6 [0] kernel stopped: stdout runs;"
		check("after its end", w.book("s"), want)
		if err := w.service.Sessions.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.kernels.StopAll()

		w = newWorld(t, keep(store.Another()))
		n := w.book("s")
		check("after the server's end", n, want)
		if about, _ := n.Metadata["cellblock"].(notebook.Object); about["session_id"] != "s" || about["ended"] != "the session was closed" {
			t.Errorf("it says of itself %v", about)
		}
		list, _ := w.request(t.Context(), "resources/list", map[string]any{})
		if !strings.Contains(string(list), `"uri":"cellblock://sessions/s/notebook.ipynb"`) {
			t.Errorf("listed are %s", list)
		}
		log, rpcError := w.read("cellblock://sessions/s/log")
		if rpcError != nil || !strings.HasPrefix(log[0].Text, "s · python · closed · 7 cells · ") || strings.Count(log[0].Text, " · ended ") != 2 {
			t.Errorf("its log: %+v, %+v", log, rpcError)
		}
		if err := w.service.Sessions.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Notebooks and logs are their owner's, and need the scope to read sessions.
func TestNotebooksBelongToSomebody(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a")
		uris := []string{"cellblock://sessions/s/notebook.ipynb", "cellblock://sessions/s/log"}
		refused := func(who, why string, uris ...string) {
			t.Helper()
			for _, uri := range uris {
				if c, rpcError := w.read(uri); rpcError == nil || !strings.Contains(rpcError.Message, why) {
					t.Errorf("%s reads %s: %+v, %+v", who, uri, c, rpcError)
				}
			}
		}
		if log, rpcError := w.read(uris[1]); rpcError != nil || !strings.HasPrefix(log[0].Text, "s · python · idle · 1 cell") {
			t.Errorf("its log: %+v, %+v", log, rpcError)
		}
		refused("the owner", "resource", uris[0]+"?offset=1", uris[1]+"/x", "cellblock://sessions/s/", "cellblock://sessions/s/notebook", "cellblock://sessions//log/x")
		refused("the owner", "no session", "cellblock://sessions/t/notebook.ipynb", "cellblock://sessions/t/log")
		w.owner = sessions.Owner{Subject: "mallory"}
		refused("mallory", "there is no session", uris...)
		w.owner, w.scopes = sessions.Owner{Subject: "alice"}, []string{"python:execute"}
		refused("a token without the scope", `needs the scope "sessions:read"`, uris...)
	})
}

// Without a store the oldest cells are forgotten; the notebook says which.
func TestNotebookOfForgottenCells(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for i := range 70 {
			w.run("s", fmt.Sprint("print ", i))
		}
		n := w.book("s")
		if first := n.Cells[0]; first.Type != notebook.Markdown || !strings.Contains(first.Source, "cells 1 to 6 left out here: not kept any more") || len(n.Cells) != 65 {
			t.Errorf("%d cells, the first %q", len(n.Cells), first.Source)
		}
	})
}
