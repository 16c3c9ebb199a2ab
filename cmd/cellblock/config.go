package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"time"

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
	// OnShutdown is "keep", so that kernels go on when the server ends and the next one finds them, or "stop". Empty: keep
	// under serve, stop under stdio.
	OnShutdown string `koanf:"on_shutdown"`
	// AllowedOrigins and AllowedHosts are what browsers may send besides this machine's own names.
	AllowedOrigins []string `koanf:"allowed_origins"`
	AllowedHosts   []string `koanf:"allowed_hosts"`

	// PoolSize is how many kernels of each language are kept ready, PoolPreload what those of Python have imported already.
	PoolSize    int      `koanf:"pool_size"`
	PoolPreload []string `koanf:"pool_preload"`

	// TrustedProxies are the addresses, or networks as 10.0.0.0/8, of proxies whose word on their clients is taken.
	TrustedProxies []string `koanf:"trusted_proxies"`
	// DevAllowRemote lets dev mode listen on addresses that others reach.
	DevAllowRemote bool `koanf:"dev_allow_remote"`

	// Toolsets are the groups of tools that are offered (mcpserver.CheckToolsets).
	Toolsets []string `koanf:"toolsets"`

	TLS      TLSConfig         `koanf:"tls"`
	Viewer   ViewerConfig      `koanf:"viewer"`
	Metrics  MetricsConfig     `koanf:"metrics"`
	Audit    AuditConfig       `koanf:"audit"`
	Calls    CallsConfig       `koanf:"calls"`
	HTTP     HTTPConfig        `koanf:"http"`
	Output   OutputConfig      `koanf:"output"`
	Timeout  TimeoutConfig     `koanf:"timeout"`
	Sessions SessionsConfig    `koanf:"sessions"`
	History  HistoryConfig     `koanf:"history"`
	Docker   DockerConfig      `koanf:"docker"`
	Images   map[string]string `koanf:"images"`
	// ImagesAllowed are images that callers may name for their sessions besides the server's own and theirs.
	ImagesAllowed []string                  `koanf:"images_allowed"`
	ImagesBuild   ImagesBuildConfig         `koanf:"images_build"`
	Languages     map[string]LanguageConfig `koanf:"languages"`
	Profiles      map[string]ProfileConfig  `koanf:"profiles"`
	Network       NetworkConfig             `koanf:"network"`
	// MountRoots are the folders of this host below which profiles may mount.
	MountRoots []string  `koanf:"mount_roots"`
	Log        LogConfig `koanf:"log"`

	// origins say where each setting comes from.
	origins origins
}

// LanguageConfig says what is otherwise for kernels of one language.
type LanguageConfig struct {
	// IdleTimeout and MaxLife stand for those of SessionsConfig; nil: they are the same.
	IdleTimeout *time.Duration `koanf:"idle_timeout"`
	MaxLife     *time.Duration `koanf:"max_life"`
}

// TLSConfig names the files with the server's certificate, its chain behind it, and the key; both empty: HTTP is served.
type TLSConfig struct {
	Cert string `koanf:"cert"`
	Key  string `koanf:"key"`
}

// ViewerConfig says how people sign in to the viewer at the identity provider (viewer.ProviderConfig).
type ViewerConfig struct {
	ClientID     string   `koanf:"client_id"`
	ClientSecret string   `koanf:"client_secret"`
	Scopes       []string `koanf:"scopes"`
}

// MetricsConfig says whether metrics are served, and where, if not on the server's own address.
type MetricsConfig struct {
	Enabled bool   `koanf:"enabled"`
	Addr    string `koanf:"addr"`
}

// AuditConfig says where the audit log is and what is in it (audit.Options).
type AuditConfig struct {
	Enabled bool `koanf:"enabled"`
	// Path is the file; empty: audit.jsonl in the data folder.
	Path     string `koanf:"path"`
	Required bool   `koanf:"required"`
	Code     bool   `koanf:"code"`
	MaxBytes Size   `koanf:"max_bytes"`
}

// CallsConfig bounds how many tools an owner calls a minute in the long run, and how many at once; PerMinute 0: no limit.
type CallsConfig struct {
	PerMinute int `koanf:"per_minute"`
	Burst     int `koanf:"burst"`
}

// NetworkConfig says how this machine reaches others, for the profiles that have a network.
type NetworkConfig struct {
	// Proxy and NoProxy are those of egress.Config.
	Proxy   string `koanf:"proxy"`
	NoProxy string `koanf:"no_proxy"`
	// CAFile is a file of certificates (PEM) that kernels with a network trust besides their image's; empty: no more.
	CAFile string `koanf:"ca_file"`
}

