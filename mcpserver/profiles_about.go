package mcpserver

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"cellblock/egress"
	"cellblock/internal/words"
	"cellblock/sessions"
)

// hostsShown is how many hosts of a profile's network a model is told before it has chosen it.
const hostsShown = 2

// aboutProfiles says in a line what some profiles give that is not usual: "isolated: for this call only; lab: network internet, /data".
func (s *service) aboutProfiles(names []string) string {
	profiles := s.Sessions.Config().Profiles
	usual := profiles[sessions.DefaultProfile].Limits.Memory
	var about []string
	for _, name := range names {
		if gives := profileGives(profiles[name], usual); len(gives) > 0 {
			about = append(about, name+": "+strings.Join(gives, ", "))
		}
	}
	return cmp.Or(strings.Join(about, "; "), "What a new session may use")
}

// profileGives are the parts of what a profile gives; its memory only where it is not as usual.
func profileGives(p sessions.Profile, usual int64) (gives []string) {
	if p.Once {
		gives = append(gives, "for this call only")
	}
	if text := networkText(p.Network); text != "" {
		gives = append(gives, "network "+text)
	}
	for _, m := range p.Mounts {
		if m.Writable {
			gives = append(gives, m.Target+" (writable)")
		} else {
			gives = append(gives, m.Target)
		}
	}
	if p.Limits.Memory != usual && p.Limits.Memory > 0 {
		gives = append(gives, words.Bytes(p.Limits.Memory)+" memory")
	}
	return gives
}

// networkText says what a network leads to, empty for none.
func networkText(p egress.Policy) string {
	if p.Mode != egress.Hosts {
		return map[egress.Mode]string{egress.Internet: "internet"}[p.Mode]
	}
	text := strings.Join(p.Hosts[:min(len(p.Hosts), hostsShown)], ", ")
	if more := len(p.Hosts) - hostsShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "to " + text
}

// usualNote says what sessions have by themselves: "No network; 2 GiB memory, 2 cores". A small machine has fewer cores
// than the profile gives. Programs inside that look for memory see the
// host's.
func (s *service) usualNote() string {
	var has []string
	cfg := s.Sessions.Config()
	limits := cfg.Profiles[sessions.DefaultProfile].Limits
	if cfg.Provisioner != nil {
		limits = limits.On(cfg.Provisioner.Capabilities().Cores)
	}
	if limits.Memory > 0 {
		has = append(has, words.Bytes(limits.Memory)+" memory")
	}
	switch {
	case limits.CPUs == 1:
		has = append(has, "1 core")
	case limits.CPUs > 0:
		has = append(has, strconv.FormatFloat(limits.CPUs, 'g', 3, 64)+" cores")
	}
	if len(has) == 0 {
		return s.networkNote()
	}
	return s.networkNote() + "; " + strings.Join(has, ", ")
}

// networkNote says what network sessions have by themselves, and whether others have one.
func (s *service) networkNote() string {
	profiles := s.Sessions.Config().Profiles
	if text := networkText(profiles[sessions.DefaultProfile].Network); text != "" {
		return "Network: " + text
	}
	for _, p := range profiles {
		if p.Network.Open() {
			return "No network by default"
		}
	}
	return "No network"
}
