package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/net/netutil"

	"cellblock/auth"
	"cellblock/internal/fault"
)

// Limits bound what clients hold at the same time; 0 is no limit. Of each there is a share that one cannot exceed, so that
// nobody keeps out everybody else.
type Limits struct {
	// Connections are all that are open, and PerClient those of one address, of IPv6 one /64, that is no proxy's. Over the first limit new
	// ones wait, over the second they are closed.
	Connections, PerClient int
	// Requests are all that are being answered to callers with a token, streams that they listen to among them, and PerOwner
	// those of one owner. Over the limit they are answered with 503 and 429.
	Requests, PerOwner int
}

// maxStreams bounds the requests of one connection of HTTP/2 at the same time.
const maxStreams = 100

// shares counts what is held, in all and by each.
type shares struct {
	most, each int // 0: no limit

	mu  sync.Mutex
	all int
	by  map[string]int
}

func newShares(most, each int) *shares { return &shares{most: most, each: each, by: map[string]int{}} }

// take counts n more of somebody's, unless they are too many: of all, or of his.
func (s *shares) take(who string, n int) (ok, tooManyOfHis bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.each > 0 && s.by[who]+n > s.each:
		return false, true
	case s.most > 0 && s.all+n > s.most:
		return false, false
	}
	s.all += n
	s.by[who] += n
	return true, false
}

// release ends what take has counted.
func (s *shares) release(who string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= n
	if s.by[who] -= n; s.by[who] == 0 {
		delete(s.by, who)
	}
}

// crowdTaker is a handler that can tell what makes room from what takes it (transport.NewHTTP).
type crowdTaker interface {
	// ServeCrowded serves a request of a caller who has too many under way, or answers it with refuse. It is quick.
	ServeCrowded(w http.ResponseWriter, r *http.Request, refuse http.HandlerFunc)
}

// spare is how many requests of an owner who has too many under way are looked at, at the same time, for one that ends others.
const spare = 8

// boundRequests refuses requests of callers who have too many under way, or while there are too many in all, but for those by
// which others end.
func boundRequests(s *shares, next http.Handler) http.Handler {
	spares := newShares(0, spare)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := auth.FromContext(r.Context())
		who := p.Owner()
		ok, his := s.take(who, 1)
		if ok {
			defer s.release(who, 1)
			next.ServeHTTP(w, r)
			return
		}
		refuse := func(w http.ResponseWriter, _ *http.Request) { s.refuse(w, his) }
		taker, can := next.(crowdTaker)
		if can {
			can, _ = spares.take(who, 1)
		}
		if !can {
			refuse(w, r)
			return
		}
		defer spares.release(who, 1)
		taker.ServeCrowded(w, r, refuse)
	})
}

// refuse answers a request that is one too many: of its caller's, or of all.
func (s *shares) refuse(w http.ResponseWriter, his bool) {
	w.Header().Set("Retry-After", "1")
	if his {
		writeError(w, fault.New(fault.Busy, "too many requests at the same time: %d are allowed, streams among them", s.each).
			WithHint("Wait until one has ended, or cancel one, then ask again."))
		return
	}
	writeError(w, fault.New(fault.Unavailable, "the server has too many requests at the same time").WithHint("Ask again in a moment."))
}

// bounded is a listener within the limits.
func (cfg Config) bounded(l net.Listener) net.Listener {
	if cfg.Limits.PerClient > 0 {
		l = &sharedListener{Listener: l, cfg: cfg, shares: newShares(0, cfg.Limits.PerClient)}
	}
	if cfg.Limits.Connections > 0 {
		l = netutil.LimitListener(l, cfg.Limits.Connections)
	}
	return l
}

// sharedListener closes connections of clients who have too many.
type sharedListener struct {
	net.Listener
	cfg    Config
	shares *shares
}

// Accept returns the next connection of a client who may have another.
func (l *sharedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client, bound := l.client(conn)
		if !bound {
			return conn, nil
		}
		if ok, _ := l.shares.take(client, 1); ok {
			return &sharedConn{Conn: conn, release: sync.OnceFunc(func() { l.shares.release(client, 1) })}, nil
		}
		l.cfg.Logger.Debug("a connection was closed: its client has too many", "client", client, "limit", l.shares.each)
		_ = conn.Close() // nobody has used it
	}
}

// subnet is how much of an IPv6 address tells one client from another: within it everybody chooses addresses as he likes.
const subnet = 64

// client is the address that a connection comes from, of IPv6 its subnet, and whether that is one client's: a proxy has those
// of many.
func (l *sharedListener) client(conn net.Conn) (string, bool) {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return "", false
	}
	addr := at.Addr().Unmap()
	bound := !slices.ContainsFunc(l.cfg.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
	if own, err := addr.Prefix(subnet); err == nil && addr.Is6() {
		return own.String(), bound
	}
	return addr.String(), bound
}

// sharedConn gives its share back when it is closed.
type sharedConn struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *sharedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
