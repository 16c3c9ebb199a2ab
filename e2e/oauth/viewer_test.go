package oauth

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"cellblock/e2e/rig"
)

// A person signs in to the viewer at the identity provider, and is there whom the provider says; an answer of the provider's that
// was meant for another browser signs nobody in.
func TestPeopleSignIn(t *testing.T) {
	needLocal(t)
	p := startProvider(t, map[string][]string{"viewer": {"sessions:read"}})
	i := rig.Install(t, "--provisioner", "local", "--pool-size", "0")
	i.Env = []string{"MCP_ISSUER=" + p.issuer, "CELLBLOCK_VIEWER_CLIENT_ID=viewer"}
	s := i.Serve(t)
	base := strings.TrimSuffix(s.URL, "/mcp")
	p.mu.Lock()
	p.redirects = []string{base + "/signin/callback"}
	p.mu.Unlock()

	person := newPerson(t)
	if body := person.get(base + "/"); !strings.Contains(body, "/signin/start") {
		t.Fatalf("there is no way to sign in:\n%s", body)
	}
	back := person.atProvider(base)
	if body := newPerson(t).get(back); strings.Contains(body, "Sign out") || !strings.Contains(body, "not begun in this browser") {
		t.Errorf("another browser is let in:\n%s", body)
	}
	person.get(back)
	body := person.get(base + "/")
	if !strings.Contains(body, "Sign out") || !strings.Contains(body, `title="`+p.issuer+`"`) {
		t.Errorf("nobody is signed in:\n%s", body)
	}
	if strings.Contains(body, "New session") || strings.Contains(body, `href="/server"`) {
		t.Errorf("more is offered than the scopes allow:\n%s", body)
	}
	if again := person.get(back); strings.Contains(again, `http-equiv="refresh"`) {
		t.Errorf("a code signs in twice:\n%s", again)
	}
}

// person is a browser without scripts.
type person struct {
	t      *testing.T
	client *http.Client
}

func newPerson(t *testing.T) *person {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &person{t, &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
}

func (p *person) get(address string) string {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	return p.read(p.client.Do(r))
}

func (p *person) read(response *http.Response, err error) string {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(body)
}

var requestID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// atProvider begins to sign in, does so at the provider, and returns the address that the provider sends the browser back to.
func (p *person) atProvider(base string) (back string) {
	p.t.Helper()
	response, err := p.client.Get(base + "/signin/start")
	form := p.read(response, err)
	id := requestID.FindStringSubmatch(form)
	if id == nil {
		p.t.Fatalf("the provider shows no form:\n%s", form)
	}
	p.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), base) {
			back = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	at := *response.Request.URL
	p.read(p.client.PostForm(at.String(), url.Values{"id": {id[1]}, "username": {username}, "password": {password}}))
	p.client.CheckRedirect = nil
	if back == "" {
		p.t.Fatal("the provider did not send the browser back")
	}
	return back
}
