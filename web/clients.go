package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"cellblock/internal/request"
)

// forwarded are the headers by which proxies tell of their clients, and clients may try to.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-Ip"}

// nameClients gives each request a name, and finds out whose it is: who connects, or, where that is one of the proxies, whom
// they say that they speak for. From anybody else such words are taken away.
func nameClients(proxies []netip.Prefix, next http.Handler) http.Handler {
	trusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, secure := request.Info{ID: request.NewID()}, r.TLS != nil
		if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			client := at.Addr().Unmap()
			if trusted(client) {
				secure = secure || lastValue(r.Header, "X-Forwarded-Proto") == "https"
				client = clientOf(r.Header, client, trusted)
			}
			info.Address = client.String()
		}
		for _, name := range forwarded {
			r.Header.Del(name)
		}
		w.Header().Set("X-Request-Id", info.ID)
		if secure {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r.WithContext(request.NewContext(r.Context(), info)))
	})
}

// clientOf follows X-Forwarded-For from its end, where the nearest proxy has written, to the first address that is no
// proxy's: what stands before that, the client may have made up.
func clientOf(h http.Header, nearest netip.Addr, trusted func(netip.Addr) bool) netip.Addr {
	hops := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		addr, err := parseHop(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		if nearest = addr.Unmap(); !trusted(nearest) {
			break
		}
	}
	return nearest
}

// parseHop reads an address, behind which some proxies write the port, too.
func parseHop(hop string) (netip.Addr, error) {
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr(), nil
	}
	return netip.ParseAddr(hop)
}

// lastValue is what the nearest proxy has written into a header.
func lastValue(h http.Header, name string) string {
	values := strings.Split(strings.Join(h.Values(name), ","), ",")
	return strings.ToLower(strings.TrimSpace(values[len(values)-1]))
}
