package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// life is one data folder and its kernels, over several processes.
type life struct {
	t     *testing.T
	p     *sessions.FakeProvisioner
	store *storetest.Memory
	dir   string
}

func newLife(t *testing.T) *life {
	return &life{t: t, p: &sessions.FakeProvisioner{}, store: storetest.NewMemory(), dir: t.TempDir()}
}

// start starts a process, which recovers, and returns the kernels that it has no use for.
func (l *life) start(change ...func(*sessions.Config)) (*sessions.Manager, []kernels.Ref) {
	l.t.Helper()
	m := l.begin(change...)
	unknown, err := m.Recover(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return m, unknown
}

// begin starts a process that does not recover.
func (l *life) begin(change ...func(*sessions.Config)) *sessions.Manager {
	l.t.Helper()
	l.store = l.store.Another()
	return sessions.NewTestManager(l.t, l.p, append([]func(*sessions.Config){with(l.store, l.dir)}, change...)...)
}

// kill ends the process that runs as kill -9 does, as far as others can see.
func (l *life) kill() {
	synctest.Wait()
	time.Sleep(time.Second / 2) // what is to be committed is
	l.p.KillServer()
	l.store.Kill()
	l.store.Fail(fault.New(fault.Unavailable, "killed"))
}

// leave leaves kernels to the next process, and returns how many.
func (l *life) leave(m *sessions.Manager) int {
	l.t.Helper()
	n, err := m.Leave(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.store.Close(); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// stop ends the process and its kernels.
func (l *life) stop(m *sessions.Manager) {
	l.t.Helper()
	if err := errors.Join(m.Shutdown(context.Background()), l.store.Close()); err != nil {
		l.t.Fatal(err)
	}
}

// failOnce has the next kernel not come up.
func (l *life) failOnce() {
	l.t.Helper()
	m, _ := l.start()
	l.p.NotReady(errors.New("not now"))
	if _, err := sessions.StartCell(l.t, m, sessions.Alice, sessions.Python("s", "x")).Wait(l.t.Context()); err == nil {
		l.t.Error("it came up")
	}
	l.p.NotReady(nil)
	l.stop(m)
}

// idleSoon asks for alice's session, and once more when its kernel, which was found again, has had the time to answer.
func idleSoon(t *testing.T, m *sessions.Manager, id string) (sessions.Info, error) {
	t.Helper()
	if info, err := m.Get(t.Context(), sessions.Alice, id); err != nil {
		return info, err
	}
	synctest.Wait()
	return m.Get(t.Context(), sessions.Alice, id)
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}
