//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// engineWithVolumes is an engine that keeps the files of the workspace of dataFolder.
type engineWithVolumes struct {
	kept    []string
	entries []*tar.Header
	content string
	err     error
}

func (e *engineWithVolumes) Workspaces(context.Context) ([]string, error) { return e.kept, nil }
func (e *engineWithVolumes) Close() error                                 { return nil }

func (e *engineWithVolumes) CopyWorkspace(_ context.Context, _ string, add func(*tar.Header, io.Reader) error) (bool, error) {
	for _, h := range e.entries {
		if err := add(h, strings.NewReader(e.content)); err != nil {
			return true, err
		}
	}
	return true, e.err
}

// What an engine keeps of a workspace that has no files here is in the backup, as far as it can be read, and the rest is told.
func TestBackupOfWhatAnEngineKeeps(t *testing.T) {
	mine := filepath.Base(aWorkspace)
	file := func(name string, size int64) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o640}
	}
	deep := []*tar.Header{{Typeflag: tar.TypeDir, Name: "deep/", Mode: 0o755}, file("deep/x", 4), {Typeflag: tar.TypeSymlink, Name: "l", Linkname: "deep/x"}, {Typeflag: tar.TypeFifo, Name: "p"}}
	for name, tt := range map[string]struct {
		engine   *engineWithVolumes
		openErr  error
		want     string // of what is in the workspace
		said     []string
		unspoken string
	}{
		"its files":          {&engineWithVolumes{kept: []string{mine}, entries: deep, content: "text"}, nil, "deep deep/x l", []string{"container engine: 1, with 1 file (4 bytes)", "1 special file"}, "without files here"},
		"another's":          {&engineWithVolumes{kept: []string{"other"}, entries: deep, content: "text"}, nil, "", nil, "note:"},
		"a file that shrank": {&engineWithVolumes{kept: []string{mine}, entries: []*tar.Header{file("x", 9)}, content: "text"}, nil, "x", []string{"1 file written while copied"}, ""},
		"a way out":          {&engineWithVolumes{kept: []string{mine}, entries: []*tar.Header{file("../x", 4), file("y", 4)}, content: "text"}, nil, "y", []string{"1 path not in it"}, ""},
		// Users' code moves things about while they are read. What comes of that must not keep the rest from being copied or restored.
		"a folder that became a link": {&engineWithVolumes{kept: []string{mine}, entries: []*tar.Header{{Typeflag: tar.TypeSymlink, Name: "d", Linkname: "/etc"}, file("d/x", 4), {Typeflag: tar.TypeDir, Name: "d/e", Mode: 0o755}, file("d/e/x", 4), file("y", 4)}, content: "text"},
			nil, "d y", []string{"3 paths not in it", "container engine: 1, with 1 file"}, ""},
		"a name that comes twice": {&engineWithVolumes{kept: []string{mine}, entries: []*tar.Header{file("x", 4), file("x", 4), {Typeflag: tar.TypeDir, Name: "z/", Mode: 0o755}, file("z/x", 4), {Typeflag: tar.TypeDir, Name: "z", Mode: 0o755}, file("z", 4)}, content: "text"},
			nil, "x z z/x", []string{"3 paths not in it"}, ""},
		"half of it":     {&engineWithVolumes{kept: []string{mine}, entries: deep[:2], content: "text", err: errors.New("it went away")}, nil, "deep deep/x", []string{"or not whole: it went away"}, ""},
		"no engine":      {nil, errors.New("it does not answer"), "", []string{"volumes are not in it, or not whole: it does not answer"}, ""},
		"none keeps any": {nil, nil, "", nil, "note:"},
	} {
		for _, dest := range []string{"copy", "copy.tar"} {
			t.Run(name+" in "+dest, func(t *testing.T) {
				data := dataFolder(t)
				ws := filepath.Join(data, aWorkspace)
				for _, closed := range []string{"closed", "fixed"} {
					_ = os.Chmod(filepath.Join(ws, closed), 0o700)
				}
				if err := errors.Join(os.RemoveAll(ws), os.Mkdir(ws, 0o700)); err != nil {
					t.Fatal(err)
				}
				folder, said := backedUp(t, data, dest, func(b *backup) {
					b.openVolumes = func(context.Context) (volumes, error) {
						if tt.engine == nil {
							return nil, tt.openErr
						}
						return tt.engine, nil
					}
				})
				if got := strings.Join(strings.Fields(strings.ReplaceAll(listing(t, filepath.Join(folder, aWorkspace)), "\n", "")), " "); got != tt.want {
					t.Errorf("in the workspace: %q, want %q", got, tt.want)
				}
				for _, want := range tt.said {
					if !strings.Contains(said, want) {
						t.Errorf("%q is not said:\n%s", want, said)
					}
				}
				if tt.unspoken != "" && strings.Contains(said, tt.unspoken) {
					t.Errorf("%q is said:\n%s", tt.unspoken, said)
				}
			})
		}
	}
}

// A disk that is full ends the backup, wherever its content comes from.
func TestBackupOfVolumesWithoutRoom(t *testing.T) {
	data := dataFolder(t)
	b := backup{data: data, report: new(bytes.Buffer), out: fullArchive{}, openVolumes: func(context.Context) (volumes, error) {
		return &engineWithVolumes{kept: []string{filepath.Base(aWorkspace)}, entries: []*tar.Header{{Typeflag: tar.TypeDir, Name: "d"}}}, nil
	}}
	if err := b.copyVolumes(t.Context(), []string{aWorkspace}); !errors.Is(err, errFull) {
		t.Errorf("%v", fault.Text(err))
	}
}

var errFull = errors.New("full")

// fullArchive is on a disk that is full.
type fullArchive struct{ archive }

func (fullArchive) add(*tar.Header, io.Reader) error { return errFull }
