// Package oauth drives the real program as a company does that puts it behind its identity provider: keys that are fetched,
// clients that find out where to get a token, and tokens that somebody has forged.
package oauth

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"cellblock/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// The one user that signs in.
const (
	username = "test-user2"
	password = "verysecure"
)

// provider is an OpenID provider that somebody else has written, with what a company configures: clients, what each may ask
// for, tokens that are JWTs, their audience by the resource that was asked for (RFC 8707), and keys that are exchanged.
type provider struct {
	*storage.Storage
	issuer string
	// mayAsk are the scopes of each client.
	mayAsk map[string][]string

	mu        sync.Mutex
	resources map[string]string // by authorization request
	redirects []string          // of every client, beside its own
	keys      []*signingKey     // the last one signs
}

func startProvider(t *testing.T, mayAsk map[string][]string) *provider {
	t.Helper()
	p := &provider{mayAsk: mayAsk, resources: map[string]string{}}
	p.exchangeKeys(t, "first")
	server := httptest.NewUnstartedServer(nil)
	p.issuer = "http://" + server.Listener.Addr().String()
	clients := map[string]*storage.Client{}
	for id := range mayAsk {
		clients[id] = storage.NativeClient(id)
	}
	p.Storage = storage.NewStorageWithClients(storage.NewUserStore(p.issuer), clients)
	router := exampleop.SetupServer(p.issuer, p, slog.New(slog.DiscardHandler), false)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		router.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), resourceKey{}, r.URL.Query().Get("resource"))))
	})
	server.Start()
	t.Cleanup(server.Close)
	return p
}

type resourceKey struct{}

// exchangeKeys adds keys, of which the last one signs, and withdraws all others.
func (p *provider) exchangeKeys(t *testing.T, ids ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.keys
	p.keys = nil
	for _, id := range ids {
		key := &signingKey{id: id}
		for _, k := range known {
			if k.id == id {
				key = k
			}
		}
		if key.key == nil {
			var err error
			if key.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
				t.Fatal(err)
			}
		}
		p.keys = append(p.keys, key)
	}
}

// signingKey is one of the provider's keys, and publicKey what it publishes of it.
type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

func (k *signingKey) ID() string                                  { return k.id }
func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *signingKey) Key() any                                    { return k.key }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.key.PublicKey }

// SigningKey is the key that signs tokens.
func (p *provider) SigningKey(context.Context) (op.SigningKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1], nil
}

// KeySet is what the provider publishes.
func (p *provider) KeySet(context.Context) (keys []op.Key, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.keys {
		keys = append(keys, publicKey{k})
	}
	return keys, nil
}

// GetClientByClientID makes clients' tokens JWTs, and bounds what they may ask for.
func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := p.Storage.GetClientByClientID(ctx, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return client{c, p.mayAsk[id], p.redirects}, err
}

type client struct {
	op.Client
	mayAsk, redirects []string
}

// RedirectURIs are where browsers may be sent back to.
func (c client) RedirectURIs() []string { return append(c.Client.RedirectURIs(), c.redirects...) }

func (c client) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

func (c client) IsScopeAllowed(scope string) bool {
	for _, s := range c.mayAsk {
		if s == scope {
			return true
		}
	}
	return false
}

// CreateAuthRequest notes the resource that a token is asked for.
func (p *provider) CreateAuthRequest(ctx context.Context, r *oidc.AuthRequest, user string) (op.AuthRequest, error) {
	made, err := p.Storage.CreateAuthRequest(ctx, r, user)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resources[made.GetID()], _ = ctx.Value(resourceKey{}).(string)
	return p.forResource(made), nil
}

// AuthRequestByID returns a request with the resource that was asked for.
func (p *provider) AuthRequestByID(ctx context.Context, id string) (op.AuthRequest, error) {
	return p.found(p.Storage.AuthRequestByID(ctx, id))
}

// AuthRequestByCode does so too.
func (p *provider) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	return p.found(p.Storage.AuthRequestByCode(ctx, code))
}

func (p *provider) found(r op.AuthRequest, err error) (op.AuthRequest, error) {
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forResource(r), nil
}

func (p *provider) forResource(r op.AuthRequest) op.AuthRequest {
	return request{r, p.resources[r.GetID()]}
}

type request struct {
	op.AuthRequest
	resource string
}

// GetAudience is the resource, beside the client for its ID token.
func (r request) GetAudience() []string {
	return append(r.AuthRequest.GetAudience(), r.resource)
}

// GetPrivateClaimsFromScopes puts the scopes into the token.
func (p *provider) GetPrivateClaimsFromScopes(_ context.Context, _, _ string, scopes []string) (map[string]any, error) {
	return map[string]any{"scope": strings.Join(scopes, " ")}, nil
}
