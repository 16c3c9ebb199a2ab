package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cellblock/auth"
	"cellblock/internal/fault"
)

func newToken() *cobra.Command {
	var spec auth.TokenSpec
	var rotate bool
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Mint a token for dev mode",
		Long: `Prints a bearer token, signed with the development key in the data folder. Servers that run in dev mode with the same
data folder accept it. With an identity provider, get tokens from there.
With --rotate the key is replaced first: all tokens made so far end at once, also on servers that run.`,
		Example: `  cellblock token
  cellblock token --subject ci --scopes python:execute,sessions:read --lifetime 1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			if err := checkSpec(spec); err != nil {
				return err
			}
			had, open := auth.HasDevKey(cfg.DataDir), auth.EnsureDev
			if rotate {
				open = auth.RotateDev
			}
			dev, err := open(cfg.DataDir)
			if err != nil {
				return err
			}
			if !had {
				fmt.Fprintf(cmd.ErrOrStderr(), "cellblock: there was no key in %s, and one was made; only servers that run in dev mode on "+
					"this folder accept its tokens (--data-dir names another)\n", cfg.DataDir)
			}
			token, err := dev.Mint(spec)
			if err != nil {
				return err
			}
			for _, scope := range spec.Scopes {
				if meant := auth.MeantScope(scope); meant != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "cellblock: %s is for a language of your own; did you mean %s?\n", scope, meant)
				}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return err
		},
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "replace the key first, so that all tokens made so far end at once")
	cmd.Flags().StringVar(&spec.Subject, "subject", "dev", "whom the token names; sessions belong to it")
	cmd.Flags().StringSliceVar(&spec.Scopes, "scopes", nil, "what it may do, as python:execute,sessions:read (default: everything but sessions:admin)")
	spec.Lifetime = 30 * 24 * time.Hour
	cmd.Flags().Var(&durationFlag{value: &spec.Lifetime}, "lifetime", "how long it is good for")
	return cmd
}

// checkSpec refuses a subject or scopes that are given as nothing, as by a variable that is not set: the token would be another's, or
// good for nothing.
func checkSpec(spec auth.TokenSpec) error {
	if spec.Subject == "" {
		return fault.New(fault.Invalid, "--subject is empty").WithHint("Name whom the token is for, or leave --subject out: it is dev then.")
	}
	if spec.Scopes != nil && len(spec.Scopes) == 0 {
		return fault.New(fault.Invalid, "--scopes is empty").
			WithHint("Name what may be done, as python:execute,sessions:read, or leave --scopes out: it is everything but sessions:admin then.")
	}
	return nil
}
