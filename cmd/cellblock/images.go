package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"
)

// imageRow is an image as list_images describes it.
type imageRow struct {
	Name      string   `json:"name"`
	Languages []string `json:"languages"`
	Packages  []string `json:"packages,omitempty"`
	Base      string   `json:"base,omitempty"`
	Yours     bool     `json:"yours"`
	SizeMB    int64    `json:"size_mb"`
	Created   string   `json:"created,omitempty"`
	LastUsed  string   `json:"last_used,omitempty"`
}

func newImages() *cobra.Command {
	return newGroup("images", "Make, list and delete images with packages on a running server",
		newImagesList(), newImagesCreate(), newImagesRemove(), newImagesInstall())
}

func newImagesList() *cobra.Command {
	var o connection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the images that your sessions may run in", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				list, err := ask[struct {
					Images []imageRow `json:"images"`
				}](ctx, c, "list_images", nil)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd.OutOrStdout(), list)
				}
				return printImages(cmd.OutOrStdout(), list.Images)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	o.addFlags(cmd.Flags())
	return cmd
}

// printImages prints a table; what is not known of an image is a dash.
func printImages(w io.Writer, rows []imageRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "IMAGE\tLANGUAGES\tPACKAGES\tSIZE\tUSED")
	for _, r := range rows {
		packages := "-"
		if r.Yours {
			packages = cmp.Or(strings.Join(r.Packages, ", "), packages)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d MB\t%s\n", r.Name, strings.Join(r.Languages, ", "), packages, r.SizeMB, since(r.LastUsed))
	}
	return t.Flush()
}

func newImagesCreate() *cobra.Command {
	var o connection
	var languages []string
	cmd := &cobra.Command{
		Use: "create NAME PACKAGE...", Short: "Build an image with packages",
		Long: `Builds an image with packages, in which new sessions can run: cellblock exec --image NAME. Packages are those of the
language's own manager, or have their manager's name before them. What the build prints goes to standard error; Ctrl-C gives it up.`,
		Example: `  cellblock images create ml polars 'scikit-image>=0.24' apt:graphviz
  cellblock images create web --language javascript express@5`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			call := map[string]any{"name": args[0], "packages": args[1:]}
			if len(languages) > 0 {
				call["languages"] = languages
			}
			return o.build(cmd, "create_image", call)
		},
	}
	cmd.Flags().StringSliceVarP(&languages, "language", "l", nil, "languages that the image must bring (default: the server's first)")
	o.addFlags(cmd.Flags())
	return cmd
}

func newImagesInstall() *cobra.Command {
	var o connection
	var move bool
	cmd := &cobra.Command{
		Use: "install SESSION PACKAGE...", Short: "Build an image that adds packages to a session's",
		Long: `Builds an image that has what a session's has, and further packages. With --move the session is restarted in it: its files and history
are kept, and variables that can be saved are there again.`,
		Example: `  cellblock images install analysis polars --move`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.build(cmd, "install_package", map[string]any{"session_id": args[0], "packages": args[1:], "move": move})
		},
	}
	cmd.Flags().BoolVar(&move, "move", false, "restart the session in the image")
	o.addFlags(cmd.Flags())
	return cmd
}

// build calls a tool that builds an image: its log goes to standard error, what it says in the end to standard output.
func (o connection) build(cmd *cobra.Command, tool string, args map[string]any) error {
	log := func(n mcp.JSONRPCNotification) {
		message, _ := n.Params.AdditionalFields["message"].(string)
		if _, text, printed := strings.Cut(message, "\n"); printed { // the first line says how long it has taken
			message = text
		}
		fmt.Fprintln(cmd.ErrOrStderr(), message)
	}
	return o.withClientHearing(cmd, log, func(ctx context.Context, c *client.Client) error {
		said, err := tell(ctx, c, tool, args)
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), said)
		}
		return err
	})
}

func newImagesRemove() *cobra.Command {
	var o connection
	cmd := &cobra.Command{
		Use: "rm NAME...", Short: "Delete images; sessions that run in them go on", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) (err error) {
				for _, name := range args {
					said, failed := tell(ctx, c, "delete_image", map[string]any{"name": name})
					if err = errors.Join(err, failed); failed == nil {
						fmt.Fprintln(cmd.OutOrStdout(), said)
					}
				}
				return err
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}
