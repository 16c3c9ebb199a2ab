//go:build linux

package docker

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"

	"cellblock/kernels/kernelstest"
)

// The engine is asked again whenever its list of names is another one, or none that tells.
func TestKnownImages(t *testing.T) {
	list := filepath.Join(t.TempDir(), "repositories.json")
	old := time.Now().Add(-time.Hour)
	write := func(text string, at time.Time) { // as engines do it
		t.Helper()
		if err := errors.Join(os.WriteFile(list+".tmp", []byte(text), 0o600), os.Chtimes(list+".tmp", at, at), os.Rename(list+".tmp", list)); err != nil {
			t.Fatal(err)
		}
	}
	down := errors.New("the engine does not answer")
	for name, tt := range map[string]struct {
		text  string
		at    time.Time
		fails error
		then  func()
		want  int // how often the engine is asked
	}{
		"unchanged":            {text: "sha256:1a", at: old, want: 1},
		"another image's name": {text: "sha256:1a", at: old, then: func() { write("sha256:2b", old) }, want: 3},
		"another name":         {text: "sha256:1a", at: old, then: func() { write("sha256:1a, sha256:2b", old) }, want: 2},
		"written just now":     {text: "sha256:1a", at: time.Now().Add(time.Hour), want: 3},
		"gone":                 {text: "sha256:1a", at: old, then: func() { _ = os.Remove(list) }, want: 3},
		"another engine's":     {text: "sha256:2b", at: old, want: 3},
		"very large":           {text: "sha256:1a" + strings.Repeat(" ", maxImageList), at: old, want: 3},
		"no answer":            {text: "sha256:1a", at: old, fails: down, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			write(tt.text, tt.at)
			k, asked := knownImages{list: list}, 0
			for round := range 3 {
				if id, err := k.id("python", func() (string, error) { asked++; return "sha256:1a", tt.fails }); id != "sha256:1a" || err != tt.fails {
					t.Errorf("%q, %v", id, err)
				}
				if tt.then != nil && round == 0 {
					tt.then()
				}
			}
			if asked != tt.want {
				t.Errorf("asked %d times, want %d", asked, tt.want)
			}
		})
	}
}

func TestImageListIsOfAnEngineHere(t *testing.T) {
	here := t.TempDir()
	for name, tt := range map[string]struct {
		kind, host string
		info       system.Info
		want       string
	}{
		"docker":            {KindDocker, "unix:///d", system.Info{Driver: "overlay2"}, "image/overlay2/repositories.json"},
		"podman":            {KindPodman, "unix:///p", system.Info{Driver: "overlay"}, "overlay-images/images.json"},
		"elsewhere":         {KindDocker, "tcp://10.0.0.1:2376", system.Info{Driver: "overlay2"}, ""},
		"containerd's":      {KindDocker, "unix:///d", system.Info{Driver: "overlayfs", DriverStatus: [][2]string{{"driver-type", "io.containerd.snapshotter.v1"}}}, ""},
		"of no driver":      {KindDocker, "unix:///d", system.Info{}, ""},
		"a virtual machine": {KindDocker, "unix:///d", system.Info{Driver: "overlay2", OperatingSystem: "Docker Desktop"}, ""},
	} {
		tt.info.DockerRootDir = here
		want := ""
		if tt.want != "" {
			want = filepath.Join(here, tt.want)
		}
		if got := (&engine{kind: tt.kind, host: tt.host, info: tt.info}).imageList(); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A name that was taken away stands for nothing in the very next question, also where its image was known without asking.
func TestImageIDIsOfNow(t *testing.T) {
	onEach(t, func(t *testing.T, _ setting, host string) {
		p, ctx := newProvisioner(t, Config{Host: host}), t.Context()
		want, err := p.ImageID(ctx, testImage)
		if err != nil {
			t.Fatal(err)
		}
		e := p.known()
		name := "cellblock-test-" + strconv.FormatUint(rand.Uint64(), 36) + ":now"
		take := func() { _, _ = e.api.ImageRemove(context.WithoutCancel(ctx), name, image.RemoveOptions{}) }
		defer take()
		_, err = os.Stat(e.images.list)
		kernelstest.Need(t, err == nil, "an engine whose list of images can be seen")
		for _, known := range []bool{false, true} {
			if err := e.api.ImageTag(ctx, testImage, name); err != nil {
				t.Fatal(err)
			}
			asked := func() (is bool) {
				if id, err := p.ImageID(ctx, name); err != nil || id != want {
					t.Fatalf("%q, %v; want %q", id, err, want)
				}
				_, is = e.images.known(name, e.images.look())
				return is
			}
			for until := time.Now().Add(time.Minute); !asked() && known; time.Sleep(100 * time.Millisecond) { // its list must be old enough
				if time.Now().After(until) {
					t.Fatalf("it is never known without asking: %s", e.images.list)
				}
			}
			take()
			if id, err := p.ImageID(ctx, name); err == nil {
				t.Errorf("a name that was taken away stands for %q", id)
			}
		}
	})
}
