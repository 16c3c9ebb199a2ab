package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

// packageIndex serves wheels as the Simple Repository API has them (PEP 503). Whoever asks for "cbslow" gets no answer before the test ends.
func packageIndex(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	files, links := map[string][]byte{}, map[string]string{}
	for version, answer := range map[string]int{"1.0": 41, "2.0": 42} {
		file := "cbtiny-" + version + "-py3-none-any.whl"
		files[file] = wheel(t, "cbtiny", version, fmt.Sprintf("answer = %d\n", answer))
		links["cbtiny"] += fmt.Sprintf(`<a href="/files/%s#sha256=%x">%s</a>`, file, sha256.Sum256(files[file]), file)
	}
	slow := make(chan struct{}, 100)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /simple/{name}/", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if name == "cbslow" {
			slow <- struct{}{}
			<-r.Context().Done()
			return
		}
		if links[name] == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!DOCTYPE html><html><body>%s</body></html>", links[name])
	})
	mux.HandleFunc("GET /files/{file}", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(files[r.PathValue("file")]) })
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + "/simple", slow
}

// imagesWorld is a server whose builds get packages from an index of the test's own.
type imagesWorld struct {
	dataDir, runtime, config string
	asked                    <-chan struct{}
	engine                   *client.Client
}

func newImagesWorld(t *testing.T, runtime string) *imagesWorld {
	t.Helper()
	w := &imagesWorld{dataDir: t.TempDir(), runtime: runtime, config: filepath.Join(t.TempDir(), "cellblock.yaml")}
	host := os.Getenv(map[string]string{"docker": "CELLBLOCK_TEST_DOCKER_HOST", "podman": "CELLBLOCK_TEST_PODMAN_HOST"}[runtime])
	kernelstest.Need(t, host != "", "an engine for "+runtime)
	var err error
	if w.engine, err = client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.removeImages(t); _ = w.engine.Close() })
	index, asked := packageIndex(t)
	w.asked = asked
	// The index is on this machine's loopback, so builds have its network; what the machine's own tools trust, they trust.
	text := fmt.Sprintf("toolsets: [execute, sessions, files, images]\npool_size: 0\nimages_build: {pip_index_url: %q, network: host, ca_file: %q}\n",
		index, os.Getenv("NODE_EXTRA_CA_CERTS"))
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *imagesWorld) start(t *testing.T) *rig.Server {
	t.Helper()
	return startIn(t, w.dataDir, w.runtime, "--config", w.config)
}

// mine are what the engine has of this test's installation: its derived images' names, and its containers that build.
func (w *imagesWorld) mine(t *testing.T) (images []string, builds int) {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(w.dataDir, "installation"))
	if err != nil {
		t.Fatal(err)
	}
	installation := strings.TrimSpace(string(id))
	list, err := w.engine.ImageList(context.Background(), image.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "cellblock.derived="+installation))})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		images = append(images, i.RepoTags...)
	}
	running, err := w.engine.ContainerList(context.Background(), container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", "cellblock.installation="+installation), filters.Arg("name", "cellblock-build-"))})
	if err != nil {
		t.Fatal(err)
	}
	return images, len(running)
}

func (w *imagesWorld) removeImages(t *testing.T) {
	names, _ := w.mine(t)
	for _, name := range names {
		if _, err := w.engine.ImageRemove(context.Background(), name, image.RemoveOptions{Force: true}); err != nil {
			t.Logf("removing %s: %v", name, err)
		}
	}
}

// nothingNew waits until no build goes on, and fails the test if there are other images than before.
func (w *imagesWorld) nothingNew(t *testing.T, before []string) {
	t.Helper()
	waitFor(t, func() bool { _, builds := w.mine(t); return builds == 0 })
	if images, _ := w.mine(t); len(images) != len(before) {
		t.Errorf("images %q, before %q", images, before)
	}
}

