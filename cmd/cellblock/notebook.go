package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/spf13/cobra"

	"cellblock/internal/fault"
)

func newNotebook() *cobra.Command {
	return newGroup("notebook", "Make notebooks of sessions, and sessions of notebooks", newNotebookExport(), newNotebookImport())
}

func newNotebookExport() *cobra.Command {
	var o connection
	var to string
	cmd := &cobra.Command{
		Use: "export SESSION", Short: "Write a session as a Jupyter notebook, also when it has ended",
		Long: `Writes all that a session has run, with what it showed, as a Jupyter notebook (nbformat 4.5). Cells that never ran are left
out. Between cells of different kernels a text says what ended the earlier one.`,
		Example: `  cellblock notebook export analysis -o analysis.ipynb
  cellblock notebook export analysis | jupyter nbconvert --stdin --to html --output analysis.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				text, err := readText(ctx, c, args[0], "notebook.ipynb")
				if err != nil {
					return err
				}
				return writeNotebook(to, text, cmd.OutOrStdout(), cmd.ErrOrStderr())
			})
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "write it into this file (default: standard output)")
	o.addFlags(cmd.Flags())
	return cmd
}

func writeNotebook(to, text string, stdout, stderr io.Writer) error {
	if to == "" || to == "-" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		return fault.New(fault.Unavailable, "the notebook cannot be written: %w", err)
	}
	fmt.Fprintln(stderr, to)
	return nil
}
