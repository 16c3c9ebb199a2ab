package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// sessionRow is a session as list_sessions describes it; one that has ended, as the list of resources does.
type sessionRow struct {
	ID          string  `json:"session_id"`
	Language    string  `json:"language"`
	Profile     string  `json:"profile,omitempty"`
	Image       string  `json:"image,omitempty"`
	State       string  `json:"state"`
	Executions  int     `json:"executions"`
	Generation  int     `json:"generation"`
	Queue       int     `json:"queue"`
	BusySeconds float64 `json:"busy_seconds"`
	Created     string  `json:"created,omitempty"`
	LastUsed    string  `json:"last_used,omitempty"`
	Ends        string  `json:"ends,omitempty"`
	Ended       string  `json:"ended,omitempty"`
	Why         string  `json:"why,omitempty"`
}

// cellRow is a cell as list_executions describes it.
type cellRow struct {
	ID         int     `json:"execution_id"`
	Status     string  `json:"status"`
	Code       string  `json:"code"`
	Generation int     `json:"generation"`
	Started    string  `json:"started,omitempty"`
	Seconds    float64 `json:"seconds"`
}

func newSessions() *cobra.Command {
	return newGroup("sessions", "List, show and end sessions of a running server", newSessionsList(), newSessionsShow(), newSessionsRemove())
}

