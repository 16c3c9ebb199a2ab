package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/mark3labs/mcp-go/client"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellblock/internal/fault"
)

// ownedRow is a session of anybody's, as list_all_sessions describes it.
type ownedRow struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	sessionRow
}

func newAdmin() *cobra.Command {
	group := newGroup("admin", "List and stop sessions of all owners, delete all of one", newAdminList(), newAdminStop(), newAdminForget())
	group.Long = `Lists and stops the sessions of all owners, and deletes all that one of them has. It needs a token with the scope sessions:admin, which no token has that was not
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
	var whose owner
	cmd := &cobra.Command{
		Use: "stop SESSION...", Short: "Stop sessions of an owner; files and history are kept", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions, // the names of the own sessions would mislead
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := whose.check(cmd, "cellblock admin ls shows both."); err != nil {
				return err
			}
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) (err error) {
				for _, id := range args {
					said, failed := tell(ctx, c, "stop_any_session", map[string]any{"issuer": whose.issuer, "subject": whose.subject, "session_id": id})
					if err = errors.Join(err, failed); failed == nil {
						fmt.Fprintln(cmd.OutOrStdout(), said)
					}
				}
				return err
			})
		},
	}
	whose.addFlags(cmd.Flags())
	o.addFlags(cmd.Flags())
	return cmd
}

func newAdminForget() *cobra.Command {
	var o connection
	var whose owner
	var sure bool
	cmd := &cobra.Command{
		Use: "forget", Short: "Delete all sessions of an owner for good, with files, history and images", Args: cobra.NoArgs,
		Long: `Deletes all sessions of an owner for good, also those that run, with their files and their history, and the images he has made.
Without --yes it only says how much that is. First see to it that he gets no token any more: who has one can begin anew. The audit log keeps its lines, and backups what they have.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := whose.check(cmd, "cellblock admin ls shows both of whose sessions run, the audit log of everybody."); err != nil {
				return err
			}
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				tool := "forget_owner"
				if !sure {
					tool = "show_owner"
				}
				said, err := tell(ctx, c, tool, map[string]any{"issuer": whose.issuer, "subject": whose.subject})
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), said)
				if !sure {
					return fault.New(fault.Invalid, "nothing was deleted").WithHint("Add --yes to have all of that deleted for good.")
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "have it done: nothing brings back what is deleted")
	whose.addFlags(cmd.Flags())
	o.addFlags(cmd.Flags())
	return cmd
}

// owner are the flags that say whose sessions a command is about.
type owner struct{ issuer, subject string }

func (o *owner) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.issuer, "issuer", "", "the issuer of whose sessions it is about")
	flags.StringVar(&o.subject, "subject", "", "the subject of whose sessions it is about")
}

func (o owner) check(cmd *cobra.Command, hint string) error {
	if o.issuer == "" || o.subject == "" {
		return fault.New(fault.Invalid, "%s needs --issuer and --subject: whose sessions it is about", cmd.CommandPath()).WithHint("%s", hint)
	}
	return nil
}
