package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/images"
)

// Doctor says what the log of a server says of settings for languages that do not run here.
func TestDoctorNamesAbsentLanguages(t *testing.T) {
	cfg, err := load(t, "languages: {pyton: {idle_timeout: 1m}, python: {max_life: 1h}, r: {max_life: 1h}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	notes := doctor{cfg: cfg}.absent(images.NewSet(images.Python(images.PythonInterpreter)))
	if len(notes) != 2 || !strings.HasPrefix(notes[0], "languages.pyton: ") || !strings.HasSuffix(notes[0], "Did you mean languages.python?") ||
		!strings.HasPrefix(notes[1], "languages.r: ") || !strings.Contains(notes[1], "Install it") {
		t.Errorf("%q", notes)
	}
}

// Doctor says of a data folder whether it could be made, and makes none.
func TestDoctorMakesNoDataFolder(t *testing.T) {
	cfg := &Config{DataDir: filepath.Join(t.TempDir(), "above", "data"), RunDir: t.TempDir()}
	f := doctor{cfg: cfg}.data(t.Context())
	if f.err != nil || !strings.Contains(f.found, "will make") {
		t.Errorf("%q, %v", f.found, f.err)
	}
	if _, err := os.Stat(filepath.Dir(cfg.DataDir)); !os.IsNotExist(err) {
		t.Errorf("the folder above it: %v", err)
	}
	if err := os.WriteFile(filepath.Dir(cfg.DataDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := (doctor{cfg: cfg}).data(t.Context()); f.err == nil {
		t.Error("a file in its way is no problem")
	}
}