func newSessionsList() *cobra.Command {
	var o connection
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List your sessions",
		Long: `Lists your sessions, the last used first. With --all also those that have ended and whose history is kept: their cells can
be shown (cellblock sessions show) and made a notebook of (cellblock notebook export).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				rows, err := sessionRows(ctx, c)
				if err == nil && all {
					rows, err = withEnded(ctx, c, rows)
				}
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd.OutOrStdout(), map[string]any{"sessions": rows})
				case len(rows) == 0:
					fmt.Fprintln(cmd.ErrOrStderr(), "No sessions. Running code with a session_id starts one: cellblock exec --session NAME CODE")
					return o.tellOfOthers(cmd)
				}
				return printSessions(cmd.OutOrStdout(), rows)
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also sessions that have ended")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	o.addFlags(cmd.Flags())
	return cmd
}

// tellOfOthers says where else sessions may be, where the data folder says which server is asked.
func (o connection) tellOfOthers(cmd *cobra.Command) error {
	cfg, err := configFor(cmd)
	if err != nil || o.url != "" {
		return err
	}
	for _, other := range besideFound(cfg.DataDir) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Another server on this data folder has sessions of its own: add --url %s\n", other)
	}
	return nil
}

func sessionRows(ctx context.Context, c *client.Client) ([]sessionRow, error) {
	list, err := ask[struct{ Sessions []sessionRow }](ctx, c, "list_sessions", nil)
	return append([]sessionRow{}, list.Sessions...), err
}

// withEnded adds the sessions that do not run, and of which there is a notebook.
func withEnded(ctx context.Context, c *client.Client, rows []sessionRow) ([]sessionRow, error) {
	list, err := c.ListResources(ctx, mcp.ListResourcesRequest{})
	if err != nil {
		return nil, callError(ctx, err)
	}
	for _, resource := range list.Resources {
		id, ok := strings.CutPrefix(resource.URI, "cellblock://sessions/")
		id, isNotebook := strings.CutSuffix(id, "/notebook.ipynb")
		if ok && isNotebook && !slices.ContainsFunc(rows, func(r sessionRow) bool { return r.ID == id }) {
			rows = append(rows, endedRow(id, resource))
		}
	}
	return rows, nil
}

// endedRow is what a list of resources says of a session that has ended.
func endedRow(id string, notebook mcp.Resource) (r sessionRow) {
	if notebook.Meta != nil {
		raw, _ := json.Marshal(notebook.Meta.AdditionalFields[mcpserver.SessionMeta])
		_ = json.Unmarshal(raw, &r) // an older server says nothing, and what is not known is a dash
	}
	r.ID, r.State = id, "ended"
	return r
}

// printSessions prints a table; what is not known of a session, or as it is by itself, is a dash.
func printSessions(w io.Writer, rows []sessionRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "SESSION\tLANGUAGE\tPROFILE\tIMAGE\tSTATE\tCELLS\tUSED\tENDS")
	for _, r := range rows {
		state, cells := sessions.State(r.State).Plain(), "-"
		if r.BusySeconds > 0 {
			state += " for " + words.Span(time.Duration(r.BusySeconds)*time.Second)
		}
		if r.Queue > 0 {
			state += fmt.Sprintf(", %d waiting", r.Queue)
		}
		if r.Executions > 0 {
			cells = fmt.Sprint(r.Executions)
		}
		ends := until(r.Ends)
		if r.Ended != "" {
			ends = since(r.Ended)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, cmp.Or(r.Language, "-"), cmp.Or(r.Profile, "-"), cmp.Or(r.Image, "-"), state, cells, since(r.LastUsed), ends)
	}
	return t.Flush()
}

// since says how long ago a time was, as the server writes it.
func since(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return "-"
	}
	return words.Ago(t)
}

func until(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return "-"
	}
	return "in " + words.Span(time.Until(t))
}

func printJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// shown is what sessions show tells. Session is nil when nothing but its cells is known.
type shown struct {
	Session    *sessionRow `json:"session,omitempty"`
	Executions []cellRow   `json:"executions"`
}

// showSession asks for a session and its last cells.
func showSession(ctx context.Context, c *client.Client, id string, limit int) (show shown, err error) {
	show, err = ask[shown](ctx, c, "list_executions", map[string]any{"session_id": id, "limit": limit})
	if err != nil {
		return show, err
	}
	rows, err := sessionRows(ctx, c)
	if err == nil {
		rows, err = withEnded(ctx, c, rows)
	}
	if i := slices.IndexFunc(rows, func(r sessionRow) bool { return r.ID == id }); i >= 0 {
		show.Session = &rows[i]
	}
	return show, err
}

// line says in a line what is known of a session.
func (r sessionRow) line() string {
	parts := []string{r.ID, r.Language, r.State, fmt.Sprintf("created %s", since(r.Created)), fmt.Sprintf("used %s", since(r.LastUsed))}
	if r.Profile != "" {
		parts = append(parts, "profile "+r.Profile)
	}
	if r.Image != "" {
		parts = append(parts, "image "+r.Image)
	}
	switch {
	case r.Ended != "":
		parts[2] = fmt.Sprintf("ended %s: %s", since(r.Ended), r.Why)
	case r.Ends != "":
		parts = append(parts, "kernel stops "+until(r.Ends))
	}
	return strings.Join(parts, " · ")
}

// showCell prints a cell as exec does, as far as it is.
func showCell(ctx context.Context, c *client.Client, o execOptions, number int, stdout, stderr io.Writer) error {
	result, err := callTool(ctx, c, "get_execution", map[string]any{"session_id": o.session, "execution_id": number, "wait_seconds": 0})
	if err != nil {
		return err
	}
	if refused(result) {
		return faultOf(result)
	}
	return o.print(ctx, c, result, &liveOutput{w: stdout}, stderr)
}

func newSessionsShow() *cobra.Command {
	var o execOptions
	var asJSON bool
	limit := 20
	cmd := &cobra.Command{
		Use: "show SESSION [CELL]", Short: "Show a session and its last cells, or what one of them showed, also when it has ended",
		Example: `  cellblock sessions show analysis
  cellblock sessions show analysis 3`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.session = args[0]; len(args) == 2 {
				number, err := strconv.Atoi(args[1])
				if err != nil || number < 1 {
					return fault.New(fault.Invalid, "CELL: %q is no number of a cell", args[1]).WithHint("See: cellblock sessions show %s", o.session)
				}
				if asJSON {
					return fault.New(fault.Invalid, "--json: a cell's outputs are not told so").WithHint("cellblock notebook export %s has them", o.session)
				}
				return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
					return showCell(ctx, c, o, number, cmd.OutOrStdout(), cmd.ErrOrStderr())
				})
			}
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				show, err := showSession(ctx, c, args[0], limit)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd.OutOrStdout(), show)
				case show.Session != nil:
					fmt.Fprintln(cmd.OutOrStdout(), show.Session.line())
				}
				return printCells(cmd.OutOrStdout(), show.Executions)
			})
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", limit, "how many cells at most")
	cmd.Flags().StringVar(&o.images, "images", "", "save a cell's images into this folder, in their full size")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	o.addFlags(cmd.Flags())
	return cmd
}

// printCells prints a table of cells.
func printCells(w io.Writer, rows []cellRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "CELL\tSTATUS\tTOOK\tSTARTED\tGENERATION\tCODE")
	for _, r := range rows {
		took, generation := "-", "-"
		if r.Started != "" {
			took = words.Took(time.Duration(r.Seconds * float64(time.Second)))
		}
		if r.Generation > 0 {
			generation = fmt.Sprint(r.Generation)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Status, took, since(r.Started), generation, r.Code)
	}
	return t.Flush()
}

func newSessionsRemove() *cobra.Command {
	var o connection
	var deleteFiles bool
	cmd := &cobra.Command{
		Use: "rm SESSION...", Short: "End sessions; their files and history are kept",
		Long: `Ends sessions: their kernels are stopped, running cells end. Files and history are kept, and are there again when the id is
used again, unless --delete-files is given.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) (err error) {
				for _, id := range args {
					said, failed := tell(ctx, c, "close_session", map[string]any{"session_id": id, "delete_files": deleteFiles})
					if err = errors.Join(err, failed); failed == nil {
						fmt.Fprintln(cmd.OutOrStdout(), said)
					}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&deleteFiles, "delete-files", false, "also delete their files and their history, for good")
	o.addFlags(cmd.Flags())
	return cmd
}

func newLogs() *cobra.Command {
	var o connection
	cmd := &cobra.Command{
		Use: "logs SESSION", Short: "Show what became of a session's kernels, and the log of the last one",
		Long: `Shows the kernels that a session has had, what ended them, and the end of what the container or sandbox of the last one has
logged. What cells print is not in it: see cellblock sessions show and cellblock notebook export.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				text, err := readText(ctx, c, args[0], "log")
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), text)
				}
				return err
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}
