// Command cellblock gives language models real notebooks: an MCP server with a long-lived, isolated Jupyter kernel behind
// every session_id.
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellblock/internal/fault"
	_ "cellblock/internal/heapfloor"
	"cellblock/internal/nearest"
)

// version is set by the linker.
var version = "dev"

func main() {
	switch err := newRoot().Execute(); {
	case errors.Is(err, errCellFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "cellblock:", strings.ReplaceAll(fault.Text(err), "\n", "\n  "))
		os.Exit(fault.ExitCode(err))
	}
}

// newRoot builds the command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "cellblock",
		Short: "Real notebooks for language models, over MCP",
		Long: `cellblock serves MCP tools that run code in long-lived Jupyter kernels. Each session_id is one kernel in its own
container or sandbox: variables, files and plots stay between calls.`,
		Version:      version,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.ArbitraryArgs, // an unknown command ends in RunE, which says so in our words
		RunE: unknownCommand,
	}
	root.SetFlagErrorFunc(wrongFlag)
	addConfigFlags(root)
	addGroup(root, "Serve:", newServe(), newStdio())
	addGroup(root, "Work with a server that runs:", newExec(), newOpen(), newFiles(), newNotebook(), newSessions(), newImages(), newLogs())
	addGroup(root, "Operate:", newToken(), newAudit(), newAdmin(), newReady(), newBackup(), newRestore(), newDoctor())
	addGroup(root, "Install:", newMan(), newVersion())
	root.SetCompletionCommandGroupID("Install:")
	explainCompletion(root)
	explainHelp(root)
	complete(root)
	checkArguments(root)
	return root
}

// addGroup adds commands that the help lists under a title.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// newGroup is a command that only has commands.
func newGroup(name, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs, RunE: unknownCommand}
	group.AddCommand(commands...)
	return group
}

// explainCompletion has the command that cobra adds for shells say what it does not know, as groups of ours do.
func explainCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, unknownCommand
		}
	}
}

// explainHelp has the command help refuse what is no command: cobra's own shows the help of the program then, and calls it a success.
func explainHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.RunE = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return unknownCommand(found, rest)
				}
				found.InitDefaultHelpFlag()
				return found.Help()
			}
		}
	}
}

// wrongFlag says what is wrong with a flag, and which one was meant, or how to write what is none: a session may be named -rf.
func wrongFlag(cmd *cobra.Command, err error) error {
	explained := fault.New(fault.Invalid, "%w", err)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := nearest.Of(unknown.GetSpecifiedName(), known); near != "" {
			return explained.WithHint("Did you mean --%s?", near)
		}
		if strings.Contains(cmd.Use, " ") { // it takes arguments
			return explained.WithHint("See: %s --help. What begins with - and is no flag comes after --, as in: %[1]s -- %s", cmd.CommandPath(), asTyped(unknown))
		}
	}
	return explained.WithHint("See: %s --help", cmd.CommandPath())
}

// asTyped is what was taken for a flag.
func asTyped(unknown *pflag.NotExistError) string {
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		return "-" + short
	}
	return "--" + unknown.GetSpecifiedName()
}

// unknownCommand is what a command does that only has commands: it helps.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	err := fault.New(fault.Invalid, "there is no command %q", strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "cellblock "))
	if near := nearest.Of(args[0], commandNames(cmd)); near != "" {
		return err.WithHint("Did you mean %s?", near)
	}
	return err.WithHint("See: %s --help", cmd.CommandPath())
}

func checkArguments(parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		cmd.Args = checked(cmd.Args)
		checkArguments(cmd)
	}
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// checked gives a command's complaint about its arguments a kind, and so an exit code.
func checked(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if args == nil || args(cmd, given) == nil {
			return nil
		}
		if needed := neededArguments(cmd); len(given) < len(needed) {
			return fault.New(fault.Invalid, "%s needs %s", cmd.CommandPath(), strings.Join(needed, " ")).
				WithHint("See: %s --help", cmd.CommandPath())
		}
		return fault.New(fault.Invalid, "%s does not take the arguments %q", cmd.CommandPath(), given).
			WithHint("See: %s --help", cmd.CommandPath())
	}
}

// neededArguments are the arguments that a command's usage line does not put in brackets.
func neededArguments(cmd *cobra.Command) []string {
	usage, _, _ := strings.Cut(cmd.Use, "[")
	var needed []string
	for _, name := range strings.Fields(usage)[1:] {
		needed = append(needed, strings.TrimSuffix(name, "..."))
	}
	return needed
}

// addConfigFlags adds the flags that every command shares; each is named like its configuration key.
func addConfigFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.String("config", "", "configuration file (default: the first of cellblock.yaml, the user's, /etc/cellblock/config.yaml)")
	flags.String("data-dir", "", "what must outlive the server: keys, workspaces (default "+defaultDataDir()+")")
	flags.String("log-level", "", "debug, info, warn or error (default info)")
	completeChoices(root, flags)
}

// addServerFlags adds the flags of the commands that run kernels.
func addServerFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.String("run-dir", "", "sockets (default "+defaultRunDir()+")")
	flags.String("provisioner", "", "what runs kernels: auto, docker or local (default auto)")
	flags.String("sandbox", "", "of the local provisioner: bwrap, or none to run without isolation (default bwrap)")
	flags.Bool("allow-unenforced", false, "launch kernels although this host ignores one of their limits")
	flags.String("docker-host", "", "the engine's address (default: DOCKER_HOST, then the usual sockets)")
	flags.String("docker-carrier", "", "how the server reaches a container: auto, socket or stdio (default auto)")
	flags.String("pool-size", "", "kernels of each language that are kept ready for new sessions (default 1; 0 for stdio)")
	flags.String("toolsets", "", "groups of tools to offer: execute, sessions, files, images (default execute,sessions,files)")
	flags.String("on-shutdown", "", "what becomes of kernels when this process is stopped: keep or stop (default keep under serve, stop under stdio)")
	flags.String("python", "", "interpreter of local Python kernels (default: the first that has ipykernel)")
	addLimitFlags(flags)
	completeChoices(cmd, flags)
}

// configFor loads the configuration as a command sees it.
func configFor(cmd *cobra.Command) (*Config, error) { return configOver(cmd, nil) }

// configOver is configFor for a command that has defaults of its own.
func configOver(cmd *cobra.Command, own map[string]any) (*Config, error) {
	named, _ := cmd.Flags().GetString("config")
	if named == "" {
		named = os.Getenv("CELLBLOCK_CONFIG")
	}
	return loadConfig(sources{flags: cmd.Flags(), environ: os.Environ(), defaults: own, files: configFiles(), named: named})
}

// newLogger writes to stderr; stdout belongs to the protocol and to results.
func newLogger(cfg LogConfig) *slog.Logger { return slog.New(logHandler(os.Stderr, cfg)) }

// logHandler writes lines in the form that is configured.
func logHandler(w io.Writer, cfg LogConfig) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // checked by Config.check
	if cfg.Format == "json" {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: durationsInSeconds})
	}
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
}

// durationsInSeconds has a duration written in seconds, as in the audit log. JSON would have it in nanoseconds, and no unit beside it.
func durationsInSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}
