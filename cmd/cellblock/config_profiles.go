package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cellblock/egress"
	"cellblock/internal/fault"
	"cellblock/internal/nearest"
	"cellblock/kernels"
	"cellblock/kernels/mounts"
	"cellblock/sessions"
)

// ProfileConfig is a named set of what sessions may use. What it does not say of its limits is as in the profile session.
type ProfileConfig struct {
	Memory   Size    `koanf:"memory"`
	CPUs     float64 `koanf:"cpus"`
	PIDs     int64   `koanf:"pids"`
	FileSize Size    `koanf:"file_size"`
	Tmp      Size    `koanf:"tmp"`
	Files    int64   `koanf:"files"`
	// Timeout stands for that of Config; 0: they are the same.
	Timeout TimeoutConfig `koanf:"timeout"`
	// Network says what kernels may connect to.
	Network egress.Policy `koanf:"network"`
	// Mounts are folders of this host, below MountRoots, that kernels see.
	Mounts []MountConfig `koanf:"mounts"`
	// Runtime and Devices are those of kernels.Spec.
	Runtime string   `koanf:"runtime"`
	Devices []string `koanf:"devices"`
	// Once has each session end with its first cell.
	Once bool `koanf:"once"`
}

// MountConfig is a folder of this host in kernels of a profile.
type MountConfig struct {
	Source   string `koanf:"source"`
	Target   string `koanf:"target"`
	Writable bool   `koanf:"writable"`
}

// Limits converts the profile for the provisioners.
func (p ProfileConfig) Limits() kernels.Limits {
	return kernels.Limits{
		Memory: int64(p.Memory), CPUs: p.CPUs, PIDs: p.PIDs,
		FileSize: int64(p.FileSize), Tmp: int64(p.Tmp), Files: p.Files,
	}
}

// mounts converts them for the provisioners.
func (p ProfileConfig) mounts() (all []kernels.Mount) {
	for _, m := range p.Mounts {
		all = append(all, kernels.Mount(m))
	}
	return all
}

// profiles converts all for sessions.
func (c *Config) profiles() map[string]sessions.Profile {
	all := map[string]sessions.Profile{}
	for name, p := range c.Profiles {
		all[name] = sessions.Profile{
			Limits: p.Limits(), DefaultTimeout: p.Timeout.Default, MaxTimeout: p.Timeout.Max, Network: p.Network, Mounts: p.mounts(),
			Runtime: p.Runtime, Devices: p.Devices, Once: p.Once,
		}
	}
	return all
}

// inherited are the limits that each profile has as session has them, unless it says otherwise.
var inherited = map[string]func(to *ProfileConfig, from ProfileConfig){
	"memory":    func(to *ProfileConfig, from ProfileConfig) { to.Memory = from.Memory },
	"cpus":      func(to *ProfileConfig, from ProfileConfig) { to.CPUs = from.CPUs },
	"pids":      func(to *ProfileConfig, from ProfileConfig) { to.PIDs = from.PIDs },
	"file_size": func(to *ProfileConfig, from ProfileConfig) { to.FileSize = from.FileSize },
	"tmp":       func(to *ProfileConfig, from ProfileConfig) { to.Tmp = from.Tmp },
	"files":     func(to *ProfileConfig, from ProfileConfig) { to.Files = from.Files },
}

// profileKeys are all that a profile can say, mountKeys what each of its mounts can.
var (
	profileKeys = append([]string{"timeout.default", "timeout.max", "network.mode", "network.hosts", "network.private", "mounts", "runtime", "devices", "once"},
		slices.Sorted(maps.Keys(inherited))...)
	mountKeys = []string{"source", "target", "writable"}
)

// profileName is how a profile may be called: it is in a scope's name, and in a variable's.
var profileName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// profileKey takes a key of a profile apart.
func profileKey(key string) (profile, rest string, ok bool) {
	profile, rest, ok = strings.Cut(strings.TrimPrefix(key, "profiles."), ".")
	return profile, rest, ok && strings.HasPrefix(key, "profiles.")
}

// isEmptyProfile tells whether a key is a profile of which nothing is said: it is as the profile session, or as it is built in.
func isEmptyProfile(key string, value any) bool {
	group, isGroup := value.(map[string]any)
	name, ok := strings.CutPrefix(key, "profiles.")
	return ok && !strings.Contains(name, ".") && (value == nil || isGroup && len(group) == 0)
}

