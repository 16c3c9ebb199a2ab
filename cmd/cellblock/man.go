package main

import (
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"cellblock/internal/fault"
)

// newMan writes the manual pages, for those who make packages.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages of all commands into a folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return noPages(err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the date is in the header
			built := builtAt()
			return noPages(doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "cellblock " + version, Manual: "cellblock", Date: &built}, args[0]))
		},
	}
}

// noPages is the error of a folder into which no pages can be written.
func noPages(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Invalid, "the manual pages cannot be written: %w", err).WithHint("Name a folder that this user may write.")
}

// builtAt is when the program's commit was made, so that the same program writes the same pages.
func builtAt() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		if at, err := time.Parse(time.RFC3339, settings(info)["vcs.time"]); err == nil {
			return at
		}
	}
	return time.Unix(0, 0).UTC()
}
