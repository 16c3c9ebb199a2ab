package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// visitor is a person who is signed in to a server's viewer, without a browser.
type visitor struct {
	client http.Client
	base   string // of addresses
}

// signIn signs a visitor in to the server whose data folder that is.
func signIn(ctx context.Context, o options, s *server, folder string) (*visitor, error) {
	link, err := signInLink(ctx, o, s, folder)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &visitor{client: http.Client{Jar: jar}, base: s.base()}
	return v, v.get(ctx, strings.TrimPrefix(link, v.base))
}

// get reads all of a page, which must be there.
func (v *visitor) get(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/html")
	response, err := v.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// signInLink returns a link that signs in once to the server whose data folder that is.
func signInLink(ctx context.Context, o options, s *server, folder string) (string, error) {
	open := exec.CommandContext(ctx, filepath.Join(o.bin, "cellblock"), "open", "--data-dir", folder, "--url", s.url)
	open.Env = environment()
	open.Stderr = os.Stderr
	link, err := open.Output()
	if err != nil {
		return "", fmt.Errorf("cellblock open: %w", err)
	}
	return strings.TrimSpace(string(link)), nil
}

// base is where the server's addresses begin.
func (s *server) base() string { return strings.TrimSuffix(s.url, "/mcp") }
