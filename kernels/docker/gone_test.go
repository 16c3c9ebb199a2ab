package docker

import (
	"context"
	"debug/elf"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// An engine that was there and has stopped is told in words, with what to do, whatever was wanted of it; not as what its socket said.
func TestEngineThatHasStopped(t *testing.T) {
	spec := kernels.Spec{ID: "kernel0001", Image: "i", Workspace: t.TempDir(), Kernelspec: kernels.Kernelspec{Argv: []string{"x"}}}
	shim := filepath.Join(t.TempDir(), "shim")
	writeFile(t, shim, program(t, elf.EM_X86_64))
	calls := map[string]func(context.Context, *Provisioner, *engine) error{
		"health": func(ctx context.Context, p *Provisioner, _ *engine) error { return p.Health(ctx) },
		"list": func(ctx context.Context, p *Provisioner, _ *engine) error {
			_, err := p.List(ctx)
			return err
		},
		"attach": func(ctx context.Context, p *Provisioner, _ *engine) error {
			_, err := p.Attach(ctx, newRef("kernel0001", "c"))
			return err
		},
		"launch": func(ctx context.Context, p *Provisioner, _ *engine) error {
			_, err := p.Launch(ctx, spec)
			return err
		},
		"a launch under way": func(ctx context.Context, p *Provisioner, e *engine) error {
			return (&launch{p: p, e: e, spec: spec}).explain(ctx, e.api.ContainerStart(ctx, "c", container.StartOptions{}))
		},
		"build": func(ctx context.Context, p *Provisioner, _ *engine) error {
			_, err := p.BuildImage(ctx, Build{Base: "i"}, io.Discard)
			return err
		},
		"an output": func(ctx context.Context, _ *Provisioner, e *engine) error {
			_, err := e.api.ContainerExecAttach(ctx, "run", container.ExecAttachOptions{})
			return engineError(e.host, err)
		},
		"Podman's info": func(ctx context.Context, _ *Provisioner, e *engine) error {
			_, err := askPodman(ctx, e.api)
			return engineError(e.host, err)
		},
		"a kernel over stdio": func(ctx context.Context, p *Provisioner, e *engine) error {
			_, err := (&handle{p: p, e: e, carrier: &stdioCarrier{api: e.api, container: "c"}, exited: make(chan struct{})}).Dial(ctx)
			return err
		},
	}
	for name, call := range calls {
		for how, stop := range map[string]func(*testing.T, string){"its socket is gone": removeSocket, "nobody listens": abandonSocket} {
			t.Run(name+", "+how, func(t *testing.T) {
				host := fakeEngine(t, "1.43", KindDocker, system.Info{Architecture: "x86_64"})
				p, err := New(Config{Host: host, Installation: "i", RunDir: t.TempDir(), Shim: shim, Carrier: CarrierStdio, Files: FilesBind, AllowUnenforced: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.Close() })
				e, err := p.engine(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				stop(t, strings.TrimPrefix(host, "unix://"))
				_ = e.api.Close() // the connections that are open still
				err = call(t.Context(), p, e)
				if err == nil || fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "the container engine at "+host+" does not answer") ||
					strings.Contains(err.Error(), "dial") || strings.Contains(err.Error(), "aemon") {
					t.Errorf("it says %v", err)
				}
				if hint := fault.Hint(err); !strings.Contains(hint, "Start Docker or Podman") || !strings.Contains(hint, "cellblock doctor") {
					t.Errorf("the hint is %q", hint)
				}
			})
		}
	}
}

func removeSocket(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// abandonSocket leaves a socket as a process does that was killed.
func abandonSocket(t *testing.T, path string) {
	t.Helper()
	removeSocket(t, path)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	_ = listener.Close()
}
