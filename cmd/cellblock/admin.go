package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/mark3labs/mcp-go/client"
	"github.com/spf13/cobra"

	"cellblock/internal/fault"
)

// ownedRow is a session of anybody's, as list_all_sessions describes it.
type ownedRow struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	sessionRow
}

func newAdmin() *cobra.Command {
	group := newGroup("admin", "List and stop sessions of all owners", newAdminList(), newAdminStop())
	group.Long = `Lists and stops the sessions of all owners. It needs a token with the scope sessions:admin, which no token has that was not
asked for it; it shows nothing of what sessions hold. Each use is in the audit log.`
	group.Example = `  CELLBLOCK_TOKEN=$(cellblock token --scopes sessions:admin) cellblock admin ls`
	return group
}

func newAdminList() *cobra.Command {
	var o connection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the running sessions of all owners", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				list, err := ask[struct {
					Sessions []ownedRow `json:"sessions"`
				}](ctx, c, "list_all_sessions", nil)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd.OutOrStdout(), list)
				}
				return printOwned(cmd.OutOrStdout(), list.Sessions)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	o.addFlags(cmd.Flags())
	return cmd
}

func printOwned(w io.Writer, rows []ownedRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "ISSUER\tSUBJECT\tSESSION\tLANGUAGE\tSTATE\tCELLS")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\n", r.Issuer, r.Subject, r.ID, r.Language, r.State, r.Executions)
	}
	return t.Flush()
}

func newAdminStop() *cobra.Command {
	var o connection
	var issuer, subject string
	cmd := &cobra.Command{
		Use: "stop SESSION...", Short: "Stop sessions of an owner; files and history are kept", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions, // the names of the own sessions would mislead
		RunE: func(cmd *cobra.Command, args []string) error {
			if issuer == "" || subject == "" {
				return fault.New(fault.Invalid, "%s needs --issuer and --subject: whose session it is", cmd.CommandPath()).
					WithHint("cellblock admin ls shows both.")
			}
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) (err error) {
				for _, id := range args {
					said, failed := tell(ctx, c, "stop_any_session", map[string]any{"issuer": issuer, "subject": subject, "session_id": id})
					if err = errors.Join(err, failed); failed == nil {
						fmt.Fprintln(cmd.OutOrStdout(), said)
					}
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&issuer, "issuer", "", "the issuer of whose session it is")
	cmd.Flags().StringVar(&subject, "subject", "", "the subject of whose session it is")
	o.addFlags(cmd.Flags())
	return cmd
}
