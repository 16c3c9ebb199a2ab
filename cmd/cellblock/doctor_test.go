package main

import (
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions/history"
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

// Doctor refuses a history that serve would refuse, and says what to do.
func TestDoctorKnowsAHistoryOfANewerProgram(t *testing.T) {
	dir := t.TempDir()
	store, err := history.Open(t.Context(), history.Options{Folder: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	d := doctor{cfg: &Config{DataDir: dir, RunDir: t.TempDir()}, looks: map[string]finding{}}
	if err := d.check(t.Context(), "data"); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, history.FileName))
	if err == nil {
		_, err = db.Exec("UPDATE schema_version SET version = version + 1")
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	d.looks = map[string]finding{}
	err = d.check(t.Context(), "data")
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fmt.Sprint(err), "from a newer cellblock") || !strings.Contains(fault.Hint(err), "use the newer cellblock again") {
		t.Errorf("%v\n%s", err, fault.Hint(err))
	}
}

// Doctor's exit status is that of a start: kernels alone are not enough.
func TestDoctorSaysWhatKeepsAServerFromStarting(t *testing.T) {
	for _, missing := range []string{"data", "tokens"} {
		d := doctor{cfg: &Config{Provisioner: "local"}, looks: map[string]finding{}}
		for _, name := range checkNames {
			d.looks[name] = finding{name: name}
		}
		if err := d.report(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		d.looks[missing] = finding{name: missing, err: fault.New(fault.Unavailable, "it is not there")}
		if err := d.report(t.Context(), io.Discard); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Hint(err), "arrow of "+missing) {
			t.Errorf("without %s: %v\n%s", missing, err, fault.Hint(err))
		}
	}
}

// Doctor asks an engine for its images once, whoever needs to know; and where the engine is named, it does not say that the sandbox will do.
func TestDoctorLooksOnce(t *testing.T) {
	var looks atomic.Int64
	host := emptyEngine(t, &looks)
	t.Setenv("DOCKER_HOST", host)
	for named, want := range map[string]string{"": "as DOCKER_HOST says they shall", host: "as docker.host says they shall"} {
		dir := t.TempDir()
		cfg, err := load(t, "languages: {pyton: {idle_timeout: 1m}}", nil, "--allow-unenforced", "--data-dir", dir, "--run-dir", dir, "--docker-host", named)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Shim = kernelstest.BuildShim(t)
		looks.Store(0)
		err = doctor{cfg: cfg, logger: slog.New(slog.DiscardHandler), looks: map[string]finding{}}.report(t.Context(), io.Discard)
		if n := looks.Load(); n != 1 {
			t.Errorf("%q: its images were looked at %d times", named, n)
		}
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), want) || !strings.Contains(fault.Hint(err), "--provisioner local") {
			t.Errorf("%v\n%s", err, fault.Hint(err))
		}
	}
}
