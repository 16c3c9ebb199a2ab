package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"cellblock/internal/words"
	"cellblock/mcpserver"
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
		size, name := "-", words.Name(f.Path)
		switch f.Type {
		case "file":
			size = words.Bytes(f.Size)
		case "folder":
			name += "/"
		case "link":
			name += " -> " + words.Name(f.Target)
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
	var force bool
	cmd := &cobra.Command{
		Use: "get SESSION PATH", Short: "Fetch a file of a session",
		Example: `  cellblock files get analysis plots/income.png
  cellblock files get analysis result.csv -o - | head`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				to = path.Base(args[1])
			}
			if err := vacant(to, force); err != nil {
				return err
			}
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				return saveFile(to, force, cmd.OutOrStdout(), cmd.ErrOrStderr(), func(w io.Writer) error {
					return getFile(ctx, c, args[0], args[1], w)
				})
			})
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", `write it into this file; "-": to standard output (default: its own name, here)`)
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is here")
	o.addFlags(cmd.Flags())
	return cmd
}

// escapePath writes a path as a part of a URI.
func escapePath(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(path.Clean(name)+"/", "/workspace/"), "/")
	name = strings.TrimSuffix(name, "/")
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// getFile fetches a file, part by part.
func getFile(ctx context.Context, c *client.Client, session, name string, w io.Writer) error {
	for offset, size := int64(0), int64(-1); size < 0 || offset < size; {
		contents, err := readResource(ctx, c, session, fmt.Sprintf("files/%s?offset=%d", escapePath(name), offset))
		if err != nil {
			return err
		}
		part, whole, err := partOf(contents)
		if err != nil {
			return err
		}
		if size >= 0 && whole != size || len(part) == 0 && offset < whole {
			return fault.New(fault.Conflict, "%s changed while it was fetched", name).WithHint("Fetch it again when nothing writes it.")
		}
		if _, err := w.Write(part); err != nil {
			return unwritable(err)
		}
		offset, size = offset+int64(len(part)), whole
	}
	return nil
}

// partOf is a part of a file, and how large the whole is.
func partOf(contents mcp.ResourceContents) (part []byte, whole int64, err error) {
	blob, ok := contents.(mcp.BlobResourceContents)
	about, known := blob.Meta[mcpserver.FileMeta].(map[string]any)
	size, sized := about["size"].(float64)
	if !ok || !known || !sized || size < 0 {
		return nil, 0, fault.New(fault.Internal, "the server sent a file in a form that is not known")
	}
	part, err = base64.StdEncoding.DecodeString(blob.Blob)
	return part, int64(size), err
}

func unwritable(err error) error {
	return fault.New(fault.Unavailable, "the file cannot be written: %w", err)
}

// vacant is an error for the name of a file that is there, unless it may be replaced.
func vacant(to string, replace bool) error {
	info, err := os.Lstat(to)
	switch {
	case err != nil || to == "-" || replace && info.Mode().IsRegular():
		return nil
	case !info.Mode().IsRegular():
		return fault.New(fault.Conflict, "%s is there already, and is no file", to).WithHint("Choose another name with -o; - is standard output.")
	}
	return fault.New(fault.Conflict, "%s is there already", to).WithHint("Replace it with --force, or choose another name with -o.")
}

// saveFile makes a file of this machine of what fetch writes, "-" for standard output. It appears when it is whole, and one that
// is there stays unless it may be replaced.
func saveFile(to string, replace bool, stdout, stderr io.Writer, fetch func(io.Writer) error) error {
	if to == "-" {
		return fetch(stdout)
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(to), ".cellblock-get-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		at.Path = to // and not a name that nobody has given
	}
	if err != nil {
		return unwritable(err)
	}
	defer os.Remove(f.Name()) // unless it has become the other
	if err := errors.Join(fetch(f), f.Close()); err != nil {
		return err
	}
	if err := vacant(to, replace); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), to); err != nil {
		return unwritable(err)
	}
	fmt.Fprintln(stderr, to)
	return nil
}

func newFilesPut() *cobra.Command {
	var o connection
	cmd := &cobra.Command{
		Use: "put SESSION FILE [PATH]", Short: "Store a file of this machine in a session's workspace",
		Long: `Stores a file, or standard input (-), in a session's workspace: under its own name, or as PATH; in PATH, if that ends with a
slash. Folders are made. The session need not run, nor have been there before. A file of any size is taken; it appears when it
has come as a whole.`,
		Example: `  cellblock files put analysis income.csv
  cellblock files put analysis plot.py scripts/`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := putPath(args[1], strings.Join(args[2:], ""))
			if err != nil {
				return err
			}
			local, err := openLocal(args[1], cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer local.Close()
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				said, err := putFile(ctx, c, args[0], to, local)
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), said)
				}
				return err
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// openLocal opens a file of this machine.
func openLocal(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(name)
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.IsDir() {
			_ = f.Close()
			return nil, fault.New(fault.Invalid, "%s is a folder", name).WithHint("Give a file; a folder can be sent as an archive.")
		}
	}
	if err != nil {
		return nil, fault.New(fault.NotFound, "the file cannot be read: %w", err)
	}
	return f, nil
}

// putPart is how much of a file is sent at once.
const putPart = 8 << 20

// putFile sends a file: a small one at once, a larger one in parts, which appear together when all have come.
func putFile(ctx context.Context, c *client.Client, session, to string, local io.Reader) (said string, err error) {
	upload, offset, part, more := "", int64(0), make([]byte, putPart), true
	for more {
		n, err := io.ReadFull(local, part)
		if more = err == nil; err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return "", fault.New(fault.Unavailable, "the file cannot be read: %w", err)
		}
		if more && upload == "" {
			upload = rand.Text()
		}
		if n > 0 || upload == "" {
			if said, err = putContent(ctx, c, session, to, upload, offset, part[:n]); err != nil {
				return "", err
			}
			offset += int64(n)
		}
	}
	if upload == "" {
		return said, nil
	}
	return putContent(ctx, c, session, to, upload, offset, nil)
}

// putContent sends a file, or a part of an upload; an empty part ends it.
func putContent(ctx context.Context, c *client.Client, session, to, upload string, offset int64, content []byte) (string, error) {
	args := map[string]any{"session_id": session, "path": to, "content": base64.StdEncoding.EncodeToString(content), "encoding": "base64"}
	if upload != "" {
		args["upload"], args["offset"] = upload, offset
	}
	return tell(ctx, c, "write_file", args)
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
