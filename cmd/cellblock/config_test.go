package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"cellblock/internal/fault"
)

func load(t *testing.T, file string, environ []string, flags ...string) (*Config, error) {
	t.Helper()
	src := sources{environ: environ}
	if file != "" {
		src.named = filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(src.named, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := newServe()
	addConfigFlags(root)
	src.flags = root.Flags()
	src.flags.AddFlagSet(root.PersistentFlags())
	if err := src.flags.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return loadConfig(src)
}

func TestDefaultsAreValid(t *testing.T) {
	cfg, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := cfg.Profiles["session"].Limits()
	if cfg.Addr != "127.0.0.1:8787" || limits.Memory != 2<<30 || limits.CPUs != 2 || cfg.Timeout.Max != time.Hour {
		t.Errorf("%+v", cfg)
	}
}

func TestAllowedHosts(t *testing.T) {
	const hosts = "cells.example.com,cells:8787,10.0.0.7,[fd00::1]:80,fd00::1,host.docker.internal,under_score"
	if _, err := load(t, "", []string{"CELLBLOCK_ALLOWED_HOSTS=" + hosts}); err != nil {
		t.Error(err)
	}
}

func TestToolsets(t *testing.T) {
	for _, tt := range []struct {
		file  string
		env   []string
		flags []string
		want  string
	}{
		{"", nil, nil, "execute,sessions,files"},
		{"toolsets: [execute]", nil, nil, "execute"},
		{"toolsets: [execute]", []string{"CELLBLOCK_TOOLSETS=sessions,files"}, nil, "sessions,files"},
		{"", nil, []string{"--toolsets", "execute,images"}, "execute,images"},
	} {
		cfg, err := load(t, tt.file, tt.env, tt.flags...)
		if err != nil || strings.Join(cfg.Toolsets, ",") != tt.want {
			t.Errorf("%+v: %v %v", tt, cfg, err)
		}
	}
	if _, err := load(t, "", nil, "--toolsets", "execute,notebooks"); fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Text(err), "execute, sessions, files, images") {
		t.Errorf("%v", err)
	}
	if _, err := load(t, "output: {image_side: 10}", nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}

func TestHistoryLimits(t *testing.T) {
	for _, tt := range []struct {
		file  string
		env   []string
		age   time.Duration
		bytes Size
	}{
		{"", nil, 90 * 24 * time.Hour, 10 << 30},
		{"history: {max_age: 36h, max_bytes: 64MB}", nil, 36 * time.Hour, 64 << 20},
		{"history: {max_age: 0, max_bytes: 0}", nil, 0, 0},
		{"", []string{"CELLBLOCK_HISTORY_MAX_AGE=7d", "CELLBLOCK_HISTORY_MAX_BYTES=1GB"}, 7 * 24 * time.Hour, 1 << 30},
	} {
		cfg, err := load(t, tt.file, tt.env)
		if err != nil || cfg.History.MaxAge != tt.age || cfg.History.MaxBytes != tt.bytes {
			t.Errorf("%+v: %+v, %v", tt, cfg, err)
		}
	}
}

// A command's own default is under everything that somebody has set.
func TestPoolSettings(t *testing.T) {
	for _, tt := range []struct {
		file    string
		env     []string
		size    int
		preload string
	}{
		{"", nil, 0, ""},
		{"pool_size: 3\npool_preload: [numpy, matplotlib.pyplot]", nil, 3, "numpy matplotlib.pyplot"},
		{"pool_size: 3", []string{"CELLBLOCK_POOL_SIZE=2", "CELLBLOCK_POOL_PRELOAD=numpy,pandas"}, 2, "numpy pandas"},
	} {
		src := sources{environ: tt.env, defaults: map[string]any{"pool_size": 0}}
		if tt.file != "" {
			src.named = filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(src.named, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := loadConfig(src)
		if err != nil || cfg.PoolSize != tt.size || strings.Join(cfg.PoolPreload, " ") != tt.preload {
			t.Errorf("%+v: %+v, %v", tt, cfg, err)
		}
	}
	if cfg, err := load(t, "", nil, "--pool-size", "0"); err != nil || cfg.PoolSize != 0 {
		t.Errorf("flag: %+v %v", cfg, err)
	}
	if cfg, err := load(t, "", nil); err != nil || cfg.PoolSize != 1 {
		t.Errorf("default: %+v %v", cfg, err)
	}
	for _, bad := range []string{"pool_size: -1", "pool_size: 1000", "pool_preload: [\"os; evil()\"]", "pool_preload: [a..b]"} {
		if _, err := load(t, bad, nil); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "pool_") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestLayersInOrder(t *testing.T) {
	const file = "addr: 127.0.0.1:1\nlog: {level: warn}\nprofiles:\n  session: {memory: 512MB, pids: 64}\ndocker: {host: env:ENGINE}\n"
	environ := []string{"CELLBLOCK_ADDR=127.0.0.1:2", "CELLBLOCK_PROFILES_SESSION_PIDS=32", "ENGINE=unix:///engine.sock", "LOG_LEVEL=ERROR"}
	cfg, err := load(t, file, environ, "--addr", "127.0.0.1:3")
	if err != nil {
		t.Fatal(err)
	}
	p := cfg.Profiles["session"]
	if cfg.Addr != "127.0.0.1:3" || p.Memory != 512<<20 || p.PIDs != 32 || cfg.Docker.Host != "unix:///engine.sock" || cfg.Log.Level != "error" {
		t.Errorf("%+v", cfg)
	}
	if p.CPUs != 2 {
		t.Errorf("the file's profile dropped a default: %+v", p)
	}
}

// Kubernetes names a service's addresses in variables, which are no settings; a port that somebody wants to set is none of them.
func TestVariablesOfKubernetes(t *testing.T) {
	given := []string{"CELLBLOCK_SERVICE_HOST=10.0.0.1", "CELLBLOCK_SERVICE_PORT=8787", "CELLBLOCK_SERVICE_PORT_HTTP=8787", "CELLBLOCK_PORT=tcp://10.0.0.1:8787",
		"CELLBLOCK_PORT_8787_TCP=tcp://10.0.0.1:8787", "CELLBLOCK_PORT_8787_TCP_ADDR=10.0.0.1"}
	if _, err := load(t, "", given); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"CELLBLOCK_PORT=8787", "CELLBLOCK_SERVICE=x"} {
		if _, err := load(t, "", []string{wrong}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// An empty value, as of a variable in a script that nobody has set, is none: it must not take a limit away, turn the audit log off or
// put the data folder where the server happens to start. What is empty by default may be.
func TestEmptyValues(t *testing.T) {
	for key, value := range defaults() {
		ways := map[string]func() (*Config, error){
			"file":       func() (*Config, error) { return load(t, asYAML(key, ""), nil) },
			"text":       func() (*Config, error) { return load(t, asYAML(key, `""`), nil) },
			"reference":  func() (*Config, error) { return load(t, asYAML(key, "env:EMPTY"), []string{"EMPTY="}) },
			envName(key): func() (*Config, error) { return load(t, "", []string{envName(key) + "="}) },
		}
		if newServe().Flags().Lookup(flagName(key)) != nil && value != false {
			ways["--"+flagName(key)] = func() (*Config, error) { return load(t, "", nil, "--"+flagName(key)+"=") }
		}
		for way, load := range ways {
			_, err := load()
			refused := fault.KindOf(err) == fault.Invalid && strings.Contains(err.Error(), key) && strings.Contains(err.Error(), "is empty")
			if says(value) && !refused || !says(value) && value != nil && err != nil {
				t.Errorf("%s, by %s: %v", key, way, err)
			}
		}
	}
	if _, err := load(t, "profiles: {lab: {cpus: }}", nil); err == nil || !strings.Contains(err.Error(), "profiles.lab.cpus") {
		t.Errorf("a profile's limit: %v", err)
	}
}

func TestBadConfiguration(t *testing.T) {
	tests := map[string]struct {
		file    string
		environ []string
		flags   []string
		want    string
	}{
		"unknown key":          {"adr: x\n", nil, nil, `"addr"`},
		"unknown nested key":   {"profiles: {session: {memry: 1GB}}\n", nil, nil, `"profiles.session.memory"`},
		"in no such group":     {"server: {adr: x}\n", nil, nil, "Hint: Did you mean \"addr\"?"},
		"unknown in a group":   {"timeout: {whatever: 1h}\n", nil, nil, "Hint: Known keys: timeout.default, timeout.max"},
		"sandbox, misplaced":   {"provisioner: sandbox\n", nil, nil, "Local is a sandbox on this host."},
		"an issuer as a key":   {"mcp_issuer: https://x\n", nil, nil, "Hint: MCP_ISSUER and those like it are environment variables alone: set MCP_ISSUER."},
		"and with our prefix":  {"", []string{"CELLBLOCK_MCP_ISSUER=https://x"}, nil, "Hint: Its name is MCP_ISSUER."},
		"nothing like it":      {"", []string{"CELLBLOCK_FOO=1"}, nil, "Hint: Unset it"},
		"in small letters":     {"", []string{"cellblock_data_dir=x"}, nil, "Hint: Names are in capitals: CELLBLOCK_DATA_DIR."},
		"a language's":         {"", []string{"CELLBLOCK_LANGUAGES_R_IDLE=5m"}, nil, "Hint: A language has CELLBLOCK_LANGUAGES_R_IDLE_TIMEOUT and"},
		"a profile's variable": {"", []string{"CELLBLOCK_PROFILES_LAB_MEMRY=1GB"}, nil, "Hint: Did you mean CELLBLOCK_PROFILES_LAB_MEMORY?"},
		"a language's key":     {"languages: {python: {idle: 1h}}\n", nil, nil, "languages.python.idle_timeout and languages.python.max_life"},
		"no origin":            {"allowed_origins: [foo]\n", nil, nil, "https://notebooks.example.com"},
		"a URL for a host":     {"allowed_hosts: [https://x.com]\n", nil, nil, "allowed_hosts: \"https://x.com\" is no host\nHint: "},
		"hosts by a pattern":   {"allowed_hosts: ['*.example.com']\n", nil, nil, "is no host"},
		"hosts with spaces":    {"", []string{"CELLBLOCK_ALLOWED_HOSTS=a b"}, nil, "\"a b\" is no host"},
		"a relative root":      {"mount_roots: [srv]\n", nil, nil, "no absolute path"},
		"a choice of three":    {"on_shutdown: stopp\n", nil, nil, "Hint: Use one of: keep, stop."},
		"metrics for nobody":   {"metrics: {addr: 127.0.0.1:9090}\n", nil, nil, "metrics.enabled is not"},
		"audit for nobody":     {"audit: {required: true, enabled: false}\n", nil, nil, "audit.enabled is not"},
		"unknown variable":     {"", []string{"CELLBLOCK_DATADIR=x"}, nil, "CELLBLOCK_DATA_DIR"},
		"a size without unit":  {"sessions: {workspace_max_bytes: 10}\n", nil, nil, "sessions.workspace_max_bytes"},
		"one of a variable":    {"", []string{"CELLBLOCK_SESSIONS_MIN_FREE_MEMORY=512"}, nil, "\"512\" is a size of 512 bytes\nHint: Write it with its unit"},
		"no size":              {"profiles: {session: {memory: much}}\n", nil, nil, "512MB"},
		"a bare number":        {"timeout: {default: 5}\n", nil, nil, "10m"},
		"too little memory":    {"profiles: {session: {memory: 10MB}}\n", nil, nil, "128MB"},
		"memory in no unit":    {"profiles: {session: {memory: 2}}\n", nil, nil, "Write it with its unit, as 512MB or 2GB."},
		"memory in bytes":      {"profiles: {session: {memory: 2000}}\n", nil, nil, "128MB"},
		"too few processes":    {"profiles: {session: {pids: 3}}\n", nil, nil, "profiles.session.pids"},
		"negative files":       {"profiles: {session: {files: -1}}\n", nil, nil, "profiles.session.files"},
		"no URL":               {"public_url: foo\n", nil, nil, "https://"},
		"no duration":          {"timeout: {default: soon}\n", nil, nil, "timeout.default"},
		"default above most":   {"timeout: {default: 2h}\n", nil, nil, "timeout.max"},
		"not YAML":             {"addr: [\n", nil, nil, "config.yaml, line 1: it is not YAML (did not find expected node content)\nHint: Look at that line"},
		"a tab":                {"log:\n\tlevel: info\n", nil, nil, "config.yaml, line 2: it is not YAML (found character that cannot start any token)\nHint: "},
		"a key twice":          {"pool_size: 1\npool_size: 2\n", nil, nil, "config.yaml, line 2: the key \"pool_size\" stands there twice, in line 1 too\nHint: Leave one"},
		"a list of keys":       {"- addr\n", nil, nil, "there are no keys with values\nHint: Write one in each line"},
		"a text":               {"addr:127.0.0.1\n", nil, nil, "there are no keys with values\nHint: "},
		"unset reference":      {"docker: {host: env:NOT_SET}\n", nil, nil, "NOT_SET"},
		"root for kernels":     {"kernel_uid: 0\n", nil, nil, "never run as root"},
		"unknown choice":       {"", nil, []string{"--sandbox", "brwap"}, "bwrap, none"},
		"a list for an adress": {"addr: [a, b]\n", nil, nil, `config.yaml): "[a b]" is not a text`},
		"no number":            {"kernel_uid: abc\n", nil, nil, `config.yaml): "abc" is not a whole number`},
		"no number, nested":    {"", []string{"CELLBLOCK_PROFILES_SESSION_PIDS=many"}, nil, `profiles.session.pids (CELLBLOCK_PROFILES_SESSION_PIDS): "many" is not a whole number`},
		"half a session":       {"sessions: {max: 1.5}\n", nil, nil, `config.yaml): "1.5" is not a whole number`},
		"no number, fraction":  {"profiles: {session: {cpus: all}}\n", nil, nil, `"all" is not a number`},
		"neither true nor not": {"allow_unenforced: maybe\n", nil, nil, `"maybe" is not true or false`},
		"a duration's flag":    {"", []string{"CELLBLOCK_TIMEOUT_MAX=9"}, nil, "(CELLBLOCK_TIMEOUT_MAX): \"9\" is not a duration\nHint: Write it as 90s"},
		"a group":              {"log: x\n", nil, nil, "log.format, log.level"},
		"where it stands":      {"colour: x\n", nil, nil, "config.yaml"},
		"no port":              {"", nil, []string{"--addr", "127.0.0.1"}, "127.0.0.1:8787"},
		"an empty port":        {"", nil, []string{"--addr", "localhost:"}, "127.0.0.1:8787"},
		"a port by no name":    {"", nil, []string{"--addr", "127.0.0.1:x"}, "65535"},
		"a port too high":      {"addr: 127.0.0.1:99999\n", nil, nil, "65535"},
		"a URL for an address": {"addr: http://127.0.0.1:8787\n", nil, nil, "127.0.0.1:8787"},
		"no idle time":         {"sessions: {minted_idle: 0s}\n", nil, nil, "5m"},
		"a minute's history":   {"history: {max_age: 1m}\n", nil, nil, "at least 1h"},
		"negative history":     {"", []string{"CELLBLOCK_HISTORY_MAX_AGE=-1h"}, nil, "history.max_age"},
		"half a day":           {"history: {max_age: 0.5d}\n", nil, nil, "is not a duration"},
		"a tiny history":       {"history: {max_bytes: 1MB}\n", nil, nil, "at least 64MB"},
		"short idle time-out":  {"sessions: {idle_timeout: 30ms}\n", nil, nil, "0 for no end"},
		"negative limit":       {"sessions: {per_owner: -1}\n", nil, nil, "0 for no limit"},
		"negative life":        {"sessions: {max_life: -1h}\n", nil, nil, "0 for no end"},
		"negative requests":    {"http: {max_requests: -1}\n", nil, nil, "http.max_requests"},
		"a share above all":    {"http: {max_connections: 10}\n", nil, nil, "http.connections_per_client is 500"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, tt.file, tt.environ, tt.flags...)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Text(err), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Every key is documented, and every documented key exists.
func TestConfigurationIsDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	for key := range defaults() {
		if !strings.Contains(string(doc), "`"+key+"`") {
			t.Errorf("docs/configuration.md lacks %s", key)
		}
	}
}

// Every flag that configures is named like its key, or it would be ignored.
func TestFlagsAreKeys(t *testing.T) {
	root := newRoot()
	for _, name := range []string{"serve", "stdio"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "config" {
				return
			}
			for key := range defaults() {
				if strings.NewReplacer(".", "-", "_", "-").Replace(key) == f.Name {
					return
				}
			}
			t.Errorf("%s --%s is no key", name, f.Name)
		})
	}
}

func TestImagesBuildSettings(t *testing.T) {
	for file, want := range map[string]string{
		"images_build: {max: 0}":                     "images_build.max is 0",
		"images_build: {limit: 1s}":                  "images_build.limit is 1s",
		"images_build: {memory: 1MB}":                "images_build.memory",
		"images_build: {keep_age: 1s}":               "images_build.keep_age is 1s",
		"images_build: {pip_index_url: index}":       "images_build.pip_index_url is no address",
		"images_build: {ca_file: /no/such/file}":     "images_build.ca_file",
		"images_build: {pip_index: https://x}":       "images_build.pip_index",
		"images_build: {keep_age: 0, keep_bytes: 0}": "",
		"images_build: {min_free: 0}":                "",
		"images_build: {min_free: -1}":               "min_free",
	} {
		if _, err := load(t, file, nil); want == "" && err != nil || want != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", file, err)
		}
	}
	cfg, err := load(t, "", []string{"CELLBLOCK_IMAGES_BUILD_PIP_INDEX_URL=https://index.example/simple", "CELLBLOCK_IMAGES_ALLOWED=team/*,other:1", "CELLBLOCK_IMAGES_PYTHON=mine:1"})
	if err != nil || cfg.ImagesBuild.PipIndexURL != "https://index.example/simple" || len(cfg.ImagesAllowed) != 2 || cfg.Images["python"] != "mine:1" {
		t.Errorf("%+v, %v", cfg, err)
	}
}
