package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"cellblock/internal/fault"
)

const (
	// refreshEvery is how old keys get before they are fetched again: how long a key may still be used after its issuer has
	// withdrawn it.
	refreshEvery = 5 * time.Minute
	// retryFirst and retryMost are how soon a fetch that failed is tried again, at first and in the end.
	retryFirst, retryMost = time.Second, 30 * time.Second
	// refreshPause is how long after a fetch a token with an unknown key does not bring about another.
	refreshPause = 10 * time.Second
)

// IssuerConfig is what an Issuer holds tokens against, and where its keys are.
type IssuerConfig struct {
	// Rules are those for tokens; Issuer is required.
	Rules
	// JWKSURI is where the keys are. Empty: where the issuer's metadata say.
	JWKSURI string
	// Transport carries requests to the issuer. Nil: one like http.DefaultTransport.
	Transport http.RoundTripper
	// Logger gets what becomes of the keys. Nil: slog.Default.
	Logger *slog.Logger
}

// Issuer verifies tokens with the keys that an authorization server publishes. It fetches them ahead of their use, again
// every few minutes, and at once for a token whose key is new, so that keys can be exchanged while it runs. While they
// cannot be fetched, the last ones serve; a key that has gone from the set does not.
type Issuer struct {
	cfg   IssuerConfig
	check *checker
	fetch *fetcher
	asked chan chan struct{} // each is closed when the keys are as new as they may be
	end   context.CancelFunc
	ended chan struct{}

	mu       sync.Mutex
	keys     *keySet // nil until the issuer was reached, and while it publishes no key that can be used
	failures int     // since the last fetch that went well
	problem  error   // of the last fetch
	fetched  time.Time
}

// OpenIssuer fetches an issuer's keys and returns what verifies its tokens. An issuer that cannot be reached is no error:
// Health tells, and fetching goes on. The error is Invalid: a configuration that could never verify anything, or that would
// verify too much; or Cancelled.
func OpenIssuer(ctx context.Context, cfg IssuerConfig) (*Issuer, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.checkAddresses(); err != nil {
		return nil, err
	}
	check, err := newChecker(cfg.Rules)
	if err != nil {
		return nil, err
	}
	i := &Issuer{
		cfg: cfg, check: check, fetch: newFetcher(cfg.Transport),
		asked: make(chan chan struct{}), ended: make(chan struct{}),
	}
	if i.refresh(ctx); ctx.Err() != nil {
		return nil, fault.New(fault.Cancelled, "stopped while the issuer's keys were fetched")
	}
	life, end := context.WithCancel(context.Background())
	i.end = end
	go i.keep(life)
	return i, nil
}

func (c IssuerConfig) checkAddresses() error {
	if c.Issuer == "" {
		return fault.New(fault.Invalid, "no issuer to accept tokens from").
			WithHint("Set %s to what tokens carry in iss: who fetches keys must know whose.", EnvIssuer)
	}
	if c.JWKSURI != "" {
		_, err := parseURL(c.JWKSURI)
		return err
	}
	_, err := metadataAddresses(c.Issuer)
	return err
}

// Close ends what fetches keys, and waits for it.
func (i *Issuer) Close() {
	i.end()
	<-i.ended
}

// Verify is a Verifier. A token with a key that is not known waits for one fetch, unless there has just been one. While the keys
// cannot be fetched it may well be good: whoever has it tries again, and is not sent for another.
func (i *Issuer) Verify(ctx context.Context, token string) (Principal, error) {
	keys, err := i.current()
	if err != nil {
		return Principal{}, err
	}
	p, err := i.check.verify(token, &keys.keyring)
	if !errors.Is(err, errUnknownKey) || !i.askForNew(ctx) {
		return p, err
	}
	if keys, err = i.current(); err != nil {
		return Principal{}, err
	}
	p, err = i.check.verify(token, &keys.keyring)
	if _, problem := i.Health(); errors.Is(err, errUnknownKey) && problem != nil {
		return Principal{}, fault.New(fault.Unavailable, "the token cannot be verified now: its key is new here, and the issuer's keys could not be fetched").
			WithHint("%s", tryAgain)
	}
	return p, err
}

// tryAgain is what whoever calls can do about keys that could not be fetched.
const tryAgain = "Try again in a few seconds; the server's log says more to its operator."

