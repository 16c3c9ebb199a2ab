package main

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
)

// A server is found by its data folder while it runs, and only then.
func TestServerIsFoundByItsFolder(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	held, err := takeSlot(dir, serveSlot)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &Config{DataDir: dir, Addr: "127.0.0.1:8787"}
	found := func(when, want string) {
		t.Helper()
		if got, err := (connection{}).address(cfg); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", when, got, err, want)
		}
	}
	failed := func(when, want string) {
		t.Helper()
		if got, err := (connection{}).address(cfg); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v; want %s", when, got, err, want)
		}
	}
	usual, own := "http://127.0.0.1:8787/mcp", "http://"+listener.Addr().String()+"/mcp"
	leave := func() {
		t.Helper()
		if err := leaveAddress(dir, held.name, localURL("http", listener.Addr())); err != nil {
			t.Fatal(err)
		}
	}
	found("no server yet", usual)
	leave()
	found("it runs", own)
	if info, err := os.Stat(serverFilePath(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if got, err := (connection{url: "http://other:1/mcp"}).address(cfg); got != "http://other:1/mcp" {
		t.Errorf("what --url names is not taken: %s, %v", got, err)
	}
	removeAddress(dir, "s7")
	found("another has stopped", own)
	removeAddress(dir, held.name)
	found("it has stopped", usual)
	leave()
	if err := held.release(); err != nil {
		t.Fatal(err)
	}
	failed("it was killed, and another program listens there", "was killed, it was at "+own)
	if held, err = takeSlot(dir, serveSlot); err != nil {
		t.Fatal(err)
	}
	defer held.release()
	leave()
	_ = listener.Close()
	failed("nobody answers", "does not answer at "+own)
	for _, text := range []string{"", "{", `{"url":"http://127.0.0.1:1/mcp"}`, `{"url":":","slot":"` + held.name + `"}`} {
		if err := os.WriteFile(serverFilePath(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found("damaged: "+text, usual)
	}
}

// Of several servers on one folder the last that started and runs is found, whichever of them stops or is killed.
func TestServersOnOneFolderAreFoundAgain(t *testing.T) {
	dir := t.TempDir()
	urls, slots := map[string]string{}, map[string]*slot{}
	for _, name := range []string{"first", "second", "third"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if slots[name], err = takeSlot(dir, serveSlot); err != nil {
			t.Fatal(err)
		}
		urls[name] = localURL("http", listener.Addr())
		if err := leaveAddress(dir, slots[name].name, urls[name]); err != nil {
			t.Fatal(err)
		}
	}
	found := func(when, want string) {
		t.Helper()
		if got, err := runningServer(dir); err != nil || got != urls[want] {
			t.Errorf("%s: %s, %v; want the %s, %s", when, got, err, want, urls[want])
		}
	}
	stop := func(name string) {
		removeAddress(dir, slots[name].name)
		_ = slots[name].release()
	}
	found("all run", "third")
	var said bytes.Buffer
	warnOfOthers(dir, slots["third"].name, slog.New(slog.NewTextHandler(&said, nil)))
	if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") ||
		!strings.Contains(lines[0], "other="+urls["second"]) || !strings.Contains(lines[1], "other="+urls["first"]) {
		t.Errorf("of the others the third says %q", said.String())
	}
	for name, held := range slots {
		if at := serverAddress(dir, held.name); at != urls[name] {
			t.Errorf("the %s is said to be at %q, and is at %s", name, at, urls[name])
		}
	}
	if at := serverAddress(dir, "c0"); at != "" {
		t.Errorf("who left no word is said to be at %q", at)
	}
	_ = slots["third"].release()
	found("the third was killed", "second")
	stop("second")
	found("the second has stopped", "first")
	stop("first")
	found("none runs", "none")
}

func TestLocalURL(t *testing.T) {
	for at, want := range map[string]string{
		"127.0.0.1:81": "http://127.0.0.1:81/mcp", "0.0.0.0:81": "http://127.0.0.1:81/mcp", "[::]:81": "http://127.0.0.1:81/mcp",
		"[::1]:81": "http://[::1]:81/mcp", "192.0.2.7:81": "http://192.0.2.7:81/mcp",
	} {
		addr, err := net.ResolveTCPAddr("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if got := localURL("http", addr); got != want {
			t.Errorf("%s: %s", at, got)
		}
	}
}

// A server that has the address of one that still holds its place waits for that one's end: it is being stopped. It waits for no other.
func TestServerWaitsForTheEndOfTheOneBeforeIt(t *testing.T) {
	dir, logger := t.TempDir(), slog.New(slog.DiscardHandler)
	before, err := takeSlot(dir, serveSlot)
	if err != nil {
		t.Fatal(err)
	}
	const here = "http://127.0.0.1:8787/mcp"
	if err := leaveAddress(dir, before.name, here); err != nil {
		t.Fatal(err)
	}
	awaitStopping(t.Context(), dir, "http://127.0.0.1:8788/mcp", logger) // one that lives
	ended := make(chan *slot)
	go func() {
		awaitStopping(t.Context(), dir, here, logger)
		next, err := takeSlot(dir, serveSlot)
		if err != nil {
			t.Error(err)
		}
		ended <- next
	}()
	select {
	case next := <-ended:
		t.Fatalf("it took %s while the other one was stopping", next.name)
	case <-time.After(200 * time.Millisecond):
	}
	if err := before.release(); err != nil {
		t.Fatal(err)
	}
	next := <-ended
	defer next.release()
	if next.name != before.name {
		t.Errorf("it took %s", next.name)
	}
}
