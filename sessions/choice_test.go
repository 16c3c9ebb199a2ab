package sessions_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

var errNoScope = errors.New("no scope")

// choices is a configuration with profiles, and with images of an owner's own.
func choices(c *sessions.Config) {
	c.Provisioner.(*sessions.FakeProvisioner).HasImages()
	c.Runtimes = map[string]sessions.Runtime{
		"python": {Kernelspec: kernels.Kernelspec{Name: "python3"}, Image: "python:latest"}, "bash": {Image: "bash:latest"},
	}
	c.Profiles = map[string]sessions.Profile{
		"session":  {Limits: kernels.Limits{Memory: 2 << 30}},
		"large":    {Limits: kernels.Limits{Memory: 8 << 30}, MaxTimeout: 10 * time.Hour, DefaultTimeout: time.Hour, Runtime: "runsc"},
		"isolated": {Limits: kernels.Limits{Memory: 512 << 20}, Once: true},
	}
	c.Image = func(_ context.Context, o sessions.Owner, language, name string) (string, error) {
		if o != sessions.Alice || language != "python" || name != "mine" && name != "other" {
			return "", fault.New(fault.NotFound, "there is no image %q", name)
		}
		return "derived-" + name, nil
	}
	c.ImageName = func(_ sessions.Owner, image string) string { return strings.TrimPrefix(image, "derived-") }
}

// What a session is made of is said by its first call, and nobody can say otherwise while it is there.
func TestChoices(t *testing.T) {
	type r = sessions.Request
	const py = "python"
	for name, tt := range map[string]struct {
		first, then r
		kind        fault.Kind
		says, hint  string
	}{
		"nothing said":           {r{Language: py}, r{Language: py}, 0, "", ""},
		"the default said":       {r{Language: py}, r{Language: py, Profile: "session", Image: "python:latest"}, 0, "", ""},
		"profile said once":      {r{Language: py, Profile: "large"}, r{Language: py}, 0, "", ""},
		"both said twice":        {r{Language: py, Profile: "large", Image: "mine"}, r{Language: py, Profile: "large", Image: "mine"}, 0, "", ""},
		"image said once":        {r{Language: py, Image: "mine"}, r{Language: py}, 0, "", ""},
		"another profile":        {r{Language: py, Profile: "large"}, r{Language: py, Profile: "session"}, fault.Conflict, "has the profile large, it cannot have session", "close_session"},
		"a profile later":        {r{Language: py}, r{Language: py, Profile: "large"}, fault.Conflict, "has the profile session", "another session_id"},
		"another image":          {r{Language: py, Image: "mine"}, r{Language: py, Image: "other"}, fault.Conflict, "runs in the image mine", "close_session"},
		"back to its own image":  {r{Language: py, Image: "mine"}, r{Language: py, Image: "python:latest"}, fault.Conflict, "runs in the image mine", ""},
		"an image later":         {r{Language: py}, r{Language: py, Image: "mine"}, fault.Conflict, "the image that python has by itself", ""},
		"another language":       {r{Language: py, Profile: "large"}, r{Language: "bash"}, fault.Conflict, "is a python session", "execute_python"},
		"no such profile":        {r{Language: py}, r{Language: py, Profile: "larg"}, fault.Invalid, `"larg" is not one of`, "large"},
		"no such image":          {r{Language: py}, r{Language: py, Image: "theirs"}, fault.NotFound, `"theirs"`, ""},
		"a name for one call":    {r{Language: py}, r{Language: py, Profile: "isolated"}, fault.Conflict, "has the profile session", ""},
		"too long for a profile": {r{Language: py}, r{Language: py, Timeout: 2 * time.Hour}, fault.Invalid, "between 1 and 3600", ""},
		"longer in another":      {r{Language: py, Profile: "large"}, r{Language: py, Timeout: 2 * time.Hour}, 0, "", ""},
		"not allowed": {r{Language: py, Profile: "large"}, r{Language: py, Permit: func(profile string) error {
			if profile != "large" {
				return nil
			}
			return errNoScope
		}}, fault.Internal, errNoScope.Error(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &sessions.FakeProvisioner{}
			m := sessions.NewTestManager(t, p, choices)
			tt.first.SessionID, tt.then.SessionID, tt.first.Code, tt.then.Code = "s", "s", "x", "x"
			e := sessions.StartCell(t, m, sessions.Alice, tt.first)
			sessions.WaitFor(t, e)
			again, err := m.Execute(t.Context(), sessions.Alice, tt.then)
			if tt.kind == fault.Internal && tt.says == "" {
				if err != nil || again.Choice() != e.Choice() || sessions.WaitFor(t, again).Status != "ok" || p.Specs()[0].ID == "" || len(p.Specs()) != 1 {
					t.Fatalf("it is %v, %d kernels, %v", again, len(p.Specs()), err)
				}
				return
			}
			if err == nil || fault.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || !strings.Contains(fault.Hint(err), tt.hint) {
				t.Errorf("got %v", fault.Text(err))
			}
		})
	}
}