// profileVariable returns the key that an environment variable means, "" for none: CELLBLOCK_PROFILES_LAB_FILE_SIZE.
func profileVariable(name string) string {
	rest, ok := strings.CutPrefix(strings.ToLower(name), "cellblock_profiles_")
	if !ok {
		return ""
	}
	for _, key := range profileKeys {
		profile, found := strings.CutSuffix(rest, "_"+strings.ReplaceAll(key, ".", "_"))
		if found && profileName.MatchString(profile) && !slices.Contains([]string{"mounts"}, key) {
			return "profiles." + profile + "." + key
		}
	}
	return ""
}

// nearestProfileVariable returns the variable of a profile that one which means nothing was probably meant to be, "" for none.
func nearestProfileVariable(name string) string {
	const prefix = "CELLBLOCK_PROFILES_"
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return ""
	}
	var known []string
	for _, key := range profileKeys {
		known = append(known, bare(envName(key)))
	}
	for at := range rest { // a profile's name may have an underscore, too
		if rest[at] != '_' || at == 0 {
			continue
		}
		if near := nearest.Of(rest[at+1:], known); near != "" {
			return prefix + rest[:at+1] + near
		}
	}
	return ""
}

// checkProfileKey refuses a key of a profile that there is not, also in what stands in its lists.
func checkProfileKey(key, origin string, value any) error {
	profile, rest, says := profileKey(key)
	if !profileName.MatchString(profile) {
		return fault.New(fault.Invalid, "configuration: a profile cannot be called %q (%s)", profile, origin).
			WithHint("Use small letters, digits, _ and -, beginning with a letter, at most 32.")
	}
	if says && !slices.Contains(profileKeys, rest) {
		return unknownOf(key, origin, rest, "profiles."+profile+".", profileKeys)
	}
	entries, _ := value.([]any)
	for i, entry := range entries {
		fields, ok := entry.(map[string]any)
		if rest != "mounts" || !ok {
			continue // what else is wrong with it, decode says
		}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains(mountKeys, field) {
				at := fmt.Sprintf("%s.%d.", key, i)
				return unknownOf(at+field, origin, field, at, mountKeys)
			}
		}
	}
	return nil
}

// unknownOf is the error of a key that there is not, of those that begin with a prefix.
func unknownOf(key, origin, rest, prefix string, known []string) error {
	err := fault.New(fault.Invalid, "configuration: unknown key %q (%s)", key, origin)
	if below := beginning(rest+".", known); len(below) > 0 {
		return err.WithHint("It is a group, of %s.", prefix+strings.Join(below, ", "+prefix))
	}
	if near := nearest.Of(rest, known); near != "" {
		return err.WithHint("Did you mean %q?", prefix+near)
	}
	return err.WithHint("It may be %s.", strings.Join(known, ", "))
}

// inherit gives every profile the limits that no source says of it.
func (c *Config) inherit(said func(key string) bool) {
	for name, p := range c.Profiles {
		for key, take := range inherited {
			if !said("profiles." + name + "." + key) {
				take(&p, c.Profiles[sessions.DefaultProfile])
			}
		}
		p.Timeout = p.Timeout.orElse(c.Timeout)
		c.Profiles[name] = p
	}
}

// orElse takes the half that is missing from another; where both are, it stays so.
func (t TimeoutConfig) orElse(other TimeoutConfig) TimeoutConfig {
	if t == (TimeoutConfig{}) {
		return t
	}
	return TimeoutConfig{Default: cmp.Or(t.Default, min(other.Default, t.Max)), Max: cmp.Or(t.Max, max(other.Max, t.Default))}
}

// ownLimits are the limits of a profile without those that are as in the profile session, where they are told of once.
func (c *Config) ownLimits(name string) kernels.Limits {
	p, base := c.Profiles[name], c.Profiles[sessions.DefaultProfile]
	if name == sessions.DefaultProfile {
		return p.Limits()
	}
	if p.Memory == base.Memory {
		p.Memory = 0
	}
	if p.CPUs == base.CPUs {
		p.CPUs = 0
	}
	return p.Limits()
}

