package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"cellblock/audit"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver"
	"cellblock/sessions"
	"cellblock/sessions/history"
)

// auditPath is the file of the audit log.
func (c *Config) auditPath() string {
	if c.Audit.Path != "" {
		return c.Audit.Path
	}
	return filepath.Join(c.DataDir, "audit.jsonl")
}

// openAudit begins the audit log, unless there is to be none.
func (a *app) openAudit(cfg *Config) error {
	if !cfg.Audit.Enabled {
		return nil
	}
	key, err := audit.Key(cfg.DataDir)
	if err != nil {
		return err
	}
	o := audit.Options{
		Path: cfg.auditPath(), Key: key, MaxBytes: int64(cfg.Audit.MaxBytes), Required: cfg.Audit.Required, Code: cfg.Audit.Code, Logger: a.logger,
		CopyName: auditName(cfg.auditPath(), cfg.DataDir),
	}
	if a.history != nil {
		o.Copies = a.history
	}
	a.audit, err = audit.Open(o)
	if err == nil {
		a.audit.Append(audit.Entry{Event: audit.Started, Reason: fmt.Sprintf("cellblock %s, slot %s", version, a.slot.name)})
	}
	return err
}

// auditName is what the history knows an audit log by: its path from the data folder, so that this can be moved with it.
func auditName(path, dataDir string) string {
	path, err := filepath.Abs(path)
	if rel, relErr := filepath.Rel(dataDir, path); err == nil && relErr == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// closeAudit ends the audit log.
func (a *app) closeAudit() error {
	a.audit.Append(audit.Entry{Event: audit.Stopped, Reason: "slot " + a.slot.name})
	return a.audit.Close()
}

// cellEnded tells the audit log and the metrics how a cell went.
func (a *app) cellEnded(o sessions.Owner, e *sessions.Execution) {
	a.metrics.CellEnded(e)
	if a.audit != nil {
		a.audit.Append(mcpserver.CellEnded(o, e))
	}
}

// withAudit adds to how the server is what keeps the audit log from being written. Where that is required, nothing runs.
func (a *app) withAudit(report mcpserver.HealthReport) mcpserver.HealthReport {
	err := a.audit.Health()
	if err == nil {
		return report
	}
	status := mcpserver.HealthDegraded
	if a.audit.Required {
		status = mcpserver.HealthDown
	}
	report.AddLogged(status, err, "the audit log cannot be written")
	return report
}

func newAudit() *cobra.Command {
	return newGroup("audit", "Check the log of who had what done", newAuditVerify())
}

func newAuditVerify() *cobra.Command {
	var path string
	var from uint64
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that the audit log is as it was written",
		Long: `Reads the whole audit log, all its files, and says which lines were changed, are missing, stand elsewhere than they were
written, or were cut off. It needs the key and, to tell when log and head were put back together, the history in the data
folder, and may run while servers do. The exit status is 65 where something is wrong.`,
		Example: `  cellblock audit verify
  cellblock audit verify --from 120001    # the lines before were moved to an archive`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			if path == "" {
				path = cfg.auditPath()
			}
			key, err := audit.ReadKey(cfg.DataDir)
			if err != nil {
				return fault.New(fault.KindOf(err), "the audit log cannot be verified: %w", err).WithHint("%s", fault.Hint(err))
			}
			headCopy, unread := history.ReadAuditHead(cmd.Context(), cfg.DataDir, auditName(path, cfg.DataDir))
			report, err := audit.Verify(audit.Check{Path: path, Key: key, From: from, Copy: headCopy})
			if err != nil {
				return err
			}
			if unread != nil {
				report.Notes = append(report.Notes, fmt.Sprintf("whether log and head were put back together is not known: %v", unread))
			}
			return printReport(cmd, path, report)
		},
	}
	cmd.Flags().StringVar(&path, "file", "", "the log, where it is not that of the data folder (the key still is)")
	cmd.Flags().Uint64Var(&from, "from", 1, "the number of the first line that should be there")
	return cmd
}

func printReport(cmd *cobra.Command, path string, r audit.Report) error {
	out := cmd.OutOrStdout()
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	for _, problem := range r.Problems {
		fmt.Fprintln(out, "problem:", problem)
	}
	if r.Unnamed > 0 {
		fmt.Fprintf(out, "problem: and %d more\n", r.Unnamed)
	}
	what := fmt.Sprintf("%s (%d to %d) in %s", words.Count(int64(r.Lines), "line"), r.First, r.Last, words.Count(int64(r.Files), "file"))
	if n := len(r.Problems) + r.Unnamed; n > 0 {
		return fault.New(fault.Conflict, "%s is not as it was written: %s; %s hold", path, words.Count(int64(n), "problem"), what)
	}
	_, err := fmt.Fprintf(out, "%s is as it was written: %s\n", path, what)
	return err
}