// What is launched is what was chosen.
func TestTwoProfilesAtOnce(t *testing.T) {
	p := &sessions.FakeProvisioner{}
	m := sessions.NewTestManager(t, p, choices)
	for i, r := range []sessions.Request{
		{SessionID: "a", Language: "python", Code: "x"}, {SessionID: "b", Language: "python", Code: "x", Profile: "large", Image: "mine"},
	} {
		sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, r))
		spec := p.Specs()[i]
		want := []kernels.Spec{{Image: "python:latest", Limits: kernels.Limits{Memory: 2 << 30}},
			{Image: "derived-mine", Limits: kernels.Limits{Memory: 8 << 30}, Runtime: "runsc"}}[i]
		if spec.Image != want.Image || spec.Limits != want.Limits || spec.Runtime != want.Runtime {
			t.Errorf("%s runs as %+v", r.SessionID, spec)
		}
	}
	infos, err := m.List(t.Context(), sessions.Alice)
	if err != nil || len(infos) != 2 || infos[0].Choice != (sessions.Choice{Language: "python", Profile: "large", Image: "derived-mine"}) {
		t.Errorf("%+v, %v", infos, err)
	}
	if _, err := m.Execute(t.Context(), sessions.Alice, sessions.Request{Language: "python", Code: "x", Profile: "lage"}); fault.Hint(err) != "do you mean large?" {
		t.Errorf("a misspelt profile: %v", fault.Text(err))
	}
}

// Every later kernel of a session is made of the same, whatever became of the one before, and of the server.
func TestChoicesAreKept(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, l *life, m *sessions.Manager) *sessions.Manager{
		"restart": func(t *testing.T, _ *life, m *sessions.Manager) *sessions.Manager {
			if _, err := m.Restart(t.Context(), sessions.Alice, "s"); err != nil {
				t.Fatal(err)
			}
			return m
		},
		"death": func(_ *testing.T, l *life, m *sessions.Manager) *sessions.Manager {
			l.p.KillLast()
			return m
		},
		"close": func(t *testing.T, _ *life, m *sessions.Manager) *sessions.Manager {
			if err := m.Close(t.Context(), sessions.Alice, "s", sessions.CloseOptions{}); err != nil {
				t.Fatal(err)
			}
			return m
		},
		"server restart": func(_ *testing.T, l *life, _ *sessions.Manager) *sessions.Manager {
			l.kill()
			m, _ := l.start(choices)
			return m
		},
		"reboot": func(_ *testing.T, l *life, _ *sessions.Manager) *sessions.Manager {
			l.kill()
			l.p.Reboot()
			m, _ := l.start(choices)
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(choices)
				first := sessions.StartCell(t, m, sessions.Alice, sessions.Request{SessionID: "s", Language: "python", Code: "x", Profile: "large", Image: "mine"})
				sessions.WaitFor(t, first)
				m = happens(t, l, m)
				e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", "x"))
				sessions.WaitFor(t, e)
				if e.Choice() != first.Choice() {
					t.Errorf("it is made of %+v, and was of %+v", e.Choice(), first.Choice())
				}
				for _, spec := range l.p.Specs() {
					if spec.Image != "derived-mine" || spec.Runtime != "runsc" {
						t.Errorf("a kernel runs as %+v", spec)
					}
				}
				other := sessions.Python("s", "x")
				if other.Profile = "session"; name == "close" {
					other.SessionID = "other"
				}
				if _, err := m.Execute(t.Context(), sessions.Alice, other); (fault.KindOf(err) == fault.Conflict) != (name != "close") {
					t.Errorf("another profile: %v", err)
				}
				shutdown(t, m)
			})
		})
	}
}

// A session whose profile is no more says so, and is not made of another one behind anybody's back.
func TestProfileThatIsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(choices)
		large := sessions.Request{SessionID: "s", Language: "python", Code: "x", Profile: "large"}
		sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, large))
		l.kill()
		m, unknown := l.start(choices, func(c *sessions.Config) { delete(c.Profiles, "large") })
		if len(unknown) != 1 {
			t.Errorf("%v are to be stopped", unknown)
		}
		if _, err := m.Execute(t.Context(), sessions.Alice, sessions.Python("s", "x")); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), `"large"`) {
			t.Errorf("got %v", err)
		}
		r := sessions.Python("s", "x")
		r.Profile = "session"
		if e := sessions.StartCell(t, m, sessions.Alice, r); sessions.WaitFor(t, e).Status != "ok" || e.Choice().Profile != "session" {
			t.Errorf("it is made of %+v", e.Choice())
		}
		l.p.Reboot()
		shutdown(t, m)
	})
}

