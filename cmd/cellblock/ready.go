package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cellblock/internal/fault"
)

// readyPatience is how long a server may take to say whether it is ready: less than whoever asks for a health check waits.
const readyPatience = 10 * time.Second

func newReady() *cobra.Command {
	var server connection
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Tell whether the server can do work",
		Long: `Asks the server what its /ready says, and tells by its exit status: 0 when it can do work. It needs no token, and is
what a health check runs where there is no other program, as in the server's container.`,
		Example: "  cellblock ready && echo yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			endpoint, err := server.address(cfg)
			if err != nil {
				return err
			}
			if err := askReady(cmd.Context(), strings.TrimSuffix(endpoint, "/mcp")+"/ready"); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return nil
		},
	}
	server.addURL(cmd.Flags())
	return cmd
}

// askReady returns why a server is not ready, nil where it is.
func askReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fault.New(fault.Unavailable, "the server does not answer: %w", err).WithHint("Start it: cellblock serve; or name another one with --url.")
	}
	defer answer.Body.Close()
	var said struct {
		Ready  *bool
		Reason string
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	switch {
	case err != nil || json.Unmarshal(text, &said) != nil || said.Ready == nil:
		return fault.New(fault.Unavailable, "what answers at %s is no cellblock, or refuses this address (status %d)", address, answer.StatusCode).
			WithHint("Name the server's address with --url.")
	case !*said.Ready:
		return fault.New(fault.Unavailable, "the server is not ready: %s", said.Reason).WithHint("cellblock doctor looks for the reason.")
	}
	return nil
}
