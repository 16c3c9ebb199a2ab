package oauth

import (
	"html"
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
	back := person.atProvider(base, "/signin/start")
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
	checkWayBack(t, base)
}

// checkWayBack signs people in who asked for a page: each comes to that page, and to no other that this browser has heard of.
func checkWayBack(t *testing.T, base string) {
	t.Helper()
	link, next := regexp.MustCompile(`href="(/signin/start[^"]*)"`), regexp.MustCompile(`content="0;url=([^"]*)"`)
	start := func(p *person, path string) string {
		t.Helper()
		found := link.FindStringSubmatch(p.get(base + path))
		if found == nil {
			t.Fatalf("%s shows no way to sign in", path)
		}
		return html.UnescapeString(found[1])
	}
	leads := func(p *person, start, want string) {
		t.Helper()
		page := p.get(p.atProvider(base, start))
		if to := next.FindStringSubmatch(page); to == nil || to[1] != want {
			t.Errorf("%s leads to %q, not to %s\n%s", start, to, want, page)
		}
	}
	person := newPerson(t)
	wanted := start(person, "/s/wanted")
	start(person, "/server") // another tab wants that
	leads(person, wanted, "/s/wanted")
	if body := person.get(base + "/s/wanted"); !strings.Contains(body, "Sign out") || !strings.Contains(body, "wanted") {
		t.Errorf("there is\n%s", body)
	}
	for _, foreign := range []string{"https://evil", `/\evil`} {
		leads(newPerson(t), "/signin/start?to="+url.QueryEscape(foreign), "/")
	}
	late := newPerson(t)
	wanted = start(late, "/s/wanted")
	back := late.atProvider(base, wanted)
	late.forget(base, "-to") // as browsers do after its time
	if page := late.get(back); !strings.Contains(page, `content="0;url=/"`) {
		t.Errorf("who came too late is led to\n%s", page)
	}

	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(person.get(base + "/"))
	person.read(person.client.PostForm(base+"/signout", url.Values{"csrf": {csrf[1]}}))
	leads(person, start(person, "/signin?to=/s/wanted"), "/") // where a tab of the first goes, which the next finds
}

// forget has the browser forget the cookies whose name ends so.
func (p *person) forget(base, suffix string) {
	p.t.Helper()
	at, err := url.Parse(base)
	if err != nil {
		p.t.Fatal(err)
	}
	gone := 0
	for _, c := range p.client.Jar.Cookies(at) {
		if strings.HasSuffix(c.Name, suffix) {
			p.client.Jar.SetCookies(at, []*http.Cookie{{Name: c.Name, Path: "/", MaxAge: -1}})
			gone++
		}
	}
	if gone == 0 {
		p.t.Fatalf("there is no cookie %s", suffix)
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
func (p *person) atProvider(base, start string) (back string) {
	p.t.Helper()
	response, err := p.client.Get(base + start)
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
