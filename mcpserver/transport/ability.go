package transport

import "github.com/mark3labs/mcp-go/mcp"

// abilities are the capabilities of a client that this server makes use of, small enough to stand in its session id.
type abilities byte

const (
	asksByForm abilities = 1 << iota
	asksByURL
)

func abilitiesOf(c mcp.ClientCapabilities) (a abilities) {
	if c.Elicitation == nil {
		return 0
	}
	if c.Elicitation.URL != nil {
		a |= asksByURL
	}
	if c.Elicitation.Form != nil || a == 0 { // one that names no way means forms
		a |= asksByForm
	}
	return a
}

// capabilities returns what a client with these abilities declared, as far as it is known.
func (a abilities) capabilities() (c mcp.ClientCapabilities) {
	if a == 0 {
		return c
	}
	c.Elicitation = &mcp.ElicitationCapability{}
	if a&asksByForm != 0 {
		c.Elicitation.Form = &struct{}{}
	}
	if a&asksByURL != 0 {
		c.Elicitation.URL = &struct{}{}
	}
	return c
}