// current returns the keys, or the error for everybody while there are none. Its text holds nothing of the network that the
// server is in; the log has that.
func (i *Issuer) current() (*keySet, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys == nil {
		return nil, fault.New(fault.Unavailable, "tokens cannot be verified now: the issuer's keys could not be fetched").
			WithHint("%s", tryAgain)
	}
	return i.keys, nil
}

// Health tells whether tokens can be verified, and what is wrong if the keys are not new: nothing else, where they serve.
func (i *Issuer) Health() (serving bool, problem error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.problem == nil:
		return true, nil
	case i.keys == nil:
		return false, fault.New(fault.Unavailable, "no token can be verified: %w", i.problem).WithHint("%s", fault.Hint(i.problem))
	}
	return true, fault.New(fault.Unavailable, "the issuer's keys of %s serve on: %w", i.fetched.UTC().Format(time.RFC3339), i.problem).
		WithHint("%s", fault.Hint(i.problem))
}

// askForNew has the keys fetched, unless they just have been, and tells whether they are as new as they may be.
func (i *Issuer) askForNew(ctx context.Context) bool {
	done := make(chan struct{})
	select {
	case i.asked <- done:
	case <-ctx.Done():
		return false
	case <-i.ended:
		return false
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// keep fetches the keys again and again, and when it is asked to. Whoever asks soon after a fetch has what there is.
func (i *Issuer) keep(life context.Context) {
	defer close(i.ended)
	last := time.Now()
	for {
		var asked chan struct{}
		due := time.NewTimer(time.Until(last.Add(i.wait())))
		select {
		case <-life.Done():
			due.Stop()
			return
		case <-due.C:
		case asked = <-i.asked:
			due.Stop()
		}
		if asked == nil || time.Since(last) >= refreshPause {
			i.refresh(life)
			last = time.Now()
		}
		if asked != nil {
			close(asked)
		}
	}
}

// wait is how long after a fetch the next one is due.
func (i *Issuer) wait() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failures == 0 {
		return refreshEvery
	}
	return min(retryFirst<<min(i.failures-1, 10), retryMost)
}

// refresh fetches the keys once.
func (i *Issuer) refresh(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	keys, err := i.fetchKeys(bounded)
	if ctx.Err() != nil {
		return // the server ends
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.take(keys, err)
}

// take makes what was fetched the keys that count. Keys that are still the same keep what is remembered of their tokens; an
// issuer that has withdrawn all of them has withdrawn them.
func (i *Issuer) take(keys *keySet, err error) {
	if err == nil && len(keys.prints) == 0 {
		i.keys, err = nil, fault.New(fault.Unavailable, "the issuer publishes no key for %s", strings.Join(i.check.Algorithms, " or ")).
			WithHint("Set %s to what it signs with. Its keys: %s.", EnvAlgorithm, cmp.Or(strings.Join(keys.unused, "; "), "none"))
	}
	if err != nil {
		i.failures++
		if i.problem == nil || i.problem.Error() != err.Error() {
			i.cfg.Logger.Error("the issuer's keys could not be fetched", "issuer", i.cfg.Issuer, "error", err, "hint", fault.Hint(err),
				"older_keys_serve", i.keys != nil)
		}
		i.problem = err
		return
	}
	changed := i.keys == nil || !slices.Equal(i.keys.prints, keys.prints)
	if changed || i.failures > 0 {
		i.cfg.Logger.Info("the issuer's keys are fetched", "issuer", i.cfg.Issuer, "keys", len(keys.prints), "unused", keys.unused)
	}
	if i.failures, i.problem, i.fetched = 0, nil, time.Now(); changed {
		i.keys = keys
	}
}

func (i *Issuer) fetchKeys(ctx context.Context) (*keySet, error) {
	address := i.cfg.JWKSURI
	if address == "" {
		var err error
		if address, err = i.fetch.discover(ctx, i.cfg.Issuer); err != nil {
			return nil, err
		}
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if _, err := i.fetch.get(ctx, address, &set); err != nil {
		return nil, err
	}
	if set.Keys == nil {
		return nil, fault.New(fault.Unavailable, "%s is no key set", address).WithHint("Check %s.", EnvJWKSURI)
	}
	return parseKeys(set.Keys, i.check.Algorithms)
}
