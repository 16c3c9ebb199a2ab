package derived

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"cellblock/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Two owners ask for the same: it is made once, each has it under his own name and sees nothing of the other, and it is there until
// the last of them deletes it.
func TestTwoOwners(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.create("alice", "mine", "polars", "flask"), w.create("bob", "his", "Flask", "polars")
	if a.Cached || !b.Cached || a.Image != b.Image || len(w.engine.builds) != 1 {
		t.Errorf("%+v, %+v, %d builds", a, b, len(w.engine.builds))
	}
	if got, want := w.list("alice"), []string{"cellblock-python:latest", "cellblock-full:latest", "mine"}; !slices.Equal(got, want) {
		t.Errorf("alice sees %q, want %q", got, want)
	}
	if a.Base != "cellblock-python:latest" || !slices.Equal(a.Packages, []string{"pip:flask", "pip:polars"}) || !slices.Equal(a.Languages, []string{"python"}) {
		t.Errorf("%+v", a.Entry)
	}
	if err := w.Delete(t.Context(), "bob", "mine"); fault.KindOf(err) != fault.NotFound || !strings.Contains(fault.Hint(err), "his") {
		t.Errorf("bob deletes what is alice's: %v, %s", err, fault.Hint(err))
	}
	if _, err := w.Resolve(t.Context(), "bob", "python", "mine"); fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Hint(err), "cellblock-python:latest, cellblock-full:latest, his") {
		t.Errorf("bob uses what is alice's: %v, %s", err, fault.Hint(err))
	}
	for _, c := range []struct {
		owner, name string
		left        int
	}{{"alice", "mine", 1}, {"bob", "his", 0}} {
		if err := w.Delete(t.Context(), c.owner, c.name); err != nil {
			t.Fatal(fault.Text(err))
		}
		if got := len(w.engine.names(Prefix)); got != c.left {
			t.Errorf("after %s: %d derived images, want %d", c.owner, got, c.left)
		}
	}
	if left := w.engine.names(ownedPrefix); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// One of the server's own images that somebody has removed takes nothing from the list but itself.
func TestListWithoutABase(t *testing.T) {
	w := newWorld(t, nil)
	w.create("alice", "mine", "polars")
	delete(w.engine.images, "cellblock-full:latest")
	if got, want := w.list("alice"), []string{"cellblock-python:latest", "mine"}; !slices.Equal(got, want) {
		t.Errorf("alice sees %q, want %q", got, want)
	}
}

// What a session is made of stays when its name is deleted, and goes when the session has gone.
func TestDeleteWhileASessionUsesIt(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxBytes = 1 })
	made := w.create("alice", "mine", "polars")
	w.kept[made.Image] = time.Now()
	if err := w.Delete(t.Context(), "alice", "mine"); err != nil || len(w.engine.names(Prefix)) != 1 {
		t.Fatalf("%v; images %q", err, w.engine.names(Prefix))
	}
	w.create("alice", "mine", "polars")
	w.used[made.Image] = true
	if err := w.Delete(t.Context(), "alice", "mine"); err != nil {
		t.Fatal(fault.Text(err))
	}
	for _, want := range []int{1, 0} {
		if err := w.Collect(t.Context()); err != nil {
			t.Fatal(fault.Text(err))
		}
		if got := len(w.engine.names(Prefix)); got != want {
			t.Errorf("%d images, want %d", got, want)
		}
		clear(w.used)
	}
}

