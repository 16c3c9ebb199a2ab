package main

import (
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellblock/egress"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// maxPool bounds pool_size.
const maxPool = 32

var moduleName = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)

// choices are the settings that take one of a few words.
var choices = []struct {
	key     string
	of      func(*Config) string
	allowed []string
	means   string
}{
	{key: "provisioner", of: func(c *Config) string { return c.Provisioner }, allowed: []string{"auto", "docker", "local"}, means: " Local is a sandbox on this host."},
	{key: "sandbox", of: func(c *Config) string { return c.Sandbox }, allowed: []string{"bwrap", "none"}},
	{key: "docker.carrier", of: func(c *Config) string { return c.Docker.Carrier }, allowed: []string{"auto", "socket", "stdio"}},
	{key: "docker.files", of: func(c *Config) string { return c.Docker.Files }, allowed: []string{"auto", "bind", "volume"}},
	{key: "on_shutdown", of: func(c *Config) string { return c.OnShutdown }, allowed: []string{keepKernels, stopKernels, ""}},
	{key: "log.level", of: func(c *Config) string { return strings.ToLower(c.Log.Level) }, allowed: []string{"debug", "info", "warn", "error"}},
	{key: "log.format", of: func(c *Config) string { return c.Log.Format }, allowed: []string{"text", "json"}},
}

// completeChoices lets shells complete the words of a command's own flags that are choices.
func completeChoices(cmd *cobra.Command, flags *pflag.FlagSet) {
	for _, choice := range choices {
		name := flagName(choice.key)
		if flags.Lookup(name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(written(choice.allowed), cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic("cellblock: " + err.Error()) // the flag is there, and is given once
		}
	}
}

// written are the words of a choice that can be written, without the one that says nothing.
func written(allowed []string) []string {
	return slices.DeleteFunc(slices.Clone(allowed), func(word string) bool { return word == "" })
}

// check refuses values that break a rule. It makes paths absolute.
func (c *Config) check() error {
	for _, choice := range choices {
		if value := choice.of(c); !slices.Contains(choice.allowed, value) {
			return fault.New(fault.Invalid, "configuration: %s is %q", choice.key, value).
				WithHint("Use one of: %s.%s", strings.Join(written(choice.allowed), ", "), choice.means)
		}
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" || strings.ContainsAny(host, " /") {
		return fault.New(fault.Invalid, "configuration: addr is %q", c.Addr).
			WithHint("Write host and port as 127.0.0.1:8787; a port is a number up to 65535, and 0 takes a free one.")
	}
	if c.Timeout.Default < time.Second || c.Timeout.Max < c.Timeout.Default {
		return fault.New(fault.Invalid, "configuration: timeout.default is %s and timeout.max is %s", c.Timeout.Default, c.Timeout.Max).
			WithHint("Both are durations as 10m or 1h; the default is at least 1s and not above the most.")
	}
	if err := c.Sessions.check(); err != nil {
		return err
	}
	if err := c.History.check(); err != nil {
		return err
	}
	if err := c.ImagesBuild.check(); err != nil {
		return err
	}
	if err := c.checkAccess(); err != nil {
		return err
	}
	for name, l := range c.Languages {
		if err := l.check(name); err != nil {
			return err
		}
	}
	if c.PoolSize < 0 || c.PoolSize > maxPool {
		return fault.New(fault.Invalid, "configuration: pool_size is %d", c.PoolSize).
			WithHint("Use a number from 0, for no pool, to %d.", maxPool)
	}
	for _, module := range c.PoolPreload {
		if !moduleName.MatchString(module) {
			return fault.New(fault.Invalid, "configuration: pool_preload: %q is no name of a Python module", module).
				WithHint("Use a list such as numpy,pandas,matplotlib.")
		}
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
	if err := c.checkProfiles(); err != nil {
		return err
	}
	if _, err := c.Network.authorities(); err != nil {
		return err
	}
	if _, err := egress.New(c.egress()); err != nil {
		return fault.New(fault.Invalid, "configuration: %w", err).WithHint("%s", fault.Hint(err))
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

// check refuses times that are too short for anything, and limits below nothing.
func (s SessionsConfig) check() error {
	if s.MintedIdle < time.Second {
		return fault.New(fault.Invalid, "configuration: sessions.minted_idle is %s", s.MintedIdle).
			WithHint("Use a duration of at least 1s, such as 5m.")
	}
	for key, d := range map[string]time.Duration{"idle_timeout": s.IdleTimeout, "max_life": s.MaxLife, "unattended": s.Unattended} {
		if err := checkEnd("sessions."+key, d); err != nil {
			return err
		}
	}
	for key, n := range map[string]int64{
		"per_owner": int64(s.PerOwner), "max": int64(s.Max), "max_waiting": int64(s.MaxWaiting), "max_running": int64(s.MaxRunning), "max_queue": int64(s.MaxQueue),
		"min_free_memory": int64(s.MinFreeMemory), "workspace_max_bytes": int64(s.WorkspaceMaxBytes),
	} {
		if n < 0 {
			return fault.New(fault.Invalid, "configuration: sessions.%s is %d", key, n).WithHint("Use 0 for no limit.")
		}
	}
	return nil
}

// check refuses times that are too short for anything.
func (l LanguageConfig) check(name string) error {
	for key, d := range map[string]*time.Duration{"idle_timeout": l.IdleTimeout, "max_life": l.MaxLife} {
		if d == nil {
			continue
		}
		if err := checkEnd("languages."+name+"."+key, *d); err != nil {
			return err
		}
	}
	return nil
}

func checkEnd(key string, d time.Duration) error {
	if d == 0 || d >= time.Second {
		return nil
	}
	return fault.New(fault.Invalid, "configuration: %s is %s", key, d).
		WithHint("Use a duration of at least 1s, such as 30m, or 0 for no end.")
}

// check refuses limits under which results would be gone before anybody has read them.
func (h HistoryConfig) check() error {
	if h.MaxAge != 0 && h.MaxAge < time.Hour {
		return fault.New(fault.Invalid, "configuration: history.max_age is %s", h.MaxAge).
			WithHint("Use at least 1h, such as 90d, or 0 for no limit.")
	}
	if h.MaxBytes != 0 && h.MaxBytes < 64<<20 {
		return fault.New(fault.Invalid, "configuration: history.max_bytes is %d", h.MaxBytes).
			WithHint("Use at least 64MB, such as 10GB, or 0 for no limit.")
	}
	return nil
}
