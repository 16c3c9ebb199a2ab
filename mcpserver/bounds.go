package mcpserver

import (
	"slices"
	"strings"

	"cellblock/internal/words"
)

// bounds are what a kernel may take, in bytes, for hints that name it; 0 is no limit. Its network is among them.
type bounds struct {
	memory, workspace, tmp, file int64
	network                      network
}

// bounds are those of a session that has a profile.
func (s *service) bounds(profile string) bounds {
	cfg := s.Sessions.Config()
	l := cfg.Profiles[profile].Limits
	b := bounds{memory: l.Memory, workspace: max(cfg.WorkspaceBytes, 0), tmp: l.Tmp, file: l.FileSize, network: networkOf(cfg, profile)}
	b.network.images = s.Images != nil && slices.Contains(s.Toolsets, ToolsetImages)
	b.network.host = cfg.Provisioner != nil && !cfg.Provisioner.Capabilities().Images
	return b
}

// spaceHint says what to do where a text tells that something could not be written for lack of room. XFS calls a quota that
// is used up a full disk.
func (b bounds) spaceHint(text string) string {
	const clear = ": delete files that are not needed."
	switch {
	case strings.Contains(text, "Disk quota exceeded") && b.workspace > 0:
		return "The workspace may hold " + words.Bytes(b.workspace) + clear
	case strings.Contains(text, "No space left on device"):
		var places []string
		if b.workspace > 0 {
			places = append(places, "the workspace may hold "+words.Bytes(b.workspace))
		}
		if b.tmp > 0 {
			places = append(places, "/tmp may hold "+words.Bytes(b.tmp))
		}
		if len(places) == 0 {
			return "The disk is full" + clear
		}
		return sentence(strings.Join(places, ", ")) + clear
	case strings.Contains(text, "File too large") && b.file > 0:
		return "One file may have " + words.Bytes(b.file) + " at most: write several."
	}
	return ""
}
