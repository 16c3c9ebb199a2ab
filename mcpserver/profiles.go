package mcpserver

import (
	"context"

	"cellblock/auth"
	"cellblock/sessions"
)

// isolatedProfile is the profile that, like the default one, needs no scope: it may do less than that.
const isolatedProfile = "isolated"

// profileScope returns the scope that sessions of a profile need, "" for none.
func profileScope(profile string) string {
	if profile == sessions.DefaultProfile || profile == isolatedProfile {
		return ""
	}
	return "profile:" + profile
}

// permit returns what tells whether a caller may run cells under a profile.
func (s *service) permit(ctx context.Context) func(profile string) error {
	return func(profile string) error {
		if scope := profileScope(profile); scope != "" && !s.Allowed(ctx, scope) {
			return auth.NeedsScope("the profile "+profile, scope)
		}
		return nil
	}
}