// A session for one call has a kernel of its own, and leaves nothing behind but what the cell produced.
func TestOnce(t *testing.T) {
	for name, code := range map[string]string{"ok": "print hello", "dies": "die", "ran too long": "sleep 1h"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t)
				m, _ := l.start(choices)
				r := sessions.Request{Language: "python", Code: code, Profile: "isolated", Timeout: time.Minute}
				e := sessions.StartCell(t, m, sessions.Alice, r)
				sessions.WaitFor(t, e)
				if infos, err := m.List(t.Context(), sessions.Alice); err != nil || len(infos) > 0 {
					t.Errorf("sessions at once: %v, %v", infos, err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if !e.Once() || l.p.Live() != 0 {
					t.Errorf("%d kernels are left", l.p.Live())
				}
				if left, _ := filepath.Glob(filepath.Join(l.dir, "workspaces", "*")); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
				if infos, err := m.List(t.Context(), sessions.Alice); err != nil || len(infos) > 0 {
					t.Errorf("sessions: %v, %v", infos, err)
				}
				kept, err := m.Execution(t.Context(), sessions.Alice, e.SessionID(), 1)
				if err != nil || !kept.Once() || sessions.TextOf(t, kept) != sessions.TextOf(t, e) {
					t.Errorf("the cell is %v, %v", kept, err)
				}
				for _, profile := range []string{"", "isolated"} {
					if _, err := m.Execute(t.Context(), sessions.Alice, sessions.Request{SessionID: e.SessionID(), Language: "python", Code: "x", Profile: profile}); err == nil ||
						!strings.Contains(fault.Text(err), "one call") {
						t.Errorf("again: %v", fault.Text(err))
					}
				}
				shutdown(t, m)
			})
		})
	}
}

// What a kernel for one call has written goes with it.
func TestOnceDeletesFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(choices)
		e := sessions.StartCell(t, m, sessions.Alice, sessions.Request{Language: "python", Code: "sleep 1h", Profile: "isolated", Timeout: time.Minute})
		synctest.Wait()
		folder := l.p.Specs()[0].Workspace
		if err := os.WriteFile(filepath.Join(folder, "a.csv"), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Execute(t.Context(), sessions.Alice, sessions.Python(e.SessionID(), "x")); fault.KindOf(err) != fault.Conflict {
			t.Errorf("a second cell: %v", err)
		}
		sessions.WaitFor(t, e)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := os.Lstat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the workspace: %v", err)
		}
		shutdown(t, m)
	})
}

// The pool has kernels of what is used, and no more of what nobody has used for long.
func TestPoolByChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &sessions.FakeProvisioner{}
		m := sessions.NewTestManager(t, p, choices, func(c *sessions.Config) { c.PoolSize = 1 })
		m.StartPool()
		time.Sleep(time.Minute)
		r := sessions.Request{Language: "python", Code: "x", Profile: "isolated"}
		sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, r)) // starts its own
		time.Sleep(time.Minute)
		if n := p.Live(); n != 2 {
			t.Errorf("%d kernels wait", n)
		}
		launched := len(p.Specs())
		e := sessions.StartCell(t, m, sessions.Alice, r)
		sessions.WaitFor(t, e)
		if n := len(p.Specs()); n != launched || p.Specs()[n-1].Limits.Memory != 512<<20 {
			t.Errorf("%d kernels were launched, the last as %+v", n-launched, p.Specs()[n-1])
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if n := p.Live(); n != 1 {
			t.Errorf("%d kernels wait", n)
		}
		shutdown(t, m)
	})
}

// unread is a store in which nothing can be looked up.
type unread struct{ sessions.Store }

func (unread) Session(context.Context, sessions.Owner, string) (sessions.StoredSession, error) {
	return sessions.StoredSession{}, fault.New(fault.Unavailable, "the history could not be read")
}

// While the history cannot be read, a session that there was is not made of something else, and new ones are made.
func TestChoiceThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t)
		m, _ := l.start(choices)
		large := sessions.Python("s", "x")
		large.Profile = "large"
		sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, large))
		if err := os.WriteFile(filepath.Join(l.p.Specs()[0].Workspace, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		shutdown(t, m)
		l.kill()
		m = l.begin(choices, func(c *sessions.Config) { c.Store = unread{c.Store} })
		if _, err := m.Execute(t.Context(), sessions.Alice, sessions.Python("s", "x")); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), `"s"`) {
			t.Errorf("got %v", err)
		}
		sessions.WaitFor(t, sessions.StartCell(t, m, sessions.Alice, sessions.Python("new", "x")))
		shutdown(t, m)
	})
}
