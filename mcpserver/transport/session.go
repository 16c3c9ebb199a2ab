package transport

import (
	"maps"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// client is what a client said of itself: at initialize for the handshake revisions, with each request since.
type client struct {
	mu           sync.Mutex
	info         mcp.Implementation
	capabilities mcp.ClientCapabilities
	version      string
}

// session is what mcp-go takes for a client's session. Here it lives for one request, so that nothing that mcp-go
// files under a session can reach another request.
type session struct {
	*client
	id     string
	out    *outlet
	listen string // the id of the subscriptions/listen request that this session serves, "" for all others

	// Notifications that are sent by mcp-go's own functions come through a channel. It is made with the first of them, and
	// so is the goroutine that empties it: most requests have none, and room for many is a tenth of what a call allocates.
	queue chan mcp.JSONRPCNotification
	pump  sync.Once
	stop  chan struct{}
	done  chan struct{}

	filterMu   sync.Mutex
	filter     mcp.SubscriptionFilter
	subscribed bool
}

// queued is how many of mcp-go's own notifications may wait for the client to take one.
const queued = 256

func newSession(id string, c *client, out *outlet) *session {
	return &session{
		client: c, id: id, out: out,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// SessionID returns a name that no other request has.
func (s *session) SessionID() string { return s.id }

// Initialize is called by mcp-go at initialize; a session here is ready from its start.
func (s *session) Initialize() {}

// Initialized reports that notifications may be sent.
func (s *session) Initialized() bool { return true }

// NotificationChannel returns the channel for mcp-go's own notifications and sees to it that it is emptied.
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification {
	s.pump.Do(func() {
		s.queue = make(chan mcp.JSONRPCNotification, queued)
		go s.forward()
	})
	return s.queue
}

// forward writes what comes through the channel until close, and then what is left in it.
func (s *session) forward() {
	defer close(s.done)
	for {
		select {
		case n := <-s.queue:
			s.deliver(n)
		case <-s.stop:
			for len(s.queue) > 0 {
				s.deliver(<-s.queue)
			}
			return
		}
	}
}

// deliver writes one notification; on a subscriptions/listen stream each names its subscription.
func (s *session) deliver(n mcp.JSONRPCNotification) {
	if s.listen != "" {
		meta := maps.Clone(n.Params.Meta)
		if meta == nil {
			meta = map[string]any{}
		}
		meta[mcp.MetaKeySubscriptionID] = rawID([]byte(s.listen))
		n.Params.Meta = meta
	}
	_ = s.out.send(n) // who sent it through a channel asked for no answer
}

// close writes what still waits and ends the goroutine.
func (s *session) close() {
	close(s.stop)
	s.pump.Do(func() { close(s.done) })
	<-s.done
}

// SetSubscriptionFilter records what a subscriptions/listen request asked for; the zero filter ends it.
func (s *session) SetSubscriptionFilter(f mcp.SubscriptionFilter) {
	s.filterMu.Lock()
	defer s.filterMu.Unlock()
	s.filter, s.subscribed = f, !f.IsEmpty()
}

// SubscriptionFilter returns what this session receives of the server's broadcasts.
func (s *session) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	s.filterMu.Lock()
	defer s.filterMu.Unlock()
	return s.filter, s.subscribed || s.listen != ""
}

// GetClientInfo returns the client's name and version, as it says; empty when it is not remembered.
func (c *client) GetClientInfo() mcp.Implementation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// SetClientInfo is called by mcp-go.
func (c *client) SetClientInfo(info mcp.Implementation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.info = info
}

// GetClientCapabilities returns what the client can do, as it says.
func (c *client) GetClientCapabilities() mcp.ClientCapabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.capabilities
}

// SetClientCapabilities is called by mcp-go.
func (c *client) SetClientCapabilities(capabilities mcp.ClientCapabilities) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capabilities = capabilities
}

// ProtocolVersion returns the revision that initialize agreed on, "" where there was none.
func (c *client) ProtocolVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// SetProtocolVersion is called by mcp-go.
func (c *client) SetProtocolVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

var (
	_ server.SessionWithClientInfo         = (*session)(nil)
	_ server.SessionWithProtocolVersion    = (*session)(nil)
	_ server.SessionWithSubscriptionFilter = (*session)(nil)
)
