package derived

import (
	"slices"
	"strings"
	"testing"
)

func TestRecipe(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Sources = Sources{PipIndex: "http://index.example:1/simple", NpmRegistry: "https://npm.example", NugetSource: "https://nuget.example/v3",
			Proxy: "http://proxy.example:3128", NoProxy: "index.example", Authorities: []byte("PEM"), Network: "builds"}
	})
	b, err := w.recipe(w.cfg.Bases[0], set("polars>=1", "flask", "apt:graphviz", "npm:@a/b@^1", "nuget:A.B@1.2", "nuget:C"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range b.Steps {
		got = append(got, strings.Join(step.Argv, " "))
		if !slices.Contains(step.Env, "https_proxy=http://proxy.example:3128") || !slices.Contains(step.Env, "HOME="+Scratch) {
			t.Errorf("%q has %q", step.Argv, step.Env)
		}
	}
	want := []string{
		"apt-get -q -o Acquire::https::CAInfo=/cellblock-build/authorities.pem update",
		"apt-get -q -o Acquire::https::CAInfo=/cellblock-build/authorities.pem install -y --no-install-recommends -- graphviz",
		"apt-get -q -o Acquire::https::CAInfo=/cellblock-build/authorities.pem clean",
		"find /var/lib/apt/lists -mindepth 1 -delete",
		"/usr/bin/python3 -m pip install -- flask polars>=1",
		"npm install --global --prefix /usr/local --no-audit --no-fund --no-update-notifier --no-progress --ignore-scripts -- @a/b@^1",
		"nuget install A.B -OutputDirectory /usr/local/lib/nuget -NonInteractive -Version 1.2 -Source https://nuget.example/v3",
		"nuget install C -OutputDirectory /usr/local/lib/nuget -NonInteractive -Source https://nuget.example/v3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	pip := b.Steps[4].Env
	for _, variable := range []string{"PIP_ONLY_BINARY=:all:", "PIP_INDEX_URL=http://index.example:1/simple", "PIP_TRUSTED_HOST=index.example", "PIP_CERT=/cellblock-build/authorities.pem"} {
		if !slices.Contains(pip, variable) {
			t.Errorf("pip has no %s", variable)
		}
	}
	if !slices.Equal(b.Env, []string{"NODE_PATH=/usr/local/lib/node_modules"}) || b.Network != "builds" || string(b.Files[caName]) != "PEM" {
		t.Errorf("%+v", b)
	}
	if _, err := w.recipe(Base{Image: "node"}, set("polars")); err == nil {
		t.Error("pip without Python")
	}
}

// Programs of packages run only where the operator lets them.
func TestScripts(t *testing.T) {
	for _, scripts := range []bool{false, true} {
		s := Sources{Scripts: scripts}
		pip, npm := s.pip([]string{"x"}, "python3"), s.npm([]string{"x"})
		if slices.Contains(pip.Env, "PIP_ONLY_BINARY=:all:") == scripts || slices.Contains(npm.Argv, "--ignore-scripts") == scripts {
			t.Errorf("scripts %v: %q, %q", scripts, pip.Env, npm.Argv)
		}
	}
}

func TestSourcesCheck(t *testing.T) {
	for address, ok := range map[string]bool{"": true, "https://x.example/simple": true, "x.example": false, "file:///x": false, "--x": false} {
		if err := (Sources{PipIndex: address}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}
