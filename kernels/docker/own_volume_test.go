//go:build linux

package docker

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
)

// ownEngine is an engine that has, or has not, the container in which the server runs.
type ownEngine struct {
	mounts []container.MountPoint // nil: there is no container of that name
	sees   bool                   // what the server writes
	fails  bool
	kept   int // volumes of workspaces
	driver string
}

func (o ownEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/") // behind the version
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	switch {
	case o.fails:
		http.Error(w, `{"message": "no"}`, http.StatusInternalServerError)
	case strings.HasPrefix(path, "containers/") && strings.HasSuffix(path, "/json") && o.mounts != nil:
		answer(container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: "own"}, Mounts: o.mounts})
	case path == "containers/own/archive" && o.sees:
		if _, err := os.Stat(r.URL.Query().Get("path")); err == nil {
			stat, _ := json.Marshal(container.PathStat{Name: "x"})
			w.Header().Set("X-Docker-Container-Path-Stat", base64.StdEncoding.EncodeToString(stat))
			return
		}
		w.WriteHeader(http.StatusNotFound)
	case path == "volumes":
		answer(volume.ListResponse{Volumes: slices.Repeat([]*volume.Volume{{Name: "w", Labels: map[string]string{labelWorkspace: "w"}}}, o.kept)})
	case strings.HasPrefix(path, "volumes/"):
		answer(volume.Volume{Driver: o.driver, Mountpoint: "/host/volumes/data"})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// A server in a container gets its kernels folders of its own volume, from an engine that has it and can. Where it is in none, or in one
// of another engine's, what is chosen stays.
func TestOwnVolume(t *testing.T) {
	dir := t.TempDir()
	data := func(kind mount.Type, at string, writable bool) []container.MountPoint {
		return []container.MountPoint{{Type: mount.TypeVolume, Name: "other", Destination: "/other", RW: true}, {Type: kind, Name: "data", Destination: at, RW: writable}}
	}
	desktop := system.Info{OperatingSystem: "Docker Desktop", DockerRootDir: "/nowhere"}
	for name, tt := range map[string]struct {
		engine ownEngine
		api    string
		info   system.Info
		cfg    Config
		files  Files
		source string
	}{
		"a folder of the volume":          {ownEngine{mounts: data(mount.TypeVolume, dir, true), sees: true}, "1.45", system.Info{}, Config{}, FilesShared, ""},
		"of an older engine":              {ownEngine{mounts: data(mount.TypeVolume, dir, true), sees: true, driver: "local"}, "1.44", system.Info{}, Config{}, FilesShared, "/host/volumes/data"},
		"of another driver":               {ownEngine{mounts: data(mount.TypeVolume, dir, true), sees: true, driver: "nfs"}, "1.44", system.Info{}, Config{}, FilesVolume, ""},
		"in Docker Desktop":               {ownEngine{mounts: data(mount.TypeVolume, filepath.Dir(dir), true), sees: true}, "1.47", desktop, Config{}, FilesShared, ""},
		"in an older Docker Desktop":      {ownEngine{mounts: data(mount.TypeVolume, dir, true), sees: true, driver: "local"}, "1.44", desktop, Config{}, FilesVolume, ""},
		"no volume":                       {ownEngine{mounts: data(mount.TypeBind, dir, true), sees: true}, "1.45", desktop, Config{}, FilesVolume, ""},
		"a volume elsewhere":              {ownEngine{mounts: data(mount.TypeVolume, "/elsewhere", true), sees: true}, "1.45", system.Info{}, Config{}, FilesVolume, ""},
		"a volume to read":                {ownEngine{mounts: data(mount.TypeVolume, dir, false), sees: true}, "1.45", system.Info{}, Config{}, FilesVolume, ""},
		"workspaces in volumes":           {ownEngine{mounts: data(mount.TypeVolume, dir, true), sees: true, kept: 1}, "1.45", system.Info{}, Config{}, FilesVolume, ""},
		"another container of that name":  {ownEngine{mounts: data(mount.TypeVolume, dir, true)}, "1.45", desktop, Config{}, FilesBind, ""},
		"in no container":                 {ownEngine{}, "1.45", desktop, Config{}, FilesBind, ""},
		"an engine on this system":        {ownEngine{fails: true}, "1.45", system.Info{DockerRootDir: dir}, Config{Carrier: CarrierStdio}, FilesBind, ""},
		"volumes are asked for":           {ownEngine{fails: true}, "1.45", system.Info{}, Config{Files: FilesVolume}, FilesVolume, ""},
		"a socket that both are said see": {ownEngine{fails: true}, "1.45", system.Info{}, Config{Carrier: CarrierSocket}, FilesBind, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Installation, tt.cfg.DataDir = "x", dir
			if tt.info.DockerRootDir == "" {
				tt.info.DockerRootDir = "/nowhere"
			}
			p, e := ownWorld(t, tt.engine, tt.api, tt.info, tt.cfg)
			if err := p.shareOwnVolume(t.Context(), e); err != nil || e.files != tt.files {
				t.Fatalf("%s: %v", e.files, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".seen-*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if e.files != FilesShared {
				return
			}
			if uid, gid := p.cfg.runAs(); e.user != (identity{uid: uid, gid: gid, user: user(uid, gid)}) {
				t.Errorf("kernels are %+v", e.user)
			}
			wantOwnFolders(t, e.own, dir, tt.source)
		})
	}
	p, e := ownWorld(t, ownEngine{fails: true}, "1.45", desktop, Config{Installation: "x", DataDir: dir})
	if err := p.shareOwnVolume(t.Context(), e); err == nil {
		t.Error("an engine that fails is taken for one without the container")
	}
}

