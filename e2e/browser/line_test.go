package browser

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// line carries connections to a server, until it is cut.
type line struct {
	addr, target string
	mu           sync.Mutex
	down         bool
	open         map[*wire]bool
}

// wire is one connection of a line.
type wire struct {
	line         *line
	near, far    net.Conn
	stream, dead bool // what line.mu guards
}

func newLine(t *testing.T, target string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{addr: listener.Addr().String(), target: target, open: map[*wire]bool{}}
	var carried sync.WaitGroup
	carried.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			carried.Go(func() { l.carry(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		l.cut()
		carried.Wait()
	})
	return l
}

// signInByLine opens a page of a server that a line leads to. What a browser says when that is cut is expected.
func (s *site) signInByLine(t *testing.T) (*line, *tab) {
	t.Helper()
	l := newLine(t, strings.TrimPrefix(s.base, "http://"))
	p := (&site{s.Server, "http://" + l.addr}).stranger(t)
	p.expects("ERR_", "Failed to fetch")
	p.do(chromedp.Navigate(strings.Replace(s.link(t), s.base, p.site.base, 1)), chromedp.WaitVisible("#main h1"))
	return l, p
}

// carry connects one end to the other until either, or the line, ends.
func (l *line) carry(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer far.Close()
	w := &wire{line: l, near: near, far: far}
	if !l.add(w) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(w, far) // however it ends, it has ended
		near.Close()
	})
	_, _ = io.Copy(far, near)
	far.Close()
	back.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, w)
}

// add notes a connection, unless the line is cut.
func (l *line) add(w *wire) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.down {
		l.open[w] = true
	}
	return !l.down
}

// Write sends data to the browser, unless the wire is dead.
func (w *wire) Write(data []byte) (int, error) {
	w.line.mu.Lock()
	w.stream = w.stream || bytes.Contains(data, []byte("text/event-stream"))
	dead := w.dead
	w.line.mu.Unlock()
	if dead {
		return len(data), nil
	}
	return w.near.Write(data)
}

// cut ends all connections, and lets none through until mend.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for w := range l.open {
		w.near.Close()
	}
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// deaden has the streams that there are die without a word, as where a path is forgotten underway, and ends all other connections.
func (l *line) deaden() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.open {
		if w.dead = w.stream; !w.dead {
			w.near.Close()
		}
	}
}
