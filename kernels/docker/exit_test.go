package docker

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// An engine that knows of the end only later is not asked again and again: it tells.
func TestEndOfAProgramIsTold(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, _ string) {
		e, err := p.engine(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		name := "cellblock-build-test-" + p.cfg.Installation
		config, host, err := p.buildContainer(t.Context(), e, Build{Base: testImage, Network: "none", Limit: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.api.ContainerCreate(t.Context(), config, host, nil, nil, name); err != nil {
			t.Fatal(err)
		}
		if err := e.api.ContainerStart(t.Context(), name, container.StartOptions{}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := remove(context.Background(), e, name); err != nil {
				t.Error(err)
			}
		}()
		begin := func(script string) string {
			run, err := e.api.ContainerExecCreate(t.Context(), name, container.ExecOptions{
				User: "0:0", Cmd: []string{"sh", "-c", script}, AttachStdout: true, AttachStderr: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			// Attached, as steps are: of others Podman 4.3 tells no end.
			stream, err := e.api.ContainerExecAttach(t.Context(), run.ID, container.ExecAttachOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stream.Close)
			return run.ID
		}
		if code, err := e.exitOf(t.Context(), name, begin("sleep 2; exit 3")); code != 3 || err != nil {
			t.Errorf("the program ended with %d, %v", code, err)
		}
		endless := begin("sleep 60")
		if running, ended, err := e.exited(t.Context(), endless); ended || err != nil {
			t.Errorf("%d, %v, %v", running, ended, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if code, err := e.exitOf(ctx, name, endless); err == nil {
			t.Errorf("a program that goes on ended with %d", code)
		}
	})
}

// What engines say of a program's end, and of what is not its end.
func TestEventsOfPrograms(t *testing.T) {
	event := func(action, attributes string) string {
		return fmt.Sprintf(`{"Type":"container","Action":"%s","Actor":{"ID":"c","Attributes":{%s}}}`, action, attributes)
	}
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
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/events") {
					_, _ = w.Write([]byte(c.events))
					return
				}
				_, _ = w.Write([]byte(`{"Running":true}`))
			}))
			defer s.Close()
			api, err := client.NewClientWithOpts(client.WithHost("tcp://"+s.Listener.Addr().String()), client.WithVersion("1.41"))
			if err != nil {
				t.Fatal(err)
			}
			defer api.Close()
			code, err := (&engine{api: api}).exitOf(t.Context(), "c", "run")
			if c.err == "" && (err != nil || code != c.code) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%d, %v", code, err)
			}
		})
	}
}
