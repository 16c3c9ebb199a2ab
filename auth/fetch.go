package auth

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/loopback"
)

const (
	// fetchTimeout is how long all that is fetched for one look at an issuer's keys may take.
	fetchTimeout = 10 * time.Second
	// maxDocument bounds what an issuer may answer with, in bytes; key sets are a few thousand.
	maxDocument = 1 << 20
	// maxRedirects is how often an issuer may point elsewhere.
	maxRedirects = 3
)

// fetcher gets documents from an issuer, over connections that nobody on the way can read or change.
type fetcher struct{ client http.Client }

// newFetcher returns a fetcher; a nil transport is one like http.DefaultTransport. It keeps no connection: it is used once in
// minutes.
func newFetcher(transport http.RoundTripper) *fetcher {
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.DisableKeepAlives = true
		transport = own
	}
	return &fetcher{http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fault.New(fault.Unavailable, "more than %d redirects", maxRedirects)
		}
		return checkNext(via[0].URL, r.URL)
	}}}
}

// get reads a JSON document into value. Its error is Unavailable, with the status where there was one, or Invalid for an
// address that must not be asked.
func (f *fetcher) get(ctx context.Context, address string, value any) (status int, err error) {
	u, err := parseURL(address)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, fault.New(fault.Invalid, "cannot ask %s: %w", u.Redacted(), err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return 0, fault.New(fault.Unavailable, "the issuer cannot be reached: %w", err).
			WithHint("Check the address, and that this server may connect to it.")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, fault.New(fault.Unavailable, "%s answers with status %d", u.Redacted(), response.StatusCode).
			WithHint("Check the address.")
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return 0, fault.New(fault.Unavailable, "the answer of %s broke off: %w", u.Redacted(), err)
	case len(body) > maxDocument:
		return 0, fault.New(fault.Unavailable, "the answer of %s has more than %d bytes", u.Redacted(), maxDocument).WithHint("Check the address.")
	}
	if err := json.Unmarshal(body, value); err != nil {
		return 0, fault.New(fault.Unavailable, "the answer of %s is not the JSON that was asked for: %w", u.Redacted(), err).WithHint("Check the address.")
	}
	return response.StatusCode, nil
}

func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fault.New(fault.Invalid, "an address cannot be read: %w", err).WithHint("Write it as https://issuer.example.com.")
	}
	return u, checkURL(u)
}

// checkURL refuses an address over which somebody else could hand us keys: what is not encrypted, but on this machine.
func checkURL(u *url.URL) error {
	switch {
	case u.Hostname() == "" || u.User != nil || u.Fragment != "":
		return fault.New(fault.Invalid, "%.200q is no address of an issuer", u.Redacted()).WithHint("Write it as https://issuer.example.com.")
	case u.Scheme == "https", u.Scheme == "http" && loopback.Is(u.Hostname()):
		return nil
	}
	return fault.New(fault.Invalid, "%.200q is not https", u.Redacted()).
		WithHint("Keys are fetched over https only; http is for loopback addresses.")
}

// checkNext refuses an address that an issuer points to. One that is asked over https must not lead to this machine: any
// program here could be what answers.
func checkNext(from, to *url.URL) error {
	if err := checkURL(to); err != nil || from.Scheme == to.Scheme || to.Scheme == "https" {
		return err
	}
	return fault.New(fault.Invalid, "%s leads away from https, to %.200q", from.Redacted(), to.Redacted()).
		WithHint("Name the address of its keys in %s.", EnvJWKSURI)
}
