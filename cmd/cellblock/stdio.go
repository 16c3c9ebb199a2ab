package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// localOwner is whom sessions belong to over stdio: the one user at this machine.
var localOwner = sessions.Owner{Issuer: "stdio", Subject: "local"}

func newStdio() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stdio",
		Short: "Serve MCP on standard input and output, for one local user",
		Long: `Serves the same tools as serve on standard input and output, for clients that start their servers themselves, such as
Claude Desktop. The kernels end with it, unless --on-shutdown keep says otherwise; files in workspaces are kept, and
variables that can be saved are back with the session's next call.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runStdio(cmd) },
	}
	addServerFlags(cmd)
	return cmd
}

func runStdio(cmd *cobra.Command) error {
	// Clients start such a process each, and keep it for days: a kernel that waits in every one of them costs too much.
	cfg, err := configOver(cmd, map[string]any{"pool_size": 0})
	if err != nil {
		return err
	}
	outliveReaders()
	graceful, forced, release := stopSignals(cmd.Context())
	defer release()
	a, err := newApp(graceful, cfg, newLogger(cfg.Log), access{
		slot:    stdioSlot,
		owner:   func(context.Context) (sessions.Owner, error) { return localOwner, nil },
		allowed: func(_ context.Context, scope string) bool { return scope != mcpserver.ScopeAdmin },
	})
	if err != nil {
		return err
	}
	a.keep = cfg.OnShutdown == keepKernels
	a.sessions.StartPool()
	err = a.dispatcher.ServeStdio(graceful, os.Stdin, os.Stdout)
	if errors.Is(err, context.Canceled) || errors.Is(err, transport.ErrDisconnected) {
		err = nil // stopped by a signal, as asked; or the client has gone, which is how a client ends this
	}
	return errors.Join(err, a.close(forced))
}
