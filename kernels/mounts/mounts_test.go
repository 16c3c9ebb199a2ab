package mounts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// tree makes a root with a folder, a file and links, beside a folder that is not to be seen.
func tree(t *testing.T) (root, outside string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside = filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	for _, folder := range []string{filepath.Join(root, "data", "sub"), filepath.Join(dir, "roots"), outside} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"inside": "data", "escape": outside, "up": "../outside", "self": "self"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root, outside
}

func TestResolve(t *testing.T) {
	root, outside := tree(t)
	for name, tt := range map[string]struct {
		source, target string
		real, says     string
	}{
		"a folder":              {root + "/data", "/data", root + "/data", ""},
		"the root itself":       {root, "/mnt/all", root, ""},
		"a link inside":         {root + "/inside/sub", "/data", root + "/data/sub", ""},
		"a link out":            {root + "/escape", "/data", "", "which leads to " + outside},
		"a relative link out":   {root + "/up", "/data", "", "below none"},
		"a link to itself":      {root + "/self", "/data", "", "cannot be mounted"},
		"beside the root":       {outside, "/data", "", "below none"},
		"a name that begins so": {root + "s", "/data", "", "below none"},
		"dots":                  {root + "/data/../../outside", "/data", "", "shortest form"},
		"relative":              {"data", "/data", "", "shortest form"},
		"a file":                {root + "/file", "/data", "", "not a folder"},
		"nothing":               {root + "/none", "/data", "", "cannot be mounted"},
		"options":               {root + "/data,rw", "/data", "", "shortest form"},
		"over the workspace":    {root, "/workspace", "", "/workspace"},
		"into the workspace":    {root, "/workspace/data", "", "/workspace/data"},
		"over the root":         {root, "/", "", `"/"`},
		"over /tmp":             {root, "/tmp", "", "/tmp"},
		"into /proc":            {root, "/proc/1", "", "/proc/1"},
		"over the libraries":    {root, "/usr/lib", "", "/usr/lib"},
		"above the home folder": {root, "/home", "", "/home"},
		"target with dots":      {root, "/data/../etc", "", "/data/../etc"},
		"target with a slash":   {root, "/data/", "", "/data/"},
		"no target":             {root, "", "", `""`},
		"relative target":       {root, "data", "", `"data"`},
		"target with options":   {root, "/data:rw", "", "/data:rw"},
		"home of somebody else": {root, "/home/data", root, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve([]string{filepath.Join(filepath.Dir(root), "absent"), root}, []kernels.Mount{{Source: tt.source, Target: tt.target, Writable: true}})
			if tt.says == "" {
				if err != nil || len(got) != 1 || got[0] != (kernels.Mount{Source: tt.real, Target: tt.target, Writable: true}) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.says) || fault.Hint(err) == "" && !strings.Contains(name, "itself") {
				t.Errorf("got %v, %v", got, fault.Text(err))
			}
		})
	}
}

func TestResolveSeveral(t *testing.T) {
	root, _ := tree(t)
	if _, err := Resolve(nil, []kernels.Mount{{Source: root, Target: "/data"}}); err == nil || !strings.Contains(fault.Hint(err), "mount_roots: ["+root+"]") {
		t.Errorf("without roots: %v", fault.Text(err))
	}
	for _, second := range []string{"/data", "/data/sub"} {
		if _, err := Resolve([]string{root}, []kernels.Mount{{Source: root, Target: "/data"}, {Source: root, Target: second}}); err == nil {
			t.Errorf("/data and %s", second)
		}
	}
	// A root may be a link itself.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	if got, err := Resolve([]string{link}, []kernels.Mount{{Source: link + "/data", Target: "/data"}}); err != nil || got[0].Source != root+"/data" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestBelow(t *testing.T) {
	root, outside := tree(t)
	writable := []kernels.Mount{{Source: root + "/data", Writable: true}}
	for source, fine := range map[string]bool{root + "/data": true, root: true, outside: true, root + "/data/sub": false, root + "/inside/sub": false} {
		if err := Below([]kernels.Mount{{Source: source}}, writable); (err == nil) != fine {
			t.Errorf("%s: %v", source, err)
		}
	}
}