// HTTPConfig bounds what clients hold at the same time (web.Limits); 0: no limit.
type HTTPConfig struct {
	MaxConnections       int `koanf:"max_connections"`
	ConnectionsPerClient int `koanf:"connections_per_client"`
	MaxRequests          int `koanf:"max_requests"`
	RequestsPerOwner     int `koanf:"requests_per_owner"`
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

// SessionsConfig says how long sessions live.
type SessionsConfig struct {
	// MintedIdle is how long a session that was made without a name waits for its next use.
	MintedIdle time.Duration `koanf:"minted_idle"`
	// IdleTimeout is how long a kernel waits for its next cell, MaxLife how long it lives in all; 0: for ever.
	IdleTimeout time.Duration `koanf:"idle_timeout"`
	MaxLife     time.Duration `koanf:"max_life"`
	// SaveVariables has kernels save their variables before they end so.
	SaveVariables bool `koanf:"save_variables"`
	// CheckpointAfter is how long cells run together before they do so also while they go on; 0: they do not.
	CheckpointAfter time.Duration `koanf:"checkpoint_after"`
	// Unattended is how long a kernel goes on while no server is there; 0: for ever.
	Unattended time.Duration `koanf:"unattended"`
	// PerOwner and Max bound the sessions that have a kernel, MaxWaiting and MaxRunning the cells of all sessions; 0: no limit.
	PerOwner   int `koanf:"per_owner"`
	Max        int `koanf:"max"`
	MaxWaiting int `koanf:"max_waiting"`
	MaxRunning int `koanf:"max_running"`
	// MaxQueue bounds the cells that wait in one session; 0: no limit.
	MaxQueue int `koanf:"max_queue"`
	// MinFreeMemory is what this host must have free for another kernel, WorkspaceMaxBytes how large a workspace may get;
	// 0: that is not looked at.
	MinFreeMemory     Size `koanf:"min_free_memory"`
	WorkspaceMaxBytes Size `koanf:"workspace_max_bytes"`
}

// HistoryConfig says how much of what sessions did is kept; 0 is no limit.
type HistoryConfig struct {
	// MaxAge is how long outputs are kept, and MaxBytes what the history may take on the disk (history.Options).
	MaxAge   time.Duration `koanf:"max_age"`
	MaxBytes Size          `koanf:"max_bytes"`
}

// DockerConfig is for the docker provisioner.
type DockerConfig struct {
	// Host is the engine's address; empty: DOCKER_HOST, then the usual sockets of Docker and Podman.
	Host string `koanf:"host"`
	// Carrier is "auto", "socket" or "stdio".
	Carrier string `koanf:"carrier"`
	// Files is "auto", "bind" or "volume".
	Files string `koanf:"files"`
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

// defaults is the lowest layer. It also says which keys exist.
func defaults() map[string]any {
	all := map[string]any{
		"addr": "127.0.0.1:8787", "public_url": "",
		"data_dir": defaultDataDir(), "run_dir": defaultRunDir(),
		"provisioner": "auto", "sandbox": "bwrap", "allow_unenforced": false,
		"kernel_uid": docker.DefaultUID, "kernel_gid": docker.DefaultUID,
		"python": "", "shim": "", "on_shutdown": "",
		"allowed_origins": []string{}, "allowed_hosts": []string{},
		"trusted_proxies": []string{}, "dev_allow_remote": false, "tls.cert": "", "tls.key": "",
		"viewer.client_id": "", "viewer.client_secret": "", "viewer.scopes": []string{},
		"metrics.enabled": false, "metrics.addr": "",
		"audit.enabled": true, "audit.path": "", "audit.required": false, "audit.code": false, "audit.max_bytes": "64MB",
		"calls.per_minute": 600, "calls.burst": 100,
		"http.max_connections": 2000, "http.connections_per_client": 500, "http.max_requests": 2000, "http.requests_per_owner": 200,
		"pool_size": 1, "pool_preload": []string{},
		"toolsets": mcpserver.DefaultToolsets(), "output.image_side": mcpserver.DefaultImageSide,
		"timeout.default": "10m", "timeout.max": "1h", "sessions.minted_idle": "5m", "sessions.unattended": "24h",
		"sessions.idle_timeout": "30m", "sessions.max_life": "24h", "sessions.save_variables": true, "sessions.checkpoint_after": "10s",
		"sessions.per_owner": 20, "sessions.max": 100, "sessions.max_waiting": 1000, "sessions.max_running": 100, "sessions.max_queue": 32,
		"sessions.min_free_memory": "512MB", "sessions.workspace_max_bytes": "10GB",
		"history.max_age": "90d", "history.max_bytes": "10GB",
		"docker.host": "", "docker.carrier": "auto", "docker.files": "auto",
		"images.python":                 "",
		"languages.python.idle_timeout": nil, "languages.python.max_life": nil,
		"profiles.session.memory": "2GB", "profiles.session.cpus": 2.0, "profiles.session.pids": 256,
		"profiles.session.file_size": "4GB", "profiles.session.tmp": "256MB", "profiles.session.files": 4096,
		"profiles.isolated.memory": "512MB", "profiles.isolated.cpus": 0.5, "profiles.isolated.pids": 128, "profiles.isolated.once": true,
		"profiles.development.memory": "4GB", "profiles.development.network.mode": "internet", "mount_roots": []string{},
		"network.proxy": "", "network.no_proxy": "", "network.ca_file": "",
		"log.level": "info", "log.format": "text", "images_allowed": []string{},
	}
	maps.Copy(all, imagesBuildDefaults)
	return all
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
