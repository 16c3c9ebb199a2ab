package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellblock/images"
)

// Shells complete names of files where nothing tells them not to. Here they do so only where a file of this machine is meant.

// fileFlags are the flags that name a file or a folder of this machine.
var fileFlags = []string{"config", "data-dir", "run-dir", "python", "tls-cert", "tls-key", "token-file", "file", "output", "images"}

// fileArguments are the names of such arguments in usage lines.
var fileArguments = []string{"DEST", "FOLDER", "FILE", "PROGRAM"}

// wordsOfFlags are the words that a flag can be followed by, as far as they are known at once.
var wordsOfFlags = map[string]func(cmd *cobra.Command) []string{
	"check":    func(*cobra.Command) []string { return checkNames },
	"language": knownLanguages,
	"profile":  knownProfiles,
	"session":  runningSessions,
}

// completionPatience is how long a person waits for a server to say what there is.
const completionPatience = time.Second

// complete tells shells what can follow each of a command's words and flags, and those of the commands below it.
func complete(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = completeArguments
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, done := cmd.GetFlagCompletionFunc(f.Name); done || f.NoOptDefVal != "" || slices.Contains(fileFlags, f.Name) {
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, completeFlag(wordsOfFlags[f.Name])); err != nil {
			panic("cellblock: " + err.Error()) // the flag is there, and is given once
		}
	})
	for _, below := range cmd.Commands() {
		complete(below)
	}
}

// completeArguments tells the words of an argument, or leaves it to the shell if it is a file, as the command's usage line calls it.
func completeArguments(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch name := argumentName(cmd, len(given)); {
	case slices.Contains(fileArguments, name):
		return nil, cobra.ShellCompDirectiveDefault
	case name == "SESSION":
		others := slices.DeleteFunc(runningSessions(cmd), func(id string) bool { return slices.Contains(given, id) })
		return others, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// argumentName is what a command's usage line calls an argument, "" for one too many; the last may stand for all that follow.
func argumentName(cmd *cobra.Command, i int) string {
	names := strings.Fields(cmd.Use)[1:]
	if last := len(names) - 1; i > last && last >= 0 && strings.HasSuffix(names[last], "...") {
		i = last
	}
	if i >= len(names) {
		return ""
	}
	return strings.TrimSuffix(strings.Trim(names[i], "[]"), "...")
}

// runningSessions are the caller's, if the server says so within a moment: who waits for his shell wants no error.
func runningSessions(cmd *cobra.Command) (ids []string) {
	cfg, err := configFor(cmd)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	var o connection
	o.url, _ = cmd.Flags().GetString("url") // each command that knows sessions has both
	o.tokenFile, _ = cmd.Flags().GetString("token-file")
	c, err := o.dial(ctx, cfg, nil)
	if err != nil {
		return nil
	}
	defer c.Close()
	rows, _ := sessionRows(ctx, c)
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// completeFlag completes a flag's words; nil: there are none to tell.
func completeFlag(words func(*cobra.Command) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) (found []string, _ cobra.ShellCompDirective) {
		if words != nil {
			found = words(cmd)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// knownLanguages are those that images of ours bring, and those that the configuration names.
func knownLanguages(cmd *cobra.Command) []string {
	var names []string
	for _, ours := range images.AllOurs() {
		names = append(names, ours.Name)
	}
	if cfg, err := configFor(cmd); err == nil { // else whoever runs the command is told
		for key := range cfg.Images {
			names = append(names, images.Name(key))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// knownProfiles are those of the configuration.
func knownProfiles(cmd *cobra.Command) []string {
	cfg, err := configFor(cmd)
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(cfg.Profiles))
}
