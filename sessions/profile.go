package sessions

import (
	"maps"
	"slices"
	"strings"
	"time"

	"cellblock/egress"
	"cellblock/internal/fault"
	"cellblock/internal/nearest"
	"cellblock/kernels"
)

// DefaultProfile is what a session runs under whose first call names no profile.
const DefaultProfile = "session"

// Profile is a named set of what a session's kernels may use, and how.
type Profile struct {
	// Limits bound each kernel.
	Limits kernels.Limits
	// DefaultTimeout and MaxTimeout stand for those of Config; 0: they are the same.
	DefaultTimeout, MaxTimeout time.Duration
	// Network says what kernels may connect to, through the server.
	Network egress.Policy
	// Mounts, Runtime and Devices are those of kernels.Spec.
	Mounts  []kernels.Mount
	Runtime string
	Devices []string
	// Once tells that a session lives for one cell: then its kernel and its files are gone. What the cell produced is kept.
	Once bool
}

// withProfiles fills in the default profile, and what profiles leave to the configuration.
func (c Config) withProfiles() Config {
	c.Profiles = maps.Clone(c.Profiles)
	if c.Profiles == nil {
		c.Profiles = map[string]Profile{}
	}
	if _, ok := c.Profiles[DefaultProfile]; !ok {
		c.Profiles[DefaultProfile] = Profile{}
	}
	for name, p := range c.Profiles {
		setDefault(&p.MaxTimeout, c.MaxTimeout)
		setDefault(&p.DefaultTimeout, min(c.DefaultTimeout, p.MaxTimeout))
		c.Profiles[name] = p
	}
	return c
}

// LongestTimeout is the most that a cell of any profile may ask for.
func (c Config) LongestTimeout() (longest time.Duration) {
	for _, p := range c.Profiles {
		longest = max(longest, p.MaxTimeout)
	}
	return longest
}

// profile checks a request's profile.
func (c Config) profile(name string) error {
	if _, ok := c.Profiles[name]; ok {
		return nil
	}
	known := slices.Sorted(maps.Keys(c.Profiles))
	err := fault.New(fault.Invalid, "profile: %q is not one of %s", clip(name, 40), strings.Join(known, ", "))
	if near := nearest.Of(name, known); near != "" {
		return err.WithHint("do you mean %s?", near)
	}
	return err
}

// timeout checks the timeout of a request under the profile; zero means the default.
func (p Profile) timeout(asked time.Duration) (time.Duration, error) {
	switch {
	case asked == 0:
		return p.DefaultTimeout, nil
	case asked < 0 || asked > p.MaxTimeout:
		return 0, fault.New(fault.Invalid, "timeout_seconds: %v is not between 1 and %v seconds",
			asked.Seconds(), p.MaxTimeout.Seconds()).WithHint("do the work in several cells; only the operator can allow more (timeout.max)")
	}
	return asked, nil
}

// profile is what the session runs under.
func (s *session) profile() Profile { return s.manager.cfg.Profiles[s.choice.Profile] }
