package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
	"cellblock/kernels"
	"cellblock/kernels/docker"
	"cellblock/mcpserver"
)

// Config is the whole configuration. Every field is a key of the YAML file (nested with dots), an environment variable
// (CELLBLOCK_ and the key in capitals, dots as underscores) and, where commands say so, a flag.
// Precedence: flag, environment, file, default.
type Config struct {
	// Addr is where HTTP is served. Without an identity provider only loopback addresses are allowed.
	Addr string `koanf:"addr"`
	// PublicURL is the address that clients use, when it is not Addr: behind a proxy.
	PublicURL string `koanf:"public_url"`
	// DataDir keeps what must outlive the server: keys, workspaces.
	DataDir string `koanf:"data_dir"`
	// RunDir keeps sockets.
	RunDir string `koanf:"run_dir"`
	// Provisioner is "auto", "docker" or "local".
	Provisioner string `koanf:"provisioner"`
	// Sandbox is "bwrap", or "none" to run kernels of the local provisioner without isolation.
	Sandbox string `koanf:"sandbox"`
	// AllowUnenforced launches kernels although this host ignores one of their limits.
	AllowUnenforced bool `koanf:"allow_unenforced"`
	// KernelUID and KernelGID are who kernels run as when the server runs as root.
	KernelUID int `koanf:"kernel_uid"`
	KernelGID int `koanf:"kernel_gid"`
	// Python is the host's interpreter for the local provisioner; empty: the first that has ipykernel.
	Python string `koanf:"python"`
	// Shim is the cellblock-shim binary; empty: beside this program.
	Shim string `koanf:"shim"`
	// AllowedOrigins and AllowedHosts are what browsers may send besides this machine's own names.
	AllowedOrigins []string `koanf:"allowed_origins"`
	AllowedHosts   []string `koanf:"allowed_hosts"`

	// Toolsets are the groups of tools that are offered (mcpserver.CheckToolsets).
	Toolsets []string `koanf:"toolsets"`

	Output   OutputConfig             `koanf:"output"`
	Timeout  TimeoutConfig            `koanf:"timeout"`
	Docker   DockerConfig             `koanf:"docker"`
	Images   map[string]string        `koanf:"images"`
	Profiles map[string]ProfileConfig `koanf:"profiles"`
	Log      LogConfig                `koanf:"log"`
}

// OutputConfig says how outputs become results.
type OutputConfig struct {
	// ImageSide is the longest side of an image in a result, in pixels; larger ones are scaled down to it.
	ImageSide int `koanf:"image_side"`
}

// TimeoutConfig bounds how long a cell may run.
type TimeoutConfig struct {
	Default time.Duration `koanf:"default"`
	Max     time.Duration `koanf:"max"`
}

// DockerConfig is for the docker provisioner.
type DockerConfig struct {
	// Host is the engine's address; empty: DOCKER_HOST, then the usual sockets of Docker and Podman.
	Host string `koanf:"host"`
	// Carrier is "auto", "socket" or "stdio".
	Carrier string `koanf:"carrier"`
}

// ProfileConfig is a named set of limits.
type ProfileConfig struct {
	Memory   Size    `koanf:"memory"`
	CPUs     float64 `koanf:"cpus"`
	PIDs     int64   `koanf:"pids"`
	FileSize Size    `koanf:"file_size"`
	Tmp      Size    `koanf:"tmp"`
	Files    int64   `koanf:"files"`
}

// Limits converts the profile for the provisioners.
func (p ProfileConfig) Limits() kernels.Limits {
	return kernels.Limits{
		Memory: int64(p.Memory), CPUs: p.CPUs, PIDs: p.PIDs,
		FileSize: int64(p.FileSize), Tmp: int64(p.Tmp), Files: p.Files,
	}
}

// check refuses limits under which no kernel comes up: what would then fail says nothing of the reason.
func (p ProfileConfig) check(name string) error {
	for _, limit := range []struct {
		key          string
		value, least float64
		unit         string
	}{
		{"memory", float64(p.Memory), 128 << 20, "128MB"}, {"cpus", p.CPUs, 0.1, "0.1"}, {"pids", float64(p.PIDs), 32, "32"},
		{"file_size", float64(p.FileSize), 1 << 20, "1MB"}, {"tmp", float64(p.Tmp), 1 << 20, "1MB"}, {"files", float64(p.Files), 64, "64"},
	} {
		if limit.value != 0 && limit.value < limit.least {
			return fault.New(fault.Invalid, "configuration: profiles.%s.%s is too little for a kernel", name, limit.key).
				WithHint("Give it at least %s, or 0 for no limit.", limit.unit)
		}
	}
	return nil
}

// LogConfig is for the server's own log, on stderr.
type LogConfig struct {
	// Level is debug, info, warn or error; LOG_LEVEL is honoured too.
	Level string `koanf:"level"`
	// Format is text or json.
	Format string `koanf:"format"`
}

// Size is a number of bytes, written as 2GB, 512MB, 65536.
type Size int64

