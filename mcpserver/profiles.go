package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/auth"
	"cellblock/internal/jsontext"
	"cellblock/sessions"
)

// isolatedProfile is the profile that, like the default one, needs no scope: it may do less than that.
const isolatedProfile = "isolated"

// ProfileScope returns the scope that sessions of a profile need, "" for none.
func ProfileScope(profile string) string {
	if profile == "" || profile == sessions.DefaultProfile || profile == isolatedProfile {
		return ""
	}
	return "profile:" + profile
}

// PermitProfiles returns what tells whether a caller with some scopes may run cells under a profile.
func PermitProfiles(has func(scope string) bool) func(profile string) error {
	return func(profile string) error {
		if scope := ProfileScope(profile); scope != "" && !has(scope) {
			return auth.NeedsScope("the profile "+profile, scope)
		}
		return nil
	}
}

// permit is PermitProfiles for a call: the profile that it names has been looked at before, but not the one that its session has.
func (s *service) permit(ctx context.Context) func(profile string) error {
	return PermitProfiles(func(scope string) bool { return s.Allowed(ctx, scope) })
}

// profileIn is the profile that a call's arguments name, "" for none that there is.
func (a *Access) profileIn(tool string, arguments json.RawMessage) string {
	if !strings.HasPrefix(tool, executePrefix) {
		return ""
	}
	var profile string
	_ = jsontext.Members(arguments, func(name []byte, value json.RawMessage) error { // what is wrong with them, the tool says
		if string(name) == "profile" {
			profile, _ = jsontext.Text(value)
		}
		return nil
	})
	if !slices.Contains(a.profiles, profile) {
		return ""
	}
	return profile
}

// profileNames are the profiles, in order.
func (s *service) profileNames() []string {
	return slices.Sorted(maps.Keys(s.Sessions.Config().Profiles))
}

// profileArgument is the argument of tools that begin sessions; filterProfiles takes from it what a caller may not have.
func (s *service) profileArgument() mcp.ToolOption {
	return mcp.WithString("profile", mcp.Enum(s.profileNames()...))
}

// describeProfiles is profileArgument with a word for models.
func (s *service) describeProfiles() mcp.ToolOption {
	return mcp.WithString("profile", mcp.Description(s.aboutProfiles(s.profileNames())), mcp.Enum(s.profileNames()...))
}

// imageArguments is the argument that names an image, where there is a choice.
func (s *service) imageArguments(about ...mcp.PropertyOption) []mcp.ToolOption {
	if s.Sessions.Config().Image == nil || !slices.Contains(s.Toolsets, ToolsetImages) {
		return nil // nobody could know a name
	}
	return []mcp.ToolOption{mcp.WithString("image", about...)}
}

// filterProfiles leaves in a tool's schema the profiles that a caller may name, and no argument where there is no choice.
func (s *service) filterProfiles(ctx context.Context, t mcp.Tool) mcp.Tool {
	argument, ok := t.InputSchema.Properties["profile"].(map[string]any)
	if !ok {
		return t
	}
	may := slices.DeleteFunc(s.profileNames(), func(name string) bool { return s.permit(ctx)(name) != nil })
	t.InputSchema.Properties = maps.Clone(t.InputSchema.Properties)
	if len(may) < 2 {
		delete(t.InputSchema.Properties, "profile")
		return t
	}
	argument = maps.Clone(argument)
	argument["enum"] = may
	if _, described := argument["description"]; described {
		argument["description"] = s.aboutProfiles(may)
	}
	t.InputSchema.Properties["profile"] = argument
	return t
}