// setLimits are those limits of a profile that somebody has set for it: what is cut to the machine besides was promised by nobody.
func (c *Config) setLimits(name string) kernels.Limits {
	p := c.Profiles[name]
	if !c.origins.set("profiles." + name + ".memory") {
		p.Memory = 0
	}
	if !c.origins.set("profiles." + name + ".cpus") {
		p.CPUs = 0
	}
	return p.Limits()
}

// watched are the profiles as health looks at them.
func (c *Config) watched() map[string]sessions.Profile {
	all := c.profiles()
	for name, p := range all {
		p.Limits = c.setLimits(name)
		all[name] = p
	}
	return all
}

var (
	runtimeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	// deviceName is a path below /dev, or a name of the Container Device Interface: vendor/class=name.
	deviceName = regexp.MustCompile(`^(/dev/[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*|[A-Za-z0-9][A-Za-z0-9.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*)$`)
)

// checkProfiles refuses profiles under which no kernel comes up, or one could take more than it is given.
func (c *Config) checkProfiles() error {
	if err := c.Profiles[sessions.DefaultProfile].check(sessions.DefaultProfile); err != nil {
		return err // before those that have it from there
	}
	anyMounts := false
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if err := c.Profiles[name].check(name); err != nil {
			return err
		}
		anyMounts = anyMounts || len(c.Profiles[name].Mounts) > 0
	}
	for _, root := range c.MountRoots {
		if !filepath.IsAbs(root) {
			return fault.New(fault.Invalid, "configuration: mount_roots: %q is no absolute path", root).WithHint("Write it from / on.")
		}
	}
	if !anyMounts {
		return nil
	}
	roots, profiles := c.MountRoots, maps.Clone(c.Profiles)
	err := mounts.Patiently(func() error { return checkMounts(roots, profiles) })
	if fault.KindOf(err) == fault.Unavailable {
		return fault.New(fault.Unavailable, "configuration: mounts of profiles: %w", err).WithHint("%s", fault.Hint(err))
	}
	return err
}

// checkMounts refuses mounts that may not be. It looks at their folders, which may hang.
func checkMounts(roots []string, profiles map[string]ProfileConfig) error {
	var writable []kernels.Mount
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		all := profiles[name].mounts()
		if len(all) == 0 {
			continue
		}
		if _, err := mounts.Resolve(roots, all); err != nil {
			return mountsError(name, err)
		}
		writable = append(writable, slices.DeleteFunc(all, func(m kernels.Mount) bool { return !m.Writable })...)
	}
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if err := mounts.Below(profiles[name].mounts(), writable); err != nil {
			return mountsError(name, err)
		}
	}
	return nil
}

func mountsError(profile string, err error) error {
	return fault.New(fault.Invalid, "configuration: profiles.%s.mounts: %w", profile, err).WithHint("%s", fault.Hint(err))
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
	if t := p.Timeout; t != (TimeoutConfig{}) && (t.Default < time.Second || t.Max < t.Default) {
		return fault.New(fault.Invalid, "configuration: profiles.%s.timeout is %s by default and at most %s", name, t.Default, t.Max).
			WithHint("Write default and max as 10m or 1h; the default is at least 1s and not above the most.")
	}
	if _, err := p.Network.Compile(); err != nil {
		return fault.New(fault.Invalid, "configuration: profiles.%s.%w", name, err).WithHint("%s", fault.Hint(err))
	}
	if p.Once && name == sessions.DefaultProfile {
		return fault.New(fault.Invalid, "configuration: profiles.%s.once: sessions stay where a call names no profile", name).
			WithHint("Give it to another profile; isolated has it.")
	}
	if p.Runtime != "" && !runtimeName.MatchString(p.Runtime) {
		return fault.New(fault.Invalid, "configuration: profiles.%s.runtime is %q", name, p.Runtime).
			WithHint("Name a runtime as the engine knows it, such as runsc.")
	}
	for _, device := range p.Devices {
		if !deviceName.MatchString(device) || strings.Contains(device, "..") {
			return fault.New(fault.Invalid, "configuration: profiles.%s.devices: %q is no device", name, device).
				WithHint("Write a path such as /dev/fuse, or a name of the Container Device Interface such as nvidia.com/gpu=all.")
		}
	}
	return nil
}