// UnmarshalText reads a size in binary units.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := units.RAMInBytes(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a size; write it as 512MB or 2GB", text)
	}
	*s = Size(n)
	return nil
}

// sessionProfile is the profile that every session runs under.
const sessionProfile = "session"

// defaults is the lowest layer. It also says which keys exist.
func defaults() map[string]any {
	return map[string]any{
		"addr": "127.0.0.1:8787", "public_url": "",
		"data_dir": defaultDataDir(), "run_dir": defaultRunDir(),
		"provisioner": "auto", "sandbox": "bwrap", "allow_unenforced": false,
		"kernel_uid": docker.DefaultUID, "kernel_gid": docker.DefaultUID,
		"python": "", "shim": "",
		"allowed_origins": []string{}, "allowed_hosts": []string{},
		"toolsets": mcpserver.DefaultToolsets(), "output.image_side": mcpserver.DefaultImageSide,
		"timeout.default": "10m", "timeout.max": "1h",
		"docker.host": "", "docker.carrier": "auto",
		"images.python":           "",
		"profiles.session.memory": "2GB", "profiles.session.cpus": 2.0, "profiles.session.pids": 256,
		"profiles.session.file_size": "4GB", "profiles.session.tmp": "256MB", "profiles.session.files": 4096,
		"log.level": "info", "log.format": "text",
	}
}

func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/cellblock"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "cellblock")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "cellblock")
	}
	return filepath.Join(home, ".local", "state", "cellblock")
}

func defaultRunDir() string {
	if os.Geteuid() == 0 && runtime.GOOS == "linux" {
		return "/run/cellblock"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "cellblock")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("cellblock-%d", os.Getuid()))
}

// sources are where configuration comes from; tests give their own.
type sources struct {
	flags   *pflag.FlagSet
	environ []string
	// files are candidates in order of preference; only the first that exists is read. When named is set, it must exist.
	files []string
	named string
}

// configFiles lists where a configuration file is looked for.
func configFiles() []string {
	files := []string{"cellblock.yaml"}
	if dir, err := os.UserConfigDir(); err == nil {
		files = append(files, filepath.Join(dir, "cellblock", "config.yaml"))
	}
	return append(files, "/etc/cellblock/config.yaml")
}

// environment variables with our prefix that are not configuration keys.
var foreignEnv = []string{"CELLBLOCK_CONFIG", "CELLBLOCK_TOKEN", "CELLBLOCK_URL", "CELLBLOCK_SHIM_BINARY"}

// loadConfig reads all layers and checks the result.
func loadConfig(src sources) (*Config, error) {
	k := koanf.New(".")
	base := defaults()
	known := make([]string, 0, len(base))
	for key := range base {
		known = append(known, key)
	}
	slices.Sort(known)
	layers := []func() (map[string]any, error){
		func() (map[string]any, error) { return base, nil },
		src.fromFile,
		func() (map[string]any, error) { return src.fromEnv(known) },
		func() (map[string]any, error) { return src.fromFlags(known), nil },
	}
	for _, layer := range layers {
		values, err := layer()
		if err != nil {
			return nil, err
		}
		for key := range values {
			if err := checkKey(key, known); err != nil {
				return nil, err
			}
		}
		if err := src.resolveEnvReferences(values); err != nil {
			return nil, err
		}
		if err := k.Load(confmap.Provider(values, "."), nil); err != nil {
			return nil, err
		}
	}
	var cfg Config
	err := k.UnmarshalWithConf("", &cfg, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: &cfg, WeaklyTypedInput: true, ErrorUnused: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.TextUnmarshallerHookFunc(),
			decodeDuration,
			mapstructure.StringToSliceHookFunc(",")),
	}})
	if err != nil {
		return nil, fault.New(fault.Invalid, "configuration: %w", err)
	}
	return &cfg, cfg.check()
}

// decodeDuration reads durations, and only with a unit: a bare 5 would be five nanoseconds.
func decodeDuration(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return value, nil
	}
	text := fmt.Sprint(value)
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a duration; write it as 90s, 10m or 1h", text)
	}
	return d, nil
}

// checkKey refuses unknown keys. images.* and profiles.* take any name below them.
func checkKey(key string, known []string) error {
	if slices.Contains(known, key) || strings.HasPrefix(key, "images.") {
		return nil
	}
	err := fault.New(fault.Invalid, "configuration: unknown key %q", key)
	if near := nearest.Of(key, known); near != "" {
		return err.WithHint("Did you mean %q?", near)
	}
	return err.WithHint("Known keys: %s.", strings.Join(known, ", "))
}

func (s sources) fromFile() (map[string]any, error) {
	path := s.named
	if path == "" {
		for _, candidate := range s.files {
			if _, err := os.Stat(candidate); err == nil {
				path = candidate
				break
			}
		}
	}
	if path == "" {
		return nil, nil
	}
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.NotFound, "configuration: no file %s", path).
				WithHint("Check --config and CELLBLOCK_CONFIG.")
		}
		return nil, fault.New(fault.Invalid, "configuration: %s: %w", path, err)
	}
	return k.All(), nil
}

