package docker

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/client"

	"cellblock/internal/fault"
)

// What engines say of a program's end, and of what is not its end.
func TestEventsOfPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		events string
		code   int
		err    string
	}{
		"docker":            {events: event("exec_die", `"execID":"run","exitCode":"5"`), code: 5},
		"podman":            {events: event("exec_died", `"containerExitCode":"6"`), code: 6},
		"podman that names": {events: event("exec_died", `"execID":"other","containerExitCode":"1"`) + event("exec_died", `"execID":"run","containerExitCode":"7"`), code: 7},
		"another before":    {events: event("exec_start: sh", `"execID":"run"`) + event("exec_die", `"execID":"other","exitCode":"1"`) + event("exec_die", `"execID":"run","exitCode":"0"`)},
		"container ended":   {events: event("exec_die", `"execID":"other","exitCode":"1"`) + event("die", `"exitCode":"137"`), err: "before the program"},
		"engine ended":      {err: "EOF"},
		"docker, no number": {events: event("exec_die", `"execID":"run"`), err: "invalid syntax"},
		"podman, no number": {events: event("exec_died", `"containerExitCode":""`), err: "invalid syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			e := engineOf(t, KindPodman, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/events") {
					_, _ = w.Write([]byte(c.events))
					return
				}
				_, _ = w.Write([]byte(`{"Running":true}`))
			})
			code, err := e.exitOf(t.Context(), "c", "run")
			if c.err == "" && (err != nil || code != c.code) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%d, %v", code, err)
			}
		})
	}
}

// Docker answers who asks for events before it listens for him: what it told meanwhile it has to be asked for. Podman listens first, and is
// asked for nothing older: its events of 4.3 would be another program's as well.
func TestEndBeforeTheEngineListens(t *testing.T) {
	for kind, past := range map[string]string{
		KindDocker: event("exec_die", `"execID":"earlier","exitCode":"1"`) + event("exec_die", `"execID":"run","exitCode":"5"`),
		KindPodman: event("exec_died", `"containerExitCode":"1"`),
	} {
		t.Run(kind, func(t *testing.T) {
			var asked atomic.Int32
			ended := make(chan struct{})
			e := engineOf(t, kind, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/events") {
					_, _ = w.Write([]byte(`{"Running":true}`))
					if asked.Add(1) == 2 {
						close(ended)
					}
					return
				}
				_ = http.NewResponseController(w).Flush()
				<-ended
				if r.URL.Query().Get("since") != "" {
					_, _ = w.Write([]byte(past))
				}
				if kind == KindPodman {
					_, _ = w.Write([]byte(event("exec_died", `"containerExitCode":"5"`)))
				}
			})
			if code, err := e.exitOf(t.Context(), "c", "run"); code != 5 || err != nil {
				t.Errorf("the program ended with %d, %v", code, err)
			}
		})
	}
}

// A program that has ended has, also where the engine tells nothing or stops telling.
func TestEndThatIsNotTold(t *testing.T) {
	for name, status := range map[string]int{"no events": http.StatusInternalServerError, "an end of them": http.StatusOK} {
		for _, later := range []string{`{"Running":false,"ExitCode":4}`, `{"Running":true}`} {
			t.Run(name+", then "+later, func(t *testing.T) {
				var asked atomic.Int32
				e := engineOf(t, KindPodman, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case strings.HasSuffix(r.URL.Path, "/events"):
						w.WriteHeader(status)
					case asked.Add(1) <= 2:
						_, _ = w.Write([]byte(`{"Running":true}`))
					default:
						_, _ = w.Write([]byte(later))
					}
				})
				code, err := e.exitOf(t.Context(), "c", "run")
				if ended := strings.Contains(later, "false"); ended != (err == nil) || ended && code != 4 {
					t.Errorf("%d, %v", code, err)
				}
				if err != nil && status == http.StatusOK && !strings.Contains(fault.Hint(err), "events_logger") {
					t.Errorf("an engine that never tells: %s", fault.Text(err))
				}
			})
		}
	}
}

func event(action, attributes string) string {
	return fmt.Sprintf(`{"Type":"container","Action":"%s","Actor":{"ID":"c","Attributes":{%s}}}`, action, attributes)
}

// engineOf is an engine of that kind which answers so, in JSON.
func engineOf(t *testing.T, kind string, answer http.HandlerFunc) *engine {
	t.Helper()
	host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	api, err := client.NewClientWithOpts(client.WithHost(host), client.WithVersion("1.41"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return &engine{api: api, kind: kind}
}
