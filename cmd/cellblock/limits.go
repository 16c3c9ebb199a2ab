package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/internal/nearest"
	"cellblock/kernels"
	"cellblock/sessions"
)

// limits are the settings that bound something. All can be given as a flag, too.
var limits = []struct{ key, usage string }{
	{"timeout.default", "how long a cell may run when the call does not say"},
	{"timeout.max", "the most that a call may ask for"},
	{"sessions.per_owner", "sessions with a kernel, of one owner"},
	{"sessions.max", "sessions with a kernel, of all owners"},
	{"sessions.max_running", "cells that run, of all sessions"},
	{"sessions.max_waiting", "cells that wait, of all sessions"},
	{"sessions.max_queue", "cells that wait, of one session"},
	{"sessions.min_free_memory", "memory that must be free for another kernel"},
	{"sessions.workspace_max_bytes", "how much a workspace may hold"},
	{"sessions.minted_idle", "how long a session without a given name is kept unused"},
	{"sessions.idle_timeout", "how long a kernel is kept unused"},
	{"sessions.max_life", "how long a kernel lives"},
	{"sessions.unattended", "how long a kernel goes on without a server"},
	{"languages.python.idle_timeout", "how long a Python kernel is kept unused (default: as others)"},
	{"languages.python.max_life", "how long a Python kernel lives (default: as others)"},
	{"history.max_age", "how long outputs are kept"},
	{"history.max_bytes", "what the history may take on the disk"},
	{"profiles.session.memory", "memory of one kernel and all that it starts"},
	{"profiles.session.cpus", "cores of one kernel"},
	{"profiles.session.pids", "processes and threads of one kernel"},
	{"profiles.session.file_size", "the largest file"},
	{"profiles.session.tmp", "size of /tmp"},
	{"profiles.session.files", "open files of one process"},
}

// addLimitFlags adds a flag for each limit.
func addLimitFlags(flags *pflag.FlagSet) {
	base := defaults()
	for _, l := range limits {
		usage := l.usage
		if value := base[l.key]; value != nil {
			usage += fmt.Sprintf(" (default %v)", value)
		}
		flags.String(flagName(l.key), "", usage)
	}
}

// absent are the languages that there are settings for and that do not run here: their names may be misspelt.
func (c *Config) absent(here []string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Languages)) {
		if !slices.Contains(here, name) && c.Languages[name] != (LanguageConfig{}) {
			names = append(names, name)
		}
	}
	return names
}

// warnOfAbsent tells of settings for languages that do not run here.
func (c *Config) warnOfAbsent(runtimes map[string]sessions.Runtime, logger *slog.Logger) {
	here := slices.Sorted(maps.Keys(runtimes))
	for _, name := range c.absent(here) {
		logger.Warn("there are settings for a language that does not run here", "key", "languages."+name, "hint", absentHint(name, here))
	}
}

// absentHint says what was meant by a language that does not run here, or how it comes to.
func absentHint(name string, here []string) string {
	var ours []string
	for _, l := range images.AllOurs() {
		ours = append(ours, l.Name)
	}
	if slices.Contains(ours, name) {
		return "Install it (cellblock doctor says how), or take the settings away."
	}
	if near := nearest.Of(name, append(ours, here...)); near != "" {
		return fmt.Sprintf("Did you mean languages.%s?", near)
	}
	return fmt.Sprintf("Languages that run here: %s.", orNothing(here))
}

// warnOfShares tells of an owner's share of the sessions that is more than there are: one owner may then keep out all others.
func (c *Config) warnOfShares(logger *slog.Logger) {
	if s := c.Sessions; s.Max > 0 && s.PerOwner > s.Max {
		logger.Warn("one owner may have all sessions that there can be", "sessions.per_owner", s.PerOwner, "sessions.max", s.Max,
			"hint", "Make sessions.per_owner less than sessions.max, so that room is left for others.")
	}
}

// warnOfExcess tells of profiles for which somebody has set limits that this machine, or the engine's, cannot reach.
func (c *Config) warnOfExcess(ctx context.Context, p kernels.Allower, logger *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		if doubt, err := p.Allows(ctx, kernels.Spec{Limits: c.setLimits(name)}); err == nil && doubt != nil {
			logger.Warn("a profile promises more than there is: "+doubt.Error(), "key", "profiles."+name, "hint", fault.Hint(doubt))
		}
	}
}

// withEnds are runtimes with what the configuration says of how long kernels of their language live.
func (c *Config) withEnds(runtimes map[string]sessions.Runtime) map[string]sessions.Runtime {
	all := map[string]sessions.Runtime{}
	for name, r := range runtimes {
		r.IdleTimeout, r.MaxLife = orInherit(c.Languages[name].IdleTimeout), orInherit(c.Languages[name].MaxLife)
		all[name] = r
	}
	return all
}

// orInherit is orNone for what may not be set.
func orInherit(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return orNone(*d)
}
