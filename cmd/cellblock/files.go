package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"cellblock/internal/fault"
)

// fileList is what list_files answers.
type fileList struct {
	Files      []fileRow `json:"files"`
	TotalFiles int       `json:"total_files"`
	TotalBytes int64     `json:"total_bytes"`
	Partial    bool      `json:"partial"`
}

type fileRow struct {
	Path     string `json:"path"`
	Type     string `json:"type"`
	Size     int64  `json:"size"`
	Modified string `json:"modified"`
	Target   string `json:"target,omitempty"`
}

func newFiles() *cobra.Command {
	return newGroup("files", "List, fetch, store and delete files of sessions", newFilesList(), newFilesGet(), newFilesPut(), newFilesRemove())
}

func newFilesList() *cobra.Command {
	var o connection
	var glob string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls SESSION [PATH]", Aliases: []string{"list"}, Short: "List a session's files, also when it has ended",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				list, err := ask[fileList](ctx, c, "list_files", map[string]any{"session_id": args[0], "path": strings.Join(args[1:], ""), "glob": glob})
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd.OutOrStdout(), list)
				}
				return printFiles(cmd.OutOrStdout(), cmd.ErrOrStderr(), list)
			})
		},
	}
	cmd.Flags().StringVarP(&glob, "glob", "g", "", "only what matches: '*.csv', 'data/**/*.py'")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	o.addFlags(cmd.Flags())
	return cmd
}

// printFiles prints a table, and what is missing in it.
func printFiles(stdout, stderr io.Writer, list fileList) error {
	t := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "SIZE\tMODIFIED\tPATH")
	files := 0
	for _, f := range list.Files {
		size, name := "-", f.Path
		switch f.Type {
		case "file":
			size = fmt.Sprint(f.Size)
		case "folder":
			name += "/"
		case "link":
			name += " -> " + f.Target
		default:
			name += " (" + f.Type + ")"
		}
		if f.Type != "folder" {
			files++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", size, since(f.Modified), name)
	}
	if files < list.TotalFiles || list.Partial {
		fmt.Fprintf(stderr, "%d of %d files are shown; give a PATH or --glob to see others\n", files, list.TotalFiles)
	}
	return t.Flush()
}

func newFilesGet() *cobra.Command {
	var o connection
	var to string
	cmd := &cobra.Command{
		Use: "get SESSION PATH", Short: "Fetch a file of a session",
		Example: `  cellblock files get analysis plots/income.png
  cellblock files get analysis result.csv -o - | head`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				to = path.Base(args[1])
			}
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				contents, err := readResource(ctx, c, args[0], "files/"+escapePath(args[1]))
				if err != nil {
					return err
				}
				raw, err := bytesOf(contents)
				if err != nil {
					return err
				}
				return saveFile(to, raw, cmd.OutOrStdout(), cmd.ErrOrStderr())
			})
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", `write it into this file; "-": to standard output (default: its own name, here)`)
	o.addFlags(cmd.Flags())
	return cmd
}

// escapePath writes a path as a part of a URI.
func escapePath(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(path.Clean(name), "/workspace"), "/")
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// bytesOf is the content of a resource.
func bytesOf(contents mcp.ResourceContents) ([]byte, error) {
	switch c := contents.(type) {
	case mcp.TextResourceContents:
		return []byte(c.Text), nil
	case mcp.BlobResourceContents:
		return base64.StdEncoding.DecodeString(c.Blob)
	}
	return nil, fault.New(fault.Internal, "the server sent a file in a form that is not known")
}

func saveFile(to string, content []byte, stdout, stderr io.Writer) error {
	if to == "-" {
		_, err := stdout.Write(content)
		return err
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		return fault.New(fault.Unavailable, "the file cannot be written: %w", err)
	}
	fmt.Fprintln(stderr, to)
	return nil
}

func newFilesPut() *cobra.Command {
	var o connection
	cmd := &cobra.Command{
		Use: "put SESSION FILE [PATH]", Short: "Store a file of this machine in a session's workspace",
		Long: `Stores a file, or standard input (-), in a session's workspace: under its own name, or as PATH; in PATH, if that ends with a
slash. Folders are made. The session need not run, nor have been there before.`,
		Example: `  cellblock files put analysis income.csv
  cellblock files put analysis plot.py scripts/`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			content, err := readLocal(args[1], cmd.InOrStdin())
			if err != nil {
				return err
			}
			to, err := putPath(args[1], strings.Join(args[2:], ""))
			if err != nil {
				return err
			}
			return o.say(cmd, "write_file", map[string]any{
				"session_id": args[0], "path": to, "content": base64.StdEncoding.EncodeToString(content), "encoding": "base64",
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func readLocal(name string, stdin io.Reader) (content []byte, err error) {
	if name == "-" {
		content, err = io.ReadAll(stdin)
	} else {
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fault.New(fault.NotFound, "the file cannot be read: %w", err)
	}
	return content, nil
}

// putPath is where a local file goes.
func putPath(name, to string) (string, error) {
	switch {
	case to != "" && !strings.HasSuffix(to, "/"):
		return to, nil
	case name == "-":
		return "", fault.New(fault.Invalid, "standard input has no name").WithHint("Give the PATH that it is to be stored as.")
	}
	return to + filepath.Base(name), nil
}

func newFilesRemove() *cobra.Command {
	var o connection
	var recursive bool
	cmd := &cobra.Command{
		Use: "rm SESSION PATH...", Short: "Delete files of a session", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) (err error) {
				for _, name := range args[1:] {
					said, failed := tell(ctx, c, "delete_file", map[string]any{"session_id": args[0], "path": name, "recursive": recursive})
					if err = errors.Join(err, failed); failed == nil {
						fmt.Fprintln(cmd.OutOrStdout(), said)
					}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "also folders that are not empty")
	o.addFlags(cmd.Flags())
	return cmd
}

// say calls a tool that does something, and prints what it says.
func (o connection) say(cmd *cobra.Command, tool string, args map[string]any) error {
	return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
		said, err := tell(ctx, c, tool, args)
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), said)
		}
		return err
	})
}