func TestCreateRefuses(t *testing.T) {
	w := newWorld(t, nil)
	for what, c := range map[string]struct {
		name      string
		languages []string
		packages  []string
		want      string
	}{
		"a name with a slash":  {"a/b", []string{"python"}, []string{"x"}, "no name for an image"},
		"no packages":          {"a", []string{"python"}, nil, "none are named"},
		"an unknown language":  {"a", []string{"cobol"}, []string{"x"}, "no image of the server brings cobol"},
		"no language":          {"a", nil, []string{"x"}, "no image of the server brings"},
		"the server's own":     {"cellblock-full", []string{"python"}, []string{"x"}, "the server's own"},
		"two, in no one image": {"a", []string{"javascript", "cobol"}, []string{"x"}, "javascript and cobol"},
	} {
		_, err := w.Create(t.Context(), "alice", c.name, c.languages, set(c.packages...), io.Discard)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.want) || fault.Hint(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(w.engine.builds) > 0 {
		t.Error("something was built")
	}
	if both, err := w.Create(t.Context(), "alice", "both", []string{"javascript", "python"}, set("npm:lodash"), io.Discard); err != nil || both.Base != "cellblock-full:latest" {
		t.Errorf("%+v, %v", both, err)
	}
}

// What a session has already comes along, and the newer wish about a package counts.
func TestExtend(t *testing.T) {
	w := newWorld(t, nil)
	one, err := w.Extend(t.Context(), "alice", "one", "cellblock-python:latest", set("polars==1", "apt:graphviz"), io.Discard)
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	two, err := w.Extend(t.Context(), "alice", "two", one.Image, set("polars==2", "flask"), io.Discard)
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	if want := []string{"apt:graphviz", "pip:flask", "pip:polars==2"}; !slices.Equal(two.Packages, want) || two.Base != "cellblock-python:latest" {
		t.Errorf("%+v", two.Entry)
	}
	w.engine.add("foreign:1", "sha256:foreign", 1, "python")
	if _, err := w.Extend(t.Context(), "alice", "x", "foreign:1", set("flask"), io.Discard); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a foreign image was extended: %v", err)
	}
}

// What an image brings already is not made again, whoever put it there; a manager that cannot tell installs.
func TestExtendWithWhatIsThere(t *testing.T) {
	w := newWorld(t, nil)
	w.engine.bring = []string{"numpy", "graphviz", "lodash"}
	const base = "cellblock-full:latest"
	extend := func(from string, texts ...string) Made {
		t.Helper()
		made, err := w.Extend(t.Context(), "alice", "name", from, set(texts...), io.Discard)
		if err != nil {
			t.Fatal(fault.Text(err))
		}
		return made
	}
	if made := extend(base, "numpy", "apt:graphviz", "npm:lodash"); !made.There || !slices.Equal(made.Packages, []string{"apt:graphviz", "npm:lodash", "pip:numpy"}) {
		t.Errorf("%+v", made)
	}
	if got := w.list("alice"); len(w.engine.builds) > 0 || slices.Contains(got, "name") {
		t.Errorf("%d were built, there are %v", len(w.engine.builds), got)
	}
	one := extend(base, "numpy", "polars==1")
	if one.There || !slices.Equal(one.Packages, []string{"pip:numpy", "pip:polars==1"}) {
		t.Errorf("%+v", one)
	}
	for _, texts := range [][]string{{"polars==1"}, {"polars==1", "numpy"}, {"apt:graphviz"}} {
		if made := extend(one.Image, texts...); !made.There || len(w.engine.builds) != 1 {
			t.Errorf("%v: %+v", texts, made)
		}
	}
	if made := extend(one.Image, "polars"); made.There { // a wish for another version, as far as anybody knows
		t.Errorf("%+v", made)
	}
	w.engine.bring = append(w.engine.bring, "Newtonsoft.Json")
	if made := extend(base, "nuget:Newtonsoft.Json"); made.There {
		t.Errorf("%+v", made)
	}
}

