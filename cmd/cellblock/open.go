package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/web/viewer"
	"cellblock/web/viewer/signin"
)

// signInsDir is where sign-ins of browsers are kept.
func (c *Config) signInsDir() string { return filepath.Join(c.DataDir, "signins") }

// viewer is the pages for people.
func (a *app) viewer(cfg *Config, env auth.EnvConfig, base string) (*viewer.Viewer, error) {
	if cfg.Viewer.ClientID != "" && env.AuthorizationServer() == "" {
		a.logger.Warn("viewer.client_id is set, and nobody signs in with it: there is no identity provider", "hint", "Set MCP_ISSUER, or take it away.")
	}
	signIns, err := signin.Open(cfg.signInsDir())
	if err != nil {
		return nil, err
	}
	dataDir := cfg.DataDir
	if dataDir == defaultDataDir() || cfg.DevAllowRemote { // strangers need not know where it is
		dataDir = ""
	}
	return viewer.New(viewer.Config{
		Provider: a.provider(cfg, env, base), Sessions: a.sessions, Verifier: a.authority.Verifier, SignIns: signIns, PublicURL: base, Dev: env.Dev(), DataDir: dataDir,
		Health: a.health, Images: a.mcp.Images, ErrorHint: a.mcp.ErrorHints(), PrintedHint: a.mcp.PrintedHints(), Audit: a.audit, Limiter: a.mcp.Limiter, Version: version, Logger: a.logger,
	}), nil
}

// provider is where people sign in.
func (a *app) provider(cfg *Config, env auth.EnvConfig, base string) viewer.ProviderConfig {
	scopes := cfg.Viewer.Scopes
	if len(scopes) == 0 {
		scopes = auth.Prefixed(env.ScopePrefix, a.access.Scopes())
	}
	return viewer.ProviderConfig{
		Issuer: env.AuthorizationServer(), ClientID: cfg.Viewer.ClientID, ClientSecret: cfg.Viewer.ClientSecret, Scopes: scopes,
		Resource: env.AudiencesOr(base + "/mcp")[0],
	}
}

// browserLine tells a person how to look at sessions with a browser: in dev mode, where whoever reads this may have all, with a
// link that signs in, once.
func (a *app) browserLine(cfg *Config, tokenPath, base string) string {
	line := "cellblock shows sessions in a browser at " + base + "/"
	if tokenPath == "" {
		return line
	}
	code, err := devCode(cfg)
	if err != nil {
		a.logger.Warn("there is no link to sign in with", "error", err)
		return line
	}
	return "cellblock shows sessions in a browser; this link signs in, once: " + signInURL(base, code)
}

func signInURL(base, code string) string { return base + "/signin?code=" + code }

// devCode is a code for the token of dev mode.
func devCode(cfg *Config) (string, error) {
	dev, err := auth.EnsureDev(cfg.DataDir)
	if err != nil {
		return "", err
	}
	token, err := dev.Mint(auth.TokenSpec{})
	if err != nil {
		return "", err
	}
	return signin.NewCode(cfg.signInsDir(), token)
}

func newOpen() *cobra.Command {
	var o connection
	var spec auth.TokenSpec
	cmd := &cobra.Command{
		Use: "open", Short: "Print a link that signs a browser in", Args: cobra.NoArgs,
		Long: `Prints a link to the server's sessions that signs a browser in, once and within ten minutes. In dev mode it stands for a token
that is made for it, with an identity provider for the one in --token-file or CELLBLOCK_TOKEN. It must run where the server's
data folder is.`,
		Example: `  cellblock open
  cellblock open --subject ann --scopes sessions:read    # somebody who only looks`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			if err := checkSpec(spec); err != nil {
				return err
			}
			token, err := o.browserToken(cfg, spec)
			if err != nil {
				return err
			}
			endpoint, err := o.address(cfg)
			if err != nil {
				return err
			}
			if o.namesToken() {
				if err := askAbout(cmd.Context(), endpoint, token); err != nil {
					return err
				}
			}
			base := strings.TrimSuffix(endpoint, "/mcp")
			if cfg.PublicURL != "" {
				base = cfg.PublicURL
			}
			code, err := signin.NewCode(cfg.signInsDir(), token)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), signInURL(base, code))
			return err
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&spec.Subject, "subject", "dev", "whom the browser is signed in as, in dev mode")
	cmd.Flags().StringSliceVar(&spec.Scopes, "scopes", nil, "what he may do, in dev mode (default: everything but sessions:admin)")
	spec.Lifetime = 30 * 24 * time.Hour
	cmd.Flags().Var(&durationFlag{value: &spec.Lifetime}, "lifetime", "how long the sign-in is good for, in dev mode")
	return cmd
}

// askTimeout bounds how long a server is asked about a token.
const askTimeout = 10 * time.Second

// askAbout returns why the server does not take a token, whose link would lead to a page that says so. A server that cannot be asked
// may be there when the link is followed.
func askAbout(ctx context.Context, endpoint, token string) error {
	typed, _, release := stopSignals(ctx)
	defer release()
	ctx, cancel := context.WithTimeout(typed, askTimeout)
	defer cancel()
	c, err := dialMCP(ctx, endpoint, token, nil)
	if err == nil {
		return c.Close()
	}
	if kind := fault.KindOf(err); kind == fault.Unauthenticated || kind == fault.Forbidden || typed.Err() != nil {
		return err
	}
	return nil
}

// namesToken tells whether somebody has said which token to use.
func (o connection) namesToken() bool { return o.tokenFile != "" || os.Getenv("CELLBLOCK_TOKEN") != "" }

// browserToken is the token that a browser is signed in with.
func (o connection) browserToken(cfg *Config, spec auth.TokenSpec) (string, error) {
	if o.namesToken() {
		return o.token(cfg)
	}
	if !auth.HasDevKey(cfg.DataDir) {
		return "", fault.New(fault.Unauthenticated, "there is no token to sign in with").
			WithHint("Name one with --token-file or CELLBLOCK_TOKEN, or start cellblock serve in dev mode with the same --data-dir.")
	}
	dev, err := auth.EnsureDev(cfg.DataDir)
	if err != nil {
		return "", err
	}
	return dev.Mint(spec)
}
