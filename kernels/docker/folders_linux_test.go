package docker

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cellblock/kernels/kernelstest"
)

// Folders of kernels that are gone do not pile up; those of others stay.
func TestFoldersOfKernelsThatAreGoneAreRemoved(t *testing.T) {
	s := settings[0]
	host := s.host(t)
	p := newProvisioner(t, Config{Host: host, RunDir: kernelstest.ShortDir(t)})
	for _, name := range []string{"deadsocket22", "nosocket2222", "listening222", "justmade2222", "not-a-kernel"} {
		dir := filepath.Join(p.cfg.RunDir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		switch name {
		case "listening222":
			listen(t, filepath.Join(dir, socketName))
		case "deadsocket22":
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName)})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			_ = l.Close()
		case "justmade2222":
			continue
		}
		old := time.Now().Add(-2 * folderGrace)
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(p.cfg.RunDir)
	var names []string
	for _, d := range left {
		names = append(names, d.Name())
	}
	if want := []string{"justmade2222", "listening222", "not-a-kernel"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v are left, want %v; %v", names, want, err)
	}
}
