//go:build linux

package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/system"

	"cellblock/internal/fault"
)

// An image that was misspelt is led to the one that was meant.
func TestMissingImageNamesItsNeighbour(t *testing.T) {
	for name, want := range map[string]string{
		"cellblock-pyhton":        "Hint: Did you mean cellblock-python? Build it: ",
		"cellblock-pyhton:latest": "Hint: Did you mean cellblock-python? ",
		"team/tools:3":            "Hint: Build it: ",
	} {
		p := newProvisioner(t, Config{Host: fakeEngine(t, "1.43", KindDocker, system.Info{OSType: "linux", Architecture: "x86_64", NCPU: 3, MemTotal: 4 << 30}), AllowUnenforced: true})
		p.Require([]string{name})
		if err := p.Health(t.Context()); err == nil || !strings.Contains(fault.Text(err), want) {
			t.Errorf("%s: %v", name, fault.Text(err))
		}
	}
}

func TestReadArchive(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: "kernels/", Typeflag: tar.TypeDir},
		{Name: "kernels/a/kernel.json", Typeflag: tar.TypeReg, Size: 1},
		{Name: "kernels/a/logo.png", Typeflag: tar.TypeReg, Size: 1},
		{Name: "kernels/../../../etc/kernel.json", Typeflag: tar.TypeReg, Size: 1},
		{Name: "kernels/link/kernel.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "kernels/large/kernel.json", Typeflag: tar.TypeReg, Size: maxImageFile + 1},
		{Name: "kernels/z/kernel.json", Typeflag: tar.TypeReg, Size: 1},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	archive := b.Bytes()
	files := map[string][]byte{}
	if err := readArchive(bytes.NewReader(archive), "/usr/share", "kernel.json", files); err != nil && !errors.Is(err, tar.ErrInsecurePath) {
		t.Fatal(err)
	}
	want := []string{"/usr/share/etc/kernel.json", "/usr/share/kernels/a/kernel.json", "/usr/share/kernels/z/kernel.json"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if err := readArchive(bytes.NewReader(archive[:700]), "/", "kernel.json", files); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
}

// What a folder of an image holds is within bounds and below that folder, whoever made the image.
func FuzzReadArchive(f *testing.F) {
	for _, name := range []string{"kernels/a/kernel.json", "../../kernel.json", "/kernel.json", "kernels/ü/kernel.json"} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 2, Format: tar.FormatPAX, PAXRecords: map[string]string{"TEST.x": "y"}}); err != nil {
			f.Fatal(err)
		}
		if _, err := w.Write([]byte("{}")); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		files := map[string][]byte{}
		_ = readArchive(bytes.NewReader(archive), "/usr/share", "kernel.json", files)
		for name, data := range files {
			if !strings.HasPrefix(name, "/usr/share/") || path.Base(name) != "kernel.json" || path.Clean(name) != name || len(data) > maxImageFile {
				t.Errorf("%q of %d bytes", name, len(data))
			}
		}
		if len(files) > maxImageFiles {
			t.Errorf("%d files", len(files))
		}
	})
}

func TestImages(t *testing.T) {
	onEach(t, func(t *testing.T, _ setting, host string) {
		p := newProvisioner(t, Config{Host: host})
		all, err := p.Images(t.Context(), "cellblock.languages")
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(i Image) bool { return i.Name == "cellblock-python:latest" })
		if i < 0 || !strings.Contains(all[i].Labels["cellblock.languages"], "python") || all[i].ID == "" || all[i].Size < 1<<20 {
			t.Fatalf("%+v", all)
		}
		one, err := p.Image(t.Context(), all[i].Name)
		if err != nil || one.ID == "" || !slices.Contains(one.Env, "HOME=/home/cellblock") {
			t.Errorf("%+v, %v", one, err)
		}
		files, err := p.ReadImage(t.Context(), all[i].Name, "kernel.json", "/usr/share/jupyter/kernels", "/no/such/folder")
		if err != nil || len(files) != 1 || !strings.Contains(string(files["/usr/share/jupyter/kernels/python3/kernel.json"]), "ipykernel") {
			t.Errorf("%q, %v", files, err)
		}
		if _, err := p.ReadImage(t.Context(), "cellblock-absent:latest", "kernel.json", "/"); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "cellblock-absent") {
			t.Errorf("an image that is not there: %v", err)
		}
	})
}
