package main

import (
	"context"
	"io"

	"github.com/mark3labs/mcp-go/client"
	"github.com/spf13/cobra"
)

func newNotebook() *cobra.Command {
	return newGroup("notebook", "Make notebooks of sessions, and sessions of notebooks", newNotebookExport(), newNotebookImport())
}

func newNotebookExport() *cobra.Command {
	var o connection
	var to string
	var force bool
	cmd := &cobra.Command{
		Use: "export SESSION", Short: "Write a session as a Jupyter notebook, also when it has ended",
		Long: `Writes all that a session has run, with what it showed, as a Jupyter notebook (nbformat 4.5). Cells that never ran are left
out. Between cells of different kernels a text says what ended the earlier one.`,
		Example: `  cellblock notebook export analysis -o analysis.ipynb
  cellblock notebook export analysis | jupyter nbconvert --stdin --to html --output analysis.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := vacant(to, force); err != nil {
				return err
			}
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				return saveFile(to, force, cmd.OutOrStdout(), cmd.ErrOrStderr(), func(w io.Writer) error {
					return copyText(ctx, c, args[0], "notebook.ipynb", w)
				})
			})
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "-", `write it into this file; "-": to standard output`)
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is here")
	o.addFlags(cmd.Flags())
	return cmd
}
