package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composeService is what this test looks at of a service in compose.yaml.
type composeService struct {
	Command     []string          `yaml:"command"`
	ReadOnly    bool              `yaml:"read_only"`
	Drop        []string          `yaml:"cap_drop"`
	Security    []string          `yaml:"security_opt"`
	Memory      string            `yaml:"mem_limit"`
	PIDs        int               `yaml:"pids_limit"`
	Privileged  bool              `yaml:"privileged"`
	Ports       []string          `yaml:"ports"`
	Environment map[string]string `yaml:"environment"`
}

func TestComposeRunsALockedDownServer(t *testing.T) {
	text, err := os.ReadFile("../../compose.yaml")
	var file struct{ Services map[string]composeService }
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	s, ok := file.Services["cellblock"]
	if err != nil || !ok {
		t.Fatalf("%v: %s", err, text)
	}
	if !s.ReadOnly || !slices.Contains(s.Drop, "ALL") || !slices.Contains(s.Security, "no-new-privileges:true") || s.Memory == "" || s.PIDs == 0 || s.Privileged {
		t.Errorf("%+v", s)
	}
	for _, port := range s.Ports {
		if !strings.HasPrefix(port, "127.0.0.1:") { // dev mode's token is all that is asked for
			t.Errorf("others can reach port %s", port)
		}
	}
	var environ []string
	for name, value := range s.Environment {
		environ = append(environ, name+"="+value)
	}
	cfg := configured(t, s.Command, environ)
	if cfg.Addr != "0.0.0.0:8787" || cfg.Provisioner != "docker" || !cfg.DevAllowRemote {
		t.Errorf("%+v", cfg)
	}
}

func TestTheServiceStartsTheServer(t *testing.T) {
	text, err := os.ReadFile("../../packaging/cellblock.service")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "ExecStart=")
	line, _, _ := strings.Cut(rest, "\n")
	cfg := configured(t, strings.Fields(line)[1:], nil)
	if cfg.DataDir != "/var/lib/cellblock" || cfg.RunDir != "/run/cellblock" {
		t.Errorf("%+v", cfg)
	}
}

// What a kernel needs to be found again is there when the service has been stopped and is started again, as for an update.
func TestTheServiceKeepsKernels(t *testing.T) {
	text, err := os.ReadFile("../../packaging/cellblock.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"KillMode=process", "RuntimeDirectory=cellblock", "RuntimeDirectoryPreserve=yes"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("it lacks %s", line)
		}
	}
}

// The service's head installs the manual page that the service names.
func TestTheServiceInstallsItsManual(t *testing.T) {
	text, err := os.ReadFile("../../packaging/cellblock.service")
	if err != nil {
		t.Fatal(err)
	}
	head, unit, _ := strings.Cut(string(text), "[Unit]")
	if !strings.Contains(unit, "Documentation=man:cellblock(1)") {
		t.Fatal("it names no manual page")
	}
	_, rest, found := strings.Cut(head, "#   cellblock man ")
	folder, _, _ := strings.Cut(rest, "\n")
	if !found || folder != "/usr/local/share/man/man1" { // one where man looks for pages of section 1
		t.Fatalf("the head installs pages in %q", folder)
	}
	pages := t.TempDir()
	if _, err := command(t, "man", pages); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(pages, "cellblock.1")); err != nil {
		t.Error(err)
	}
}

// configured is the configuration of a command as it stands in a file for others.
func configured(t *testing.T, command, environ []string) *Config {
	t.Helper()
	cmd, args, err := newRoot().Find(command)
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	cfg, err := loadConfig(sources{flags: cmd.Flags(), environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