// engines runs a test on each engine; in the host's sandbox there are no images.
func engines(t *testing.T, test func(t *testing.T, w *imagesWorld)) {
	for _, runtime := range []string{"docker", "podman"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			test(t, newImagesWorld(t, runtime))
		})
	}
}

// An image with a package of pip, and all that can be done with it.
func TestImageWithPip(t *testing.T) {
	engines(t, func(t *testing.T, w *imagesWorld) {
		s := w.start(t)
		alice, bob := s.Connect(t, s.Token(t), false), s.Connect(t, s.Token(t, "--subject", "bob"), false)
		var log strings.Builder
		made, err := alice.Call(t.Context(), "create_image", map[string]any{"name": "ml", "packages": []string{"CBTiny<2"}}, func(m string) { log.WriteString(m) })
		if err != nil || made.IsError {
			t.Fatalf("%+v, %v", made, err)
		}
		wantText(t, made.Text, "Image ml is ready (built in", "pip:cbtiny<2")
		wantText(t, log.String(), "Collecting cbtiny<2", "Successfully installed cbtiny-1.0")
		const use = "import cbtiny, os; print('answer', cbtiny.answer, os.getuid() != 0)"
		in := func(c *rig.Client, session, image, code string) rig.Result {
			return call(t, c, "execute_python", map[string]any{"code": code, "session_id": session, "image": image})
		}
		wantText(t, in(alice, "a", "ml", use).Text, "answer 41 True")
		if r := in(bob, "b", "ml", use); !r.IsError || !strings.Contains(r.Text, "you may use") {
			t.Errorf("bob runs in alice's image: %s", r.Text)
		}
		wantText(t, call(t, bob, "create_image", map[string]any{"name": "mine", "packages": []string{"cbtiny <2"}}).Text, "Image mine is ready (built before)")
		wantText(t, in(bob, "b", "mine", use).Text, "answer 41 True")
		if list := call(t, bob, "list_images", map[string]any{}).Text; strings.Contains(list, "ml ·") || !strings.Contains(list, "mine · python · with pip:cbtiny<2") {
			t.Errorf("bob's images: %s", list)
		}

		before, _ := w.mine(t)
		broken := call(t, alice, "create_image", map[string]any{"name": "broken", "packages": []string{"cbtiny", "nosuch"}})
		wantText(t, broken.Text, "ERROR: No matching distribution found for nosuch", "check name and version")
		w.nothingNew(t, before)
		w.cancelled(t, alice)
		w.nothingNew(t, before)

		python(t, alice, "work", "x = 1; open('kept', 'w').write('here')")
		there := call(t, alice, "install_package", map[string]any{"session_id": "work", "packages": []string{"numpy", "apt:coreutils"}, "move": true})
		wantText(t, there.Text, "session work has apt:coreutils, pip:numpy already: nothing was built")
		wantText(t, python(t, alice, "work", "x").Text, "1")
		w.nothingNew(t, before)
		moved := call(t, alice, "install_package", map[string]any{"session_id": "work", "packages": []string{"cbtiny"}, "move": true})
		wantText(t, moved.Text, "Session work now runs in it", "variables were saved", "They are back on a new kernel, generation 2")
		next := python(t, alice, "work", "import cbtiny; print(cbtiny.answer, open('kept').read(), 'x' in globals())").Text
		wantText(t, next, "42 here True")
		if strings.Contains(next, "session-work") {
			t.Errorf("what install_package has said is said again: %s", next)
		}

		s.Stop(t)
		s = w.start(t)
		alice = s.Connect(t, s.Token(t), false)
		wantText(t, call(t, alice, "list_images", map[string]any{}).Text, "ml · python", "session-work · python")
		wantText(t, python(t, alice, "work", "import cbtiny; print('still', cbtiny.answer)").Text, "still 42")
		wantText(t, call(t, alice, "delete_image", map[string]any{"name": "ml"}).Text, "Image ml is deleted")
		wantText(t, in(alice, "c", "ml", "1").Text, "is not one that a python session of yours may run in")
	})
}

