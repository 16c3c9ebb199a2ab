package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"cellblock/internal/fault"
	"cellblock/mcpserver/transport"
)

// metricsTimeout bounds reading a question for metrics, and the stop of who answers it.
const metricsTimeout = 5 * time.Second

// serveMetrics serves metrics on an address of their own, where one is set, and returns what ends that.
func (a *app) serveMetrics(cfg *Config) (stop func(), err error) {
	if a.metrics == nil || cfg.Metrics.Addr == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", cfg.Metrics.Addr)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "cannot listen for metrics: %w", err).WithHint("Choose another address in metrics.addr.")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	// A web page must not read them either, by a name of its own that comes to mean this machine (DNS rebinding).
	guarded := transport.NewGuard(nil, cfg.AllowedHosts).Require(mux, func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, fault.Text(err), fault.KindOf(err).HTTPStatus())
	})
	s := &http.Server{Handler: guarded, ReadHeaderTimeout: metricsTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.logger.Error("metrics are served no more", "error", err)
		}
	}()
	a.logger.Info("metrics are served", "addr", l.Addr().String())
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), metricsTimeout)
		defer cancel()
		_ = s.Shutdown(ctx) // what is asked for then is not answered
		<-ended
	}, nil
}
