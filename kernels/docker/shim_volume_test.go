//go:build linux

package docker

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"cellblock/internal/fault"
)

// Of the volumes of other builds only those go that are old, and that the engine lets go.
func TestOldShimVolumesAreRemoved(t *testing.T) {
	var removed []string
	at := func(age time.Duration) string { return time.Now().Add(-age).Format(time.RFC3339) }
	shim, prefix := map[string]string{labelShim: "x"}, shimVolumePrefix
	list := volume.ListResponse{Volumes: []*volume.Volume{
		{Name: prefix + "own", CreatedAt: at(1000 * time.Hour), Labels: shim}, {Name: prefix + "old", CreatedAt: at(1000 * time.Hour), Labels: shim},
		{Name: prefix + "used", CreatedAt: at(1000 * time.Hour), Labels: shim}, {Name: prefix + "older", CreatedAt: at(25 * time.Hour), Labels: shim},
		{Name: prefix + "new", CreatedAt: at(time.Hour), Labels: shim}, {Name: prefix + "ageless", CreatedAt: "yesterday", Labels: shim},
		{Name: prefix + "unlabelled", CreatedAt: at(1000 * time.Hour)}, {Name: "data-of-" + prefix + "x", CreatedAt: at(1000 * time.Hour)},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{version}/volumes", func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("filters"); got != `{"name":{"`+prefix+`":true}}` {
			t.Errorf("filters %s", got)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("DELETE /{version}/volumes/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("force") == "1" {
			t.Errorf("%s is removed by force", r.PathValue("name"))
		}
		if r.PathValue("name") == prefix+"used" {
			w.WriteHeader(http.StatusConflict)
			return
		}
		removed = append(removed, r.PathValue("name"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") })
	p, err := New(Config{Host: serve(t, mux), Shim: buildStandin(t), Installation: "test", RunDir: shortDir(t)})
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	defer p.Close()
	api, err := connect(p.cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	p.sweepShimVolumes(t.Context(), &engine{api: api, host: p.cfg.Host}, prefix+"own")
	if !slices.Equal(removed, []string{prefix + "old", prefix + "older", prefix + "unlabelled"}) {
		t.Errorf("removed are %v", removed)
	}
}

// A volume that another server has removed is made again, also where the engine has made an empty one in its place.
func TestShimVolumeThatIsGone(t *testing.T) {
	program, err := os.ReadFile(buildStandin(t))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "shim") // nobody else's volume
	if err := os.WriteFile(own, append(bytes.Clone(program), rand.Text()...), 0o755); err != nil {
		t.Fatal(err)
	}
	s := setting{"", "CELLBLOCK_TEST_DOCKER_HOST", CarrierStdio, FilesVolume}
	p := newProvisioner(t, Config{Host: s.host(t), Carrier: s.carrier, Files: s.files, Shim: own})
	spec := newSpec(t, p, "sleep 0.5")
	runOnce(t, p, spec)
	for _, empty := range []bool{false, true} {
		if err := p.known().api.VolumeRemove(t.Context(), p.shimVolume, false); err != nil {
			t.Fatal(err)
		}
		if empty {
			options := volume.CreateOptions{Name: p.shimVolume, Labels: map[string]string{labelInstallation: p.cfg.Installation}} // for the clean-up
			if _, err := p.known().api.VolumeCreate(t.Context(), options); err != nil {
				t.Fatal(err)
			}
		}
		if code := runOnce(t, p, spec); code != 0 {
			t.Errorf("empty %v: exit code %d", empty, code)
		}
	}
}