func TestResolve(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Allowed = []string{"team/*", "exactly:1"} })
	made := w.create("alice", "mine", "polars")
	for _, name := range []string{"team/python:3", "exactly:1", "foreign:1"} {
		w.engine.add(name, "sha256:"+name, 1, "python")
	}
	for _, c := range []struct{ language, name, want string }{
		{"python", "mine", made.Image},
		{"javascript", "mine", ""},
		{"python", "cellblock-full", "cellblock-full:latest"},
		{"javascript", "cellblock-full:latest", "cellblock-full:latest"},
		{"javascript", "cellblock-python:latest", ""},
		{"python", "team/python:3", "team/python:3"},
		{"javascript", "team/python:3", ""},
		{"python", "exactly:1", "exactly:1"},
		{"python", "exactly:12", ""},
		{"python", "foreign:1", ""},
		{"python", made.Image, ""},
		{"python", w.shelf("alice") + "mine", ""},
	} {
		got, err := w.Resolve(t.Context(), "alice", c.language, c.name)
		if (err == nil) != (c.want != "") || err == nil && got != c.want || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s in %s: %q, %v, want %q", c.language, c.name, got, err, c.want)
		}
	}
	open := newWorld(t, func(c *Config) { c.Allowed = []string{"*"} })
	bobs := open.create("bob", "his", "polars")
	// An engine finds an image by other words, too.
	for _, other := range []string{"sha256:derived1", "derived1", "docker.io/library/" + bobs.Image, "localhost/" + open.shelf("bob") + "his"} {
		if err := open.engine.Tag(t.Context(), bobs.Image, other); err != nil {
			t.Fatal(err)
		}
	}
	for name := range open.engine.images {
		if _, err := open.Resolve(t.Context(), "alice", "python", name); (err == nil) != (name == "cellblock-python:latest" || name == "cellblock-full:latest") {
			t.Errorf("a rule for all images, and %s: %v", name, err)
		}
	}
}

// Whoever asks for what is being made waits for it; when it fails or is given up, he makes it himself.
func TestSameImageAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		first, giveUp := context.WithCancel(t.Context())
		release := make(chan struct{})
		w.engine.building = func(ctx context.Context, _ Build, _ io.Writer) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-release:
				return nil
			}
		}
		results := make(chan error, 3)
		ask := func(ctx context.Context, owner string) {
			_, err := w.Create(ctx, owner, "x", []string{"python"}, set("polars"), io.Discard)
			results <- err
		}
		go ask(first, "a")
		synctest.Wait()
		go ask(t.Context(), "b")
		go ask(t.Context(), "c")
		synctest.Wait()
		if n := len(w.engine.builds); n != 1 {
			t.Errorf("%d builds at once", n)
		}
		giveUp()
		if err := <-results; fault.KindOf(err) != fault.Cancelled {
			t.Errorf("the first got %v", err)
		}
		synctest.Wait()
		close(release)
		for range 2 {
			if err := <-results; err != nil {
				t.Error(fault.Text(err))
			}
		}
		if n := len(w.engine.builds); n != 2 {
			t.Errorf("%d builds, want the one that was given up and one more", n)
		}
	})
}

func TestQueueAndTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.MaxBuilds, c.MaxWaiting, c.Limit = 1, 1, 5*time.Minute })
		w.engine.building = func(ctx context.Context, _ Build, _ io.Writer) error { <-ctx.Done(); return ctx.Err() }
		results := make(chan error, 2)
		var log strings.Builder
		go func() {
			_, err := w.Create(t.Context(), "a", "x", []string{"python"}, set("one"), io.Discard)
			results <- err
		}()
		synctest.Wait()
		go func() {
			_, err := w.Create(t.Context(), "a", "y", []string{"python"}, set("two"), &log)
			results <- err
		}()
		synctest.Wait()
		if _, err := w.Create(t.Context(), "a", "z", []string{"python"}, set("three"), io.Discard); fault.KindOf(err) != fault.Busy {
			t.Errorf("the third: %v", err)
		}
		began := time.Now()
		for i := range 2 {
			err := <-results
			if want := time.Duration(i+1) * 5 * time.Minute; fault.KindOf(err) != fault.Timeout || time.Since(began) != want || fault.Hint(err) == "" {
				t.Errorf("%v after %v, want a timeout after %v", err, time.Since(began), want)
			}
		}
		if !strings.Contains(log.String(), "waiting for a turn") {
			t.Errorf("whoever waits is not told: %q", log.String())
		}
	})
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	w := newWorld(t, nil)
	before := len(w.engine.images)
	for what, c := range map[string]struct {
		packages []string
		step     int
		code     int
		said     string
		kind     fault.Kind
		message  string
		hint     string
	}{
		"no such wheel": {[]string{"nosuch"}, 0, 1, "Looking in indexes\nERROR: Could not find a version that satisfies the requirement nosuch\nERROR: No matching distribution found for nosuch\n",
			fault.Invalid, "No matching distribution found for nosuch", "check name and version"},
		"no such deb":    {[]string{"apt:nosuch"}, 1, 100, "Reading package lists...\nE: Unable to locate package nosuch\n", fault.Invalid, "E: Unable to locate package nosuch", "check the name"},
		"no such module": {[]string{"npm:nosuch"}, 0, 1, "npm error code E404\nnpm error 404 Not Found\nnpm error A complete log of this run can be found in: /x\n", fault.Invalid, "E404", "check the name"},
		"a full disk":    {[]string{"big"}, 0, 1, "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", fault.Unavailable, "No space left", "disk is full"},
		"no network":     {[]string{"x"}, 0, 1, "WARNING: Retrying\nERROR: connection broken: Temporary failure in name resolution\n", fault.Unavailable, "name resolution", "cannot reach"},
		"no connection": {[]string{"x"}, 0, 1, "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError(1)': /simple/x/\n" +
			"WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError(2)': /simple/x/\n" +
			"ERROR: Could not find a version that satisfies the requirement x (from versions: none)\nERROR: No matching distribution found for x\n",
			fault.Unavailable, "NewConnectionError(2)", "cannot reach"},
		"a connection at last": {[]string{"x"}, 0, 1, "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError(1)': /simple/x/\n" +
			"ERROR: No matching distribution found for x\n", fault.Invalid, "No matching", "check name and version"},
		"a proxy's certificate, pip": {[]string{"x"}, 0, 1, "Could not fetch URL https://pypi.org/simple/x/: (Caused by SSLError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]')) - skipping\n" +
			"ERROR: No matching distribution found for x\n", fault.Unavailable, "Could not fetch URL", "images_build.ca_file"},
		"a proxy's certificate, npm": {[]string{"npm:x"}, 0, 1, "npm error code SELF_SIGNED_CERT_IN_CHAIN\nnpm error self-signed certificate in certificate chain\n",
			fault.Unavailable, "self-signed", "images_build.ca_file"},
		"a proxy's certificate, apt": {[]string{"apt:xx"}, 0, 100, "E: Failed to fetch https://deb.example/x  Certificate verification failed: The certificate is NOT trusted.\n",
			fault.Unavailable, "NOT trusted", "images_build.ca_file"},
		"no such program":   {[]string{"npm:x"}, 0, 127, "", fault.Invalid, "has no npm", "apt:npm"},
		"no pip":            {[]string{"x"}, 0, 1, "/usr/bin/python3: No module named pip\n", fault.Invalid, "No module named pip", "apt:python3-pip"},
		"out of memory":     {[]string{"x"}, 0, 137, "Collecting x\n", fault.Invalid, "Collecting x", "memory"},
		"something unknown": {[]string{"x"}, 0, 2, strings.Repeat("line\n", 10000) + "the last line\n", fault.Invalid, "the last line", "try again"},
	} {
		w.engine.building = fails(c.step, c.code, c.said)
		_, err := w.Create(t.Context(), "a", "x", []string{"python"}, set(c.packages...), io.Discard)
		if err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.message) || !strings.Contains(fault.Hint(err), c.hint) || len(err.Error()) > 1000 {
			t.Errorf("%s: %s", what, fault.Text(err))
		}
	}
	if len(w.engine.images) != before || len(w.building) > 0 || len(w.turns) > 0 {
		t.Errorf("left: %v", w.engine.images)
	}
}
