package mcpserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cellblock/internal/fault"
)

// ProfileHealth says of a profile whether sessions can have what it gives.
type ProfileHealth struct {
	Name string `json:"name"`
	// Problem is why they cannot; empty if they can.
	Problem string `json:"problem,omitempty"`
	// Warning is why sessions may not be able to use something of it, and what to do then. The server is no worse for that.
	Warning string `json:"warning,omitempty"`
}

// reportProfiles adds the profiles that there are, and what of them does not work here.
func (cfg Config) reportProfiles(ctx context.Context, report *HealthReport) {
	names := slices.Sorted(maps.Keys(cfg.Sessions.Config().Profiles))
	if cfg.Profiles != nil {
		for _, name := range names {
			cfg.Profiles.due(name) // all of them, before one is waited for
		}
	}
	for _, name := range names {
		says := ProfileHealth{Name: name}
		if cfg.Profiles != nil {
			doubt, err := cfg.Profiles.due(name).found(ctx)
			if err != nil {
				says.Problem = err.Error()
				report.Add(HealthDegraded, Problem{
					What: fmt.Sprintf("the profile %s does not work: %v", name, err), Hint: fault.Hint(err), Public: "a profile does not work",
				})
			} else if doubt != nil {
				says.Warning = fmt.Sprintf("%v. %s", doubt, fault.Hint(doubt))
			}
		}
		report.Profiles = append(report.Profiles, says)
	}
}

func profilesText(profiles []ProfileHealth) string {
	var texts []string
	for _, p := range profiles {
		text := p.Name
		if p.Problem != "" {
			text += " (does not work)"
		} else if p.Warning != "" {
			text += " (perhaps not all of it: " + p.Warning + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
