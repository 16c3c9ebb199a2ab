package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
