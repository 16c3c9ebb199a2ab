//go:build linux

package docker

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/internal/fault"
)

// unreliable is a way to an engine that can be cut.
type unreliable struct {
	backend  string
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	when  string // a request whose beginning contains this is passed on, and its answer is not
	down  bool
}

// newUnreliable returns a way to the engine at host, and its address.
func newUnreliable(t *testing.T, host string) (*unreliable, string) {
	t.Helper()
	path := filepath.Join(shortDir(t), "u.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	u := &unreliable{backend: strings.TrimPrefix(host, "unix://"), listener: l, conns: map[net.Conn]bool{}}
	u.wg.Go(u.accept)
	t.Cleanup(func() {
		_ = l.Close()
		u.cut("", true)
		u.wg.Wait()
	})
	return u, "unix://" + path
}

// cutAt makes the engine go away once it has been asked for what contains when.
func (u *unreliable) cutAt(when string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.when = when
}

// cut ends all connections, and refuses new ones if down.
func (u *unreliable) cut(when string, down bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.when, u.down = when, down
	if down {
		for c := range u.conns {
			_ = c.Close()
		}
	}
}

func (u *unreliable) accept() {
	for {
		front, err := u.listener.Accept()
		if err != nil {
			return
		}
		back, err := net.Dial("unix", u.backend)
		if err != nil || !u.keep(front, back) {
			_ = front.Close()
			continue
		}
		u.wg.Go(func() { _, _ = io.Copy(front, back); _ = front.Close() })
		u.wg.Go(func() { u.forward(front, back) })
	}
}

func (u *unreliable) keep(conns ...net.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.down {
		for _, c := range conns {
			_ = c.Close()
		}
		return false
	}
	for _, c := range conns {
		u.conns[c] = true
	}
	return true
}

// cuts tells whether this request is where the engine goes away. It has the request whole then, and answers nobody; nor does it take
// anybody who has noticed.
func (u *unreliable) cuts(request []byte, front, back net.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.when == "" || !bytes.Contains(request, []byte(u.when)) {
		return false
	}
	u.when, u.down = "", true
	_ = front.Close()
	_, _ = back.Write(request)
	for c := range u.conns {
		_ = c.Close()
	}
	return true
}

// forward passes requests on until the one that cuts.
func (u *unreliable) forward(front, back net.Conn) {
	defer back.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := front.Read(buf)
		if u.cuts(buf[:n], front, back) {
			return
		}
		if _, werr := back.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// An engine that dies in the middle of a launch: the error says so at once, and when it is back nothing is left.
func TestEngineGoesAwayDuringLaunch(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		for name, when := range map[string]string{
			"image": "/images/", "create": "/containers/create", "inspect": "/json HTTP", "start": "/start HTTP", "attach": "/attach?",
		} {
			if name == "attach" && s.carrier != CarrierStdio || name == "image" && s.files == FilesVolume {
				continue
			}
			t.Run(name, func(t *testing.T) {
				way, through := newUnreliable(t, host)
				p := newProvisioner(t, Config{Host: through, Carrier: s.carrier, Files: s.files})
				if err := p.Health(t.Context()); err != nil {
					t.Fatal(fault.Text(err))
				}
				spec := newSpec(t, p, forever)
				way.cutAt(when)
				start := time.Now()
				h, err := p.Launch(t.Context(), spec)
				if err == nil {
					_ = h.Stop(t.Context(), 0)
					t.Fatal("the launch worked")
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("it took %v to notice", took)
				}
				if fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" || !strings.Contains(err.Error(), through) {
					t.Errorf("kind %v: %s", fault.KindOf(err), fault.Text(err))
				}
				if err := p.Health(t.Context()); fault.KindOf(err) != fault.Unavailable {
					t.Errorf("healthy without an engine: %v", err)
				}
				way.cut("", false)
				nothingLeft(t, p, 2*doubt)
				again := launchKernel(t, p, newSpec(t, p, forever))
				greet(t, again)
			})
		}
	})
}

// An engine that goes away and comes back must not make a running kernel look dead, nor a dead one alive. What it was to stop
// meanwhile it stops when it is back.
func TestEngineGoesAwayUnderAKernel(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		way, through := newUnreliable(t, host)
		p := newProvisioner(t, Config{Host: through, Carrier: s.carrier, Files: s.files})
		h := launchKernel(t, p, newSpec(t, p, forever))
		way.cut("", true)
		select {
		case <-h.Exited():
			t.Fatal("the engine went away, and the kernel is called dead")
		case <-time.After(300 * time.Millisecond):
		}
		way.cut("", false)
		greet(t, h)
		way.cut("", true)
		if err := h.Stop(t.Context(), 0); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("stopped without an engine: %v", err)
		}
		way.cut("", false)
		awaitExit(t, h, 10*time.Second)
		nothingLeft(t, p, 10*time.Second)
	})
}