// cancelled gives a build up whose index does not answer.
func (w *imagesWorld) cancelled(t *testing.T, c *rig.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, "create_image", map[string]any{"name": "slow", "packages": []string{"cbslow"}}, nil)
		ended <- err
	}()
	select {
	case <-w.asked:
	case err := <-ended:
		t.Fatalf("ended by itself: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What npm and apt install comes from where this machine has it from; the image is that of Node.js.
func TestImageWithNpmAndApt(t *testing.T) {
	w := newImagesWorld(t, "docker")
	s := w.start(t)
	c := s.Connect(t, s.Token(t), false)
	made := call(t, c, "create_image", map[string]any{"name": "web", "languages": []string{"javascript"}, "packages": []string{"is-number@7.0.0", "apt:hello"}})
	if made.IsError {
		t.Fatal(made.Text)
	}
	wantText(t, made.Text, "cellblock-node:latest with apt:hello, npm:is-number@7.0.0")
	r := call(t, c, "execute_javascript", map[string]any{"session_id": "s", "image": "web",
		"code": `import isNumber from 'is-number'; console.log(isNumber(5), require('child_process').execFileSync('hello').toString())`})
	wantText(t, r.Text, "true", "Hello, world!")
	before, _ := w.mine(t)
	for name, want := range map[string]string{"apt:cb-no-such-package": "E: Unable to locate package cb-no-such-package", "cb-no-such-package-at-all-1": "404"} {
		r := call(t, c, "create_image", map[string]any{"name": "broken", "languages": []string{"javascript"}, "packages": []string{name}})
		wantText(t, r.Text, want, "check the name")
	}
	w.nothingNew(t, before)
}

// The commands do what the tools do, and print what a build prints.
func TestImagesCommand(t *testing.T) {
	w := newImagesWorld(t, "docker")
	s := w.start(t)
	run := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		return cellblockSplit(t, []string{"CELLBLOCK_URL=" + s.URL}, "", append([]string{"--data-dir", s.DataDir}, args...)...)
	}
	stdout, stderr, code := run("images", "create", "ml", "cbtiny")
	if code != 0 || !strings.HasPrefix(stdout, "Image ml is ready (built in") || !strings.Contains(stderr, "Successfully installed cbtiny-2.0") {
		t.Fatalf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if stdout, stderr, code := run("exec", "--session", "s", "--image", "ml", "import cbtiny; print(cbtiny.answer)"); code != 0 || strings.TrimSpace(stdout) != "42" {
		t.Errorf("exec: exit status %d, %q, %q", code, stdout, stderr)
	}
	if stdout, stderr, code := run("images", "install", "s", "cbtiny<2", "--move"); code != 0 || !strings.Contains(stdout, "Session s now runs in it") {
		t.Errorf("install: exit status %d, %q, %q", code, stdout, stderr)
	}
	if stdout, _, code := run("images", "ls"); code != 0 || !strings.Contains(stdout, "session-s") || !strings.Contains(stdout, "pip:cbtiny<2") {
		t.Errorf("ls: exit status %d, %q", code, stdout)
	}
	if stdout, _, code := run("sessions", "ls"); code != 0 || !strings.Contains(stdout, "session-s") || strings.Contains(stdout, "derived-") {
		t.Errorf("sessions ls: exit status %d, %q", code, stdout)
	}
	if stdout, _, code := run("images", "rm", "ml", "session-s"); code != 0 || strings.Count(stdout, "is deleted") != 2 {
		t.Errorf("rm: exit status %d, %q", code, stdout)
	}
	if _, stderr, code := run("images", "create", "ml", "--", "--index-url=https://evil.example/"); code != 2 || !strings.Contains(stderr, "options cannot be given") {
		t.Errorf("an option: exit status %d, %q", code, stderr)
	}
	if stdout, _, code := run("exec", "--session", "s", "import cbtiny; print(cbtiny.answer)"); code != 0 || !strings.Contains(stdout, "41") {
		t.Errorf("a session whose image was deleted: exit status %d, %q", code, stdout)
	}
}
