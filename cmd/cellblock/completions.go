package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellblock/images"
)

// Shells complete names of files where nothing tells them not to. Here they do so only where a file of this machine is meant.

// fileFlags are the flags that name a file or a folder of this machine.
var fileFlags = []string{"config", "data-dir", "run-dir", "python", "tls-cert", "tls-key", "token-file", "file", "output", "images"}

// fileArguments are the names of such arguments in usage lines.
var fileArguments = []string{"DEST", "FOLDER", "FILE", "PROGRAM"}

// wordsOfFlags are the words that a flag can be followed by, as far as they are known without a server.
var wordsOfFlags = map[string]func(cmd *cobra.Command) []string{
	"check":    func(*cobra.Command) []string { return checkNames },
	"language": knownLanguages,
	"profile":  knownProfiles,
}

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

// completeArguments leaves an argument to the shell if it is a file, as the command's usage line calls it.
func completeArguments(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if names := strings.Fields(cmd.Use)[1:]; len(given) < len(names) && slices.Contains(fileArguments, strings.Trim(names[len(given)], "[]")) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
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
