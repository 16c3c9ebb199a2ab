package docker

import (
	"context"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
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
		made, err := e.api.ContainerCreate(t.Context(), config, host, nil, nil, name)
		if err != nil {
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
				User: "0:0", Cmd: []string{"sh", "-c", "echo; " + script}, AttachStdout: true, AttachStderr: true,
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
			if _, err := stream.Reader.ReadByte(); err != nil { // it has begun: before that engines say that it does not run
				t.Fatal(err)
			}
			return run.ID
		}
		if code, err := e.exitOf(t.Context(), made.ID, begin("sleep 2; exit 3")); code != 3 || err != nil {
			t.Errorf("the program ended with %d, %v", code, err)
		}
		endless := begin("sleep 60")
		if running, ended, err := e.exited(t.Context(), endless); ended || err != nil {
			t.Errorf("%d, %v, %v", running, ended, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if code, err := e.exitOf(ctx, made.ID, endless); err == nil {
			t.Errorf("a program that goes on ended with %d", code)
		}
	})
}
