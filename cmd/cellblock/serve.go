package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/loopback"
	"cellblock/web"
)

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP over HTTP",
		Long: `Serves MCP over HTTP at /mcp. With no MCP_* variable set it runs in dev mode: it listens on loopback only, makes a key
pair and a token in the data folder by itself, and says where the token is. It is ready when it says so on standard error.
The first SIGTERM, SIGINT or SIGHUP stops it gracefully, the second faster, the third at once. Kernels of sessions go on, and the
next start on the same data folder finds them again, with their variables; with --on-shutdown stop they end with the server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd) },
	}
	addServerFlags(cmd)
	flags := cmd.Flags()
	flags.String("addr", "", "where to listen (default 127.0.0.1:8787; port 0: a free one)")
	flags.String("tls-cert", "", "serve HTTPS with this certificate (PEM, its chain behind it)")
	flags.String("tls-key", "", "the certificate's key (PEM, not readable by everybody)")
	flags.String("trusted-proxies", "", "addresses or networks of proxies whose X-Forwarded headers are believed (10.0.0.0/8)")
	flags.Bool("dev-allow-remote", false, "let dev mode listen on addresses that others reach")
	flags.String("public-url", "", "the address that clients use, behind a proxy")
	return cmd
}

func runServe(cmd *cobra.Command) error {
	cfg, err := configFor(cmd)
	if err != nil {
		return err
	}
	env, err := auth.ConfigFromEnv(os.Environ())
	if err != nil {
		return err
	}
	if err := checkDevAddr(env, cfg); err != nil {
		return err
	}
	outliveReaders()
	graceful, forced, release := stopSignals(cmd.Context())
	defer release()
	// First of all: who calls while kernels are being found again waits for that, and is not refused.
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return cannotListen(cfg, err)
	}
	logger := newLogger(cfg.Log)
	awaitStopping(graceful, cfg.DataDir, cfg.localURL(listener.Addr()), logger)
	base := publicBase(cfg, listener.Addr(), os.Hostname, logger)
	a, err := newApp(graceful, cfg, logger, access{
		slot: serveSlot, owner: tokenOwner, allowed: tokenAllows, operator: operates(env.Dev()), limiter: cfg.limiter(env.Dev()), listening: listener.Addr(), base: base,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	a.keep = cfg.OnShutdown != stopKernels
	return errors.Join(a.serveHTTP(graceful, forced, cfg, env, base, listener), a.close(forced))
}

// cannotListen says of an address that is taken whether this data folder's own server has it.
func cannotListen(cfg *Config, err error) error {
	_, port, _ := net.SplitHostPort(cfg.Addr)
	at, running := runningServer(cfg.DataDir)
	if u, bad := url.Parse(at); running == nil && bad == nil && u.Port() == port && errors.Is(err, syscall.EADDRINUSE) {
		return fault.New(fault.Unavailable, "a server of the data folder %s runs already at %s", cfg.DataDir, at).
			WithHint("Use that one, or stop it first. One beside it, on the same data, needs another address: --addr.")
	}
	return fault.New(fault.Unavailable, "cannot listen: %w", err).WithHint("Choose another address with --addr, or end the program that has it.")
}

// checkDevAddr keeps dev mode, whose token lies in a file, off the network.
func checkDevAddr(env auth.EnvConfig, cfg *Config) error {
	host, _, _ := net.SplitHostPort(cfg.Addr) // checked with the configuration
	if !env.Dev() || cfg.DevAllowRemote || loopback.Is(host) {
		return nil
	}
	return fault.New(fault.Invalid, "dev mode listens on loopback addresses only, and %s is none", cfg.Addr).
		WithHint("Use --addr 127.0.0.1:8787, set %s to verify your issuer's tokens, or, where everybody who reaches this address may try, add --dev-allow-remote.",
			auth.EnvIssuer)
}

func (a *app) serveHTTP(graceful, forced context.Context, cfg *Config, env auth.EnvConfig, base string, listener net.Listener) error {
	authority, tokenPath, err := a.openAuthority(graceful, env, cfg, base+"/mcp")
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer authority.Close()
	a.authority = authority
	certificates, err := cfg.certificates(a.logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer closeCertificates(certificates)
	pages, err := a.viewer(cfg, env, base)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	stopMetrics, err := a.serveMetrics(cfg)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stopMetrics()
	handler := a.handler(cfg, env, authority, base, certificates, pages)
	defer context.AfterFunc(graceful, func() {
		a.logger.Info(stoppingLine(a.keep))
	})()
	warnOfOthers(cfg.DataDir, a.slot.name, a.logger)
	if err := leaveAddress(cfg.DataDir, a.slot.name, cfg.localURL(listener.Addr())); err != nil {
		a.logger.Warn("commands will not find this server by its data folder", "error", err)
	}
	fmt.Fprintln(os.Stderr, a.browserLine(cfg, tokenPath, base))
	fmt.Fprintln(os.Stderr, readyLine(base, a.backend.where, tokenPath, env.Issuer))
	warnOfNoKeys(authority, a.logger)
	a.sessions.StartPool()
	var looking sync.WaitGroup
	looking.Go(func() { a.health(graceful) }) // whose problems the log is told, though nobody asks for them
	defer looking.Wait()
	return web.Serve(graceful, forced, listener, handler)
}

// publicBase is the address by which clients know the server, without a path. An address of the listener that stands for
// all of this machine is none that they could use, or that tokens could be meant for: then it is the machine's name.
func publicBase(cfg *Config, listening net.Addr, hostname func() (string, error), logger *slog.Logger) string {
	if cfg.PublicURL != "" {
		return cfg.PublicURL
	}
	at, ok := listening.(*net.TCPAddr)
	if !ok || !at.IP.IsUnspecified() {
		return cfg.scheme() + "://" + listening.String()
	}
	name, err := hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	base := fmt.Sprintf("%s://%s:%d", cfg.scheme(), name, at.Port)
	logger.Warn("addr names no host; clients and tokens are told this machine's name. Set public_url if they use another",
		"addr", listening.String(), "public_url", base)
	return base
}

// readyLine is the one line that tells a person, or a script, that the server serves, and how to use it. Clients sign in with an issuer
// by themselves.
func readyLine(base, where, tokenPath, issuer string) string {
	line := fmt.Sprintf("cellblock %s is ready at %s/mcp · kernels: %s", version, base, where)
	add := fmt.Sprintf(" · claude mcp add --transport http cellblock %s/mcp", base)
	switch {
	case tokenPath != "":
		return line + " · token: " + tokenPath + add + ` --header "Authorization: Bearer $(cat ` + tokenPath + `)"`
	case issuer != "":
		return line + add
	}
	return line + add + ` --header "Authorization: Bearer $TOKEN"`
}