func ownWorld(t *testing.T, o ownEngine, api string, info system.Info, cfg Config) (*Provisioner, *engine) {
	t.Helper()
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	c, err := client.NewClientWithOpts(client.WithHost("tcp"+strings.TrimPrefix(server.URL, "http")), client.WithVersion(api))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	e := &engine{api: c, host: "unix:///run/docker.sock", kind: KindDocker, info: info}
	e.choose(p.cfg)
	return p, e
}

// wantOwnFolders has folders of a volume mounted, and no others.
func wantOwnFolders(t *testing.T, v *ownVolume, dir, source string) {
	t.Helper()
	folder := filepath.Join(dir, "workspaces", "w")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	below, _ := filepath.Rel(v.at, folder)
	m, err := v.mount(folder)
	switch {
	case err != nil || m.Target != workspaceDir:
		t.Errorf("%+v %v", m, err)
	case source == "" && (m.Type != mount.TypeVolume || m.Source != "data" || m.VolumeOptions.Subpath != below || !m.VolumeOptions.NoCopy):
		t.Errorf("%+v %+v", m, m.VolumeOptions)
	case source != "" && (m.Type != mount.TypeBind || m.Source != source+"/"+below):
		t.Errorf("%+v", m)
	}
	for _, other := range []string{filepath.Join(dir, "workspaces", "missing"), filepath.Join(v.at, "..", "elsewhere"), "/"} {
		if m, err := v.mount(other); err == nil {
			t.Errorf("%s is mounted: %+v", other, m)
		}
	}
}

// The files in /etc are a container's own; those of other containers are elsewhere, on a host that has an engine.
func TestContainerID(t *testing.T) {
	own, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	mounts := "12 1 0:55 / /var/lib/docker/containers/" + other + "/mounts/shm rw - tmpfs shm rw\n"
	if m := containerID.FindStringSubmatch(mounts); m != nil {
		t.Errorf("a host is taken for the container %s", m[1])
	}
	mounts += "731 700 254:0 /docker/containers/" + own + "/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw\n"
	if m := containerID.FindStringSubmatch(mounts); m == nil || m[1] != own {
		t.Errorf("%q", m)
	}
}
