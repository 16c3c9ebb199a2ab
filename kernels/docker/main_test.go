//go:build linux

package docker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"go.uber.org/goleak"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// testImage is what scripts/image.sh builds.
const testImage = "cellblock-python:latest"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		kernelstest.RemoveShim()
		if standinDir != "" {
			_ = os.RemoveAll(standinDir)
		}
		os.Exit(code)
	}))
}

// setting is an engine and a carrier to test on.
type setting struct {
	name    string
	env     string // the variable that names the engine
	carrier Carrier
	files   Files
}

var settings = []setting{
	{"docker-socket", "CELLBLOCK_TEST_DOCKER_HOST", CarrierSocket, FilesBind},
	{"docker-stdio", "CELLBLOCK_TEST_DOCKER_HOST", CarrierStdio, FilesBind},
	{"docker-volumes", "CELLBLOCK_TEST_DOCKER_HOST", CarrierStdio, FilesVolume},
	{"podman", "CELLBLOCK_TEST_PODMAN_HOST", CarrierSocket, FilesBind},
}

// healthy remembers what engines have said to setting.host: Podman takes half a second of processor time for it.
var healthy sync.Map

// host returns the engine's address, and skips the test where there is none or it lacks the image.
func (s setting) host(t testing.TB) string {
	t.Helper()
	host := os.Getenv(s.env)
	kernelstest.Need(t, host != "", "an engine in "+s.env)
	if _, ok := healthy.Load(host); !ok {
		p := newProvisioner(t, Config{Host: host, Images: []string{testImage}})
		err := p.Health(t.Context())
		kernelstest.Need(t, err == nil, fmt.Sprintf("%s: %v", s.env, err))
		healthy.Store(host, true)
	}
	return host
}

// onEach runs f on every setting of which the engine is there, side by side: mostly it waits. Nothing may come behind it in a
// test.
func onEach(t *testing.T, f func(t *testing.T, s setting, host string)) {
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			f(t, s, s.host(t))
		})
	}
}

// newProvisioner returns a provisioner with the stand-in for a shim. What it leaves at the end of the test fails it.
func newProvisioner(t testing.TB, cfg Config) *Provisioner {
	t.Helper()
	if cfg.Installation == "" {
		cfg.Installation = fmt.Sprintf("test-%d", rand.Uint64())
	}
	if cfg.RunDir == "" {
		cfg.RunDir = kernelstest.ShortDir(t)
	}
	if cfg.Shim == "" {
		cfg.Shim = buildStandin(t)
	}
	// For an engine without any say over cgroups, rootless Podman on cgroup v1: what else it does can be tested.
	cfg.AllowUnenforced = cfg.AllowUnenforced || os.Getenv("CELLBLOCK_TEST_ALLOW_UNENFORCED") == "1"
	p, err := New(cfg)
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	t.Cleanup(func() {
		if e := p.known(); e != nil {
			clear(t, e, p.cfg.Installation)
		}
		_ = p.Close()
	})
	return p
}

// clear removes an installation's containers and volumes after a test.
func clear(t testing.TB, e *engine, installation string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range containersOf(t, e, installation) {
		_ = remove(ctx, e, name)
	}
	list, err := e.api.VolumeList(ctx, volumeFilter(installation))
	if err != nil {
		return
	}
	for _, v := range list.Volumes {
		_ = e.api.VolumeRemove(ctx, v.Name, true)
	}
}

// containersOf lists an installation's containers, whether they run or not.
func containersOf(t testing.TB, e *engine, installation string) (names []string) {
	t.Helper()
	list, err := e.api.ContainerList(context.Background(), container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", labelInstallation+"="+installation))})
	if err != nil {
		return []string{err.Error()} // Podman's list fails while one of its containers is half removed
	}
	for _, c := range list {
		names = append(names, c.ID)
	}
	return names
}

var (
	standinDir string
	standin    = sync.OnceValues(func() (string, error) {
		var err error
		if standinDir, err = os.MkdirTemp("", "standin"); err != nil {
			return "", err
		}
		path := filepath.Join(standinDir, "standin")
		build := exec.Command("go", "build", "-o", path, "./testdata/standin")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return path, nil
	})
)

func buildStandin(t testing.TB) string {
	t.Helper()
	path, err := standin()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// newSpec is a kernel that is a shell script; what it prints is in the workspace's file "output" once it has ended.
func newSpec(t testing.TB, p *Provisioner, script string) kernels.Spec {
	return kernels.Spec{
		ID: fmt.Sprintf("k%016x", rand.Uint64()), Image: testImage, Workspace: kernelstest.Workspace(t, p),
		Kernelspec: kernels.Kernelspec{Name: "sh", Language: "sh", Argv: []string{"/bin/sh", "-c", script}},
		Limits:     kernels.Limits{Memory: 256 << 20, CPUs: 0.5, PIDs: 64, FileSize: 32 << 20, Tmp: 16 << 20, Files: 512},
	}
}

const forever = "exec sleep 1000"

// launch launches and stops at the end of the test.
func launchKernel(t testing.TB, p *Provisioner, spec kernels.Spec) kernels.Handle {
	t.Helper()
	h, err := p.Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	t.Cleanup(func() {
		_ = h.Stop(context.Background(), 0)
		_ = h.Close()
	})
	return h
}

// awaitExit waits for a container's end.
func awaitExit(t testing.TB, h kernels.Handle, within time.Duration) kernels.ExitStatus {
	t.Helper()
	select {
	case <-h.Exited():
		return h.Status()
	case <-time.After(max(within, 100*time.Millisecond)):
		t.Fatalf("not noticed within %v", within)
		panic("unreachable")
	}
}

// greet opens a connection and exchanges greetings with the shim.
func greet(t testing.TB, h kernels.Handle) stream.Welcome {
	t.Helper()
	conn, err := h.Dial(t.Context())
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if err := stream.NewWriter(conn).WriteJSON(stream.FrameHello, stream.Hello{Version: stream.Version}); err != nil {
		t.Fatal(err)
	}
	frame, err := stream.NewReader(conn, maxWelcome).ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	var w stream.Welcome
	if err := stream.DecodeJSON(frame.Payload, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// nothingLeft fails the test unless the installation's containers and run folders are gone in time.
func nothingLeft(t *testing.T, p *Provisioner, within time.Duration) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		left := containersOf(t, p.known(), p.cfg.Installation)
		folders, _ := os.ReadDir(p.cfg.RunDir)
		if len(left) == 0 && len(folders) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: containers %s, folders %v", strings.Join(left, " "), folders)
		}
		time.Sleep(50 * time.Millisecond) // an engine does not say when a container is gone for all of it
	}
}
