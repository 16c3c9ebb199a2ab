package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout is how long a client may take to send a request's headers.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long a connection may wait for its next request.
	idleTimeout = 2 * time.Minute
	// maxHeaders bounds a request's headers, in bytes.
	maxHeaders = 64 << 10
	// grace is how long running requests may take to end by themselves when the server is to stop.
	grace = 10 * time.Second
	// cancelGrace is how long they may take to answer once they have been cancelled.
	cancelGrace = 5 * time.Second
)

// Serve serves h on l until the context graceful ends, and then stops by steps: no new connections, and streams that
// would never end are ended (Config.Drain); after ten seconds running calls are cancelled (Config.Cancel) and may still
// answer; after five more connections are cut. The end of forced makes all steps at once. It returns nil when it was
// stopped, and the error where serving failed. There is no time limit on an answer: calls may last for hours, and whoever
// writes an answer bounds each write.
func Serve(graceful, forced context.Context, l net.Listener, h http.Handler) error {
	var cfg Config
	if site, ok := h.(*handler); ok {
		cfg = site.cfg
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug), // what clients do wrong
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	l = cfg.bounded(l)
	served := make(chan error, 1)
	go func() {
		if cfg.TLS == nil {
			served <- s.Serve(l)
			return
		}
		s.TLSConfig = cfg.TLS.config()
		served <- s.ServeTLS(l, "", "")
	}()
	select {
	case err := <-served:
		return err
	case <-graceful.Done():
	}
	stop(forced, s, cfg)
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// stop goes down the steps until everything has ended.
func stop(forced context.Context, s *http.Server, cfg Config) {
	steps := []struct {
		first func()
		wait  time.Duration
	}{{cfg.Drain, grace}, {cfg.Cancel, cancelGrace}}
	for _, step := range steps {
		if step.first != nil {
			step.first()
		}
		ctx, cancel := context.WithTimeout(forced, step.wait)
		err := s.Shutdown(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	cfg.Logger.Warn("requests still ran when the server stopped; their connections are cut")
	_ = s.Close() // of connections nobody waits for
}
