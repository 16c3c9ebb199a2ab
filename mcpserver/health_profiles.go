package mcpserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// ProfileHealth says of a profile whether sessions can have what it gives.
type ProfileHealth struct {
	Name string `json:"name"`
	// Problem is why they cannot; empty if they can.
	Problem string `json:"problem,omitempty"`
}

// reportProfiles adds the profiles that there are, and what of them does not work here.
func (cfg Config) reportProfiles(ctx context.Context, report *HealthReport) {
	sessions := cfg.Sessions.Config()
	allower, _ := sessions.Provisioner.(kernels.Allower)
	for _, name := range slices.Sorted(maps.Keys(sessions.Profiles)) {
		profile, found := sessions.Profiles[name], ProfileHealth{Name: name}
		if allower != nil {
			if err := allower.Allows(ctx, kernels.Spec{Mounts: profile.Mounts, Runtime: profile.Runtime, Devices: profile.Devices}); err != nil {
				found.Problem = err.Error()
				report.Add(HealthDegraded, Problem{
					What: fmt.Sprintf("the profile %s does not work: %v", name, err), Hint: fault.Hint(err), Public: "a profile does not work",
				})
			}
		}
		report.Profiles = append(report.Profiles, found)
	}
}

func profilesText(profiles []ProfileHealth) string {
	var texts []string
	for _, p := range profiles {
		text := p.Name
		if p.Problem != "" {
			text += " (does not work)"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
