package mcpserver

import (
	"context"
	"strings"
	"unicode"

	"github.com/mark3labs/mcp-go/server"

	"cellblock/mcpserver/terminal"
	"cellblock/sessions"
)

// maxClientName bounds what is kept of a client's name and version, in characters.
const maxClientName = 80

// clientName is what the client calls itself, name and version, for people who read the history. It is anything that
// somebody wrote: it decides nothing, and no result shows it.
func clientName(ctx context.Context) string {
	client, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
	if !ok {
		return ""
	}
	info := client.GetClientInfo()
	name := label(firstChars(info.Name, maxClientName)+" "+info.Version, maxClientName)
	if name == sessions.Person {
		return "" // it is none
	}
	return name
}

// label makes one line of at most about n characters of a foreign text, without anything that is not seen.
func label(s string, n int) string {
	s = s[:min(len(s), 16*n)] // what is bounded first costs little
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, terminal.Plain(s))
	return shorten(strings.Join(strings.Fields(s), " "), n)
}