func envName(key string) string {
	return "CELLBLOCK_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func (s sources) fromEnv(known []string) (map[string]any, error) {
	byName := make(map[string]string, len(known))
	names := make([]string, 0, len(known))
	for _, key := range known {
		byName[envName(key)] = key
		names = append(names, envName(key))
	}
	values := map[string]any{}
	for _, kv := range s.environ {
		name, value, _ := strings.Cut(kv, "=")
		switch key, ok := byName[name]; {
		case ok:
			values[key] = value
		case name == "LOG_LEVEL" && values["log.level"] == nil:
			values["log.level"] = strings.ToLower(value)
		case strings.HasPrefix(name, "CELLBLOCK_IMAGES_"):
			values["images."+strings.ToLower(strings.TrimPrefix(name, "CELLBLOCK_IMAGES_"))] = value
		case strings.HasPrefix(name, "CELLBLOCK_") && !slices.Contains(foreignEnv, name) && !strings.HasPrefix(name, "CELLBLOCK_TEST_"):
			err := fault.New(fault.Invalid, "configuration: unknown environment variable %s", name)
			if near := nearest.Of(name, names); near != "" {
				return nil, err.WithHint("Did you mean %s?", near)
			}
			return nil, err.WithHint("Unset it, or see docs/configuration.md for the names.")
		}
	}
	return values, nil
}

// fromFlags takes the flags that were given; a flag is named like its key, with dashes.
func (s sources) fromFlags(known []string) map[string]any {
	values := map[string]any{}
	if s.flags == nil {
		return values
	}
	s.flags.Visit(func(f *pflag.Flag) {
		key := strings.ReplaceAll(f.Name, "-", "_")
		if i := slices.IndexFunc(known, func(k string) bool { return strings.ReplaceAll(k, ".", "_") == key }); i >= 0 {
			values[known[i]] = f.Value.String()
		}
	})
	return values
}

// resolveEnvReferences replaces values "env:NAME" by the variable's value.
func (s sources) resolveEnvReferences(values map[string]any) error {
	for key, v := range values {
		text, ok := v.(string)
		if !ok || !strings.HasPrefix(text, "env:") {
			continue
		}
		name := strings.TrimPrefix(text, "env:")
		i := slices.IndexFunc(s.environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if i < 0 {
			return fault.New(fault.Invalid, "configuration: %s refers to the environment variable %s, which is not set", key, name)
		}
		values[key] = strings.TrimPrefix(s.environ[i], name+"=")
	}
	return nil
}

// check refuses values that break a rule. It makes paths absolute.
func (c *Config) check() error {
	choices := []struct {
		key, value string
		allowed    []string
	}{
		{"provisioner", c.Provisioner, []string{"auto", "docker", "local"}},
		{"sandbox", c.Sandbox, []string{"bwrap", "none"}},
		{"docker.carrier", c.Docker.Carrier, []string{"auto", "socket", "stdio"}},
		{"log.level", strings.ToLower(c.Log.Level), []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, []string{"text", "json"}},
	}
	for _, choice := range choices {
		if !slices.Contains(choice.allowed, choice.value) {
			return fault.New(fault.Invalid, "configuration: %s is %q", choice.key, choice.value).
				WithHint("Use one of: %s.", strings.Join(choice.allowed, ", "))
		}
	}
	if c.Timeout.Default < time.Second || c.Timeout.Max < c.Timeout.Default {
		return fault.New(fault.Invalid, "configuration: timeout.default is %s and timeout.max is %s", c.Timeout.Default, c.Timeout.Max).
			WithHint("Both are durations as 10m or 1h; the default is at least 1s and not above the most.")
	}
	if err := mcpserver.CheckToolsets(c.Toolsets); err != nil {
		return fault.New(fault.Invalid, "configuration: toolsets: %w", err)
	}
	if c.Output.ImageSide < 64 || c.Output.ImageSide > 8192 {
		return fault.New(fault.Invalid, "configuration: output.image_side is %d", c.Output.ImageSide).
			WithHint("Use a number of pixels between 64 and 8192.")
	}
	if c.KernelUID <= 0 || c.KernelGID <= 0 {
		return fault.New(fault.Invalid, "configuration: kernel_uid is %d and kernel_gid is %d", c.KernelUID, c.KernelGID).
			WithHint("Kernels never run as root: use numbers above 0.")
	}
	if u, err := url.Parse(c.PublicURL); c.PublicURL != "" && (err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || strings.Trim(u.Path, "/") != "") {
		return fault.New(fault.Invalid, "configuration: public_url is %q", c.PublicURL).
			WithHint("Write it as https://cells.example.com, without a path.")
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	for name, p := range c.Profiles {
		if err := p.check(name); err != nil {
			return err
		}
	}
	for _, dir := range []*string{&c.DataDir, &c.RunDir} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return fault.New(fault.Invalid, "configuration: %w", err)
		}
		*dir = abs
	}
	return nil
}
