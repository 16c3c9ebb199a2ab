package workspaces

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is nobody's and holds nothing goes; what is somebody's, new, in use or holds files stays.
func TestWorkspacesThatAreNobodysAreSwept(t *testing.T) {
	long, now := time.Now().Add(-time.Hour), time.Now()
	for name, tt := range map[string]struct {
		label, folder, file, known, used, young bool
		gone                                    bool
	}{
		"empty, without a label":           {folder: true, gone: true},
		"with files, without a label":      {folder: true, file: true},
		"empty, of a session not known":    {label: true, folder: true, gone: true},
		"with files, of one not known":     {label: true, folder: true, file: true},
		"empty, of a session that is":      {label: true, folder: true, known: true},
		"empty, of one that was just made": {label: true, folder: true, young: true},
		"empty, of one that is in use":     {label: true, folder: true, used: true},
		"a label alone":                    {label: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := New(Options{DataDir: t.TempDir(), UID: os.Getuid(), GID: os.Getgid()})
			if err != nil {
				t.Fatal(err)
			}
			const folder = "abcdefghijklmnop"
			k := Key{alice, "s"}
			dir := filepath.Join(w.root, folder)
			if tt.label {
				data, _ := json.Marshal(label{Owner: k.Owner, ID: k.ID, Language: "python"})
				write(t, w.labelPath(folder), 0)
				if err := os.WriteFile(w.labelPath(folder), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.folder {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if tt.file {
				write(t, filepath.Join(dir, "data"), 10)
			}
			if tt.used {
				if err := w.use(k, folder).RLock(); err != nil {
					t.Fatal(err)
				}
				defer w.used[k].Close()
			}
			when := long
			if tt.young {
				when = now
			}
			for _, path := range []string{dir, w.labelPath(folder), w.lock(folder).Path()} {
				_ = os.Chtimes(path, when, when) // those that are there
			}
			w.Sweep(now.Add(-10*time.Minute), func(asked Key) bool { return asked != k || tt.known })
			left, err := os.ReadDir(w.root)
			if err != nil || (len(left) == 0) != tt.gone {
				t.Errorf("there is %v, %v", left, err)
			}
		})
	}
}
