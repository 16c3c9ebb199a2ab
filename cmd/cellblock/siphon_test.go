package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"cellblock/internal/fault"
)

// The text is what encoding/json would have read, and the rest is the answer without it.
func TestSiphon(t *testing.T) {
	for _, body := range []string{
		`{"result":{"contents":[{"uri":"a \"text\":\"b","text":"plain"}]}}`,
		`{"text" : "a\"b\\c\/d\b\f\n\r\té😀 é😀 \ud83d \ud83dx \udc00", "other":"text"}`,
		`{"a":"text","b":["text","c"],"text":"first","d":{"text":"second"}}`,
		`{"text":""}`,
		`{"text":7,"x":{"text":"y"}}`,
		`{"error":{"code":-32002,"message":"no \"text\": here"}}`,
		"event: message\ndata: {\"text\":\"of a stream\"}\n\n",
	} {
		var want struct {
			Text   any
			Result struct{ Contents []struct{ Text string } }
			X      struct{ Text string }
		}
		_ = json.Unmarshal([]byte(strings.TrimPrefix(body, "event: message\ndata: ")), &want)
		text, _ := want.Text.(string)
		if text += want.X.Text; len(want.Result.Contents) > 0 {
			text = want.Result.Contents[0].Text
		}
		var to bytes.Buffer
		s := &siphoned{to: &to}
		rest, err := s.take(iotest.OneByteReader(strings.NewReader(body)))
		if err != nil || to.String() != text {
			t.Errorf("%s: %q, want %q (%v)", body, to.String(), text, err)
		}
		if !s.took && string(rest) != body {
			t.Errorf("%s: left is %s", body, rest)
		}
		if s.took && (len(rest) >= len(body) && text != "" || !strings.Contains(string(rest), `""`)) {
			t.Errorf("%s: left is %s", body, rest)
		}
	}
	for _, body := range []string{`{"text":"cut`, `{"text":"\`, `{"text":"\u00`, `{"text":"\uzzzz"}`, `{"text":"\x"}`, `{"cut`} {
		if rest, err := (&siphoned{to: io.Discard}).take(strings.NewReader(body)); err == nil {
			t.Errorf("%s: %s", body, rest)
		}
	}
}

// A notebook takes no memory that depends on how large it is, neither does an answer that is none.
func TestLargeTextIsNotHeld(t *testing.T) {
	const size = 64 << 20
	lines := []byte(strings.Repeat(`0123456789abcd\n`, 64))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var request struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		if request.Method == "initialize" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"resources":{}},"serverInfo":{"name":"s","version":"1"}}}`, request.ID)
			return
		}
		if request.Method != "resources/read" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"contents":[{"uri":"x","mimeType":"y","text":"`, request.ID)
		for range size / 1024 {
			_, _ = w.Write(lines)
		}
		_, _ = io.WriteString(w, `"}]}}`)
	}))
	defer server.Close()
	c, err := dialMCP(t.Context(), server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var before, after runtime.MemStats
	var got counting
	runtime.ReadMemStats(&before)
	err = copyText(t.Context(), c, "s", "notebook.ipynb", &got)
	runtime.ReadMemStats(&after)
	if err != nil || got != size/1024*15*64 {
		t.Errorf("%d bytes, %v", got, err)
	}
	if held := after.TotalAlloc - before.TotalAlloc; held > size/8 { // the server's own are among them
		t.Errorf("%d MiB were allocated", held>>20)
	}
	full := errors.New("the disk is full")
	if err := copyText(t.Context(), c, "s", "notebook.ipynb", fullDisk{full}); !errors.Is(err, full) || fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a disk that is full: %v", err)
	}
}

type counting int

func (c *counting) Write(p []byte) (int, error) {
	*c += counting(len(p))
	return len(p), nil
}

// Nobody else's answers are touched.
func TestSiphonIsForOneRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"text":"x"}`)
	}))
	defer server.Close()
	read := func(ctx context.Context) string {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		response, err := siphons{http.DefaultTransport}.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return string(body)
	}
	if got := read(t.Context()); got != `{"text":"x"}` {
		t.Error(got)
	}
	var to strings.Builder
	ctx, s := withSiphon(t.Context(), &to)
	if got := read(ctx); got != `{"text":""}` || to.String() != "x" || !s.took {
		t.Error(got, to.String())
	}
}

// fullDisk takes nothing.
type fullDisk struct{ err error }

func (d fullDisk) Write([]byte) (int, error) { return 0, d.err }
