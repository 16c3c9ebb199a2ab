package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// asking returns a world with tools that ask, and a channel with what Request gave them.
func asking(t *testing.T, change ...func(*HTTPConfig)) (*world, <-chan error) {
	w := newWorld(t, change...)
	ended := make(chan error, 64)
	w.mcp.AddTool(mcp.NewTool("ask", mcp.WithDescription("asks and says the answer")),
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			raw, err := Request(ctx, "test/ask", map[string]any{"about": "colours"})
			ended <- err
			return mcp.NewToolResultText(fmt.Sprintf("%s %v", raw, err)), nil
		})
	w.mcp.AddTool(mcp.NewTool("form", mcp.WithDescription("asks the user by a form")), form)
	return w, ended
}

// form is a tool as mcp-go has them: it asks by its result, and is called again with the answer.
func form(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer := server.ElicitationResponse(r.Params.InputResponses, "name"); answer != nil {
		return mcp.NewToolResultText(fmt.Sprintf("%s %v, state %s", answer.Action, answer.Content, r.Params.RequestState)), nil
	}
	if !Elicits(ctx) {
		return mcp.NewToolResultText("cannot ask"), nil
	}
	return server.NewInputRequestBuilder("s1").Elicit("name", mcp.ElicitationParams{
		Message: "Your name?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
	}).ToolResult(), nil
}

// able shakes hands as a client that can do something.
func (w *world) able(owner string, capabilities map[string]any) *user {
	w.t.Helper()
	u := w.user(owner, handshake)
	got := u.post(u.message(1, "initialize", map[string]any{"protocolVersion": handshake, "capabilities": capabilities,
		"clientInfo": map[string]any{"name": "able", "version": "1"}}))
	u.session = got.header.Get("Mcp-Session-Id")
	return u
}

// talk is a call whose stream is read message by message.
type talk struct {
	t      *testing.T
	lines  *bufio.Scanner
	hangUp func()
}

func (u *user) talk(body string) *talk {
	u.w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := u.client.Do(u.request(ctx, body))
	if err != nil {
		u.w.t.Fatal(err)
	}
	hangUp := func() { cancel(); resp.Body.Close() }
	u.w.t.Cleanup(hangUp)
	return &talk{t: u.w.t, lines: bufio.NewScanner(resp.Body), hangUp: hangUp}
}

type anyMessage struct {
	ID     json.RawMessage
	Method string
	Params map[string]any
	Result map[string]any
}

func (s *talk) next() (m anyMessage) {
	s.t.Helper()
	for s.lines.Scan() {
		line := strings.TrimPrefix(s.lines.Text(), "data: ")
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				s.t.Fatal(err)
			}
			return m
		}
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return m
}

func (m anyMessage) says() string { return fmt.Sprint(m.Result["content"]) }

func response(id json.RawMessage, rest string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, rest)
}

// An answer is taken from the session that was asked, and from nobody else.
func TestQuestionsAreAnsweredByTheirOwnClientOnly(t *testing.T) {
	w, ended := asking(t)
	asked, sibling, stranger := w.user("alice", handshake), w.user("alice", handshake), w.user("mallory", handshake)
	s := asked.talk(asked.toolCall(7, "ask", nil))
	q := s.next()
	if q.Method != "test/ask" || q.Params["about"] != "colours" || len(q.ID) == 0 {
		t.Fatalf("the question: %+v", q)
	}
	forged := response(q.ID, `"result":{"forged":true}`)
	for name, u := range map[string]*user{"another session": sibling, "another owner": stranger} {
		if got := u.post(forged); got.status != 202 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	stranger.session = asked.session
	if got := stranger.post(forged); got.status != 404 {
		t.Errorf("another owner with the asked one's session: %d", got.status)
	}
	sibling.session, sibling.version = "", ""
	sibling.post(forged)
	asked.post(response([]byte(`7`), `"result":{"forged":true}`)) // the call's own id is no question's
	if len(ended) > 0 {
		t.Fatal("a forged answer was taken")
	}
	asked.post(response(q.ID, `"result":{"colour":"blue"}`))
	asked.post(forged) // too late
	if m := s.next(); m.Method != "" || !strings.Contains(m.says(), `{"colour":"blue"} <nil>`) {
		t.Errorf("the result: %+v", m)
	}
}

// What ends a question other than an answer.
func TestQuestionsEnd(t *testing.T) {
	t.Run("by the client's error", func(t *testing.T) {
		w, ended := asking(t)
		u := w.user("alice", handshake)
		s := u.talk(u.toolCall(1, "ask", nil))
		u.post(response(s.next().ID, `"error":{"code":-1,"message":"User rejected"}`))
		var refused *ClientError
		if err := await(t, ended); !errors.As(err, &refused) || refused.Code != -1 || refused.Message != "User rejected" {
			t.Errorf("%v", err)
		}
	})
	t.Run("by a cancel, which withdraws it", func(t *testing.T) {
		w, ended := asking(t)
		u := w.user("alice", handshake)
		s := u.talk(u.toolCall(1, "ask", nil))
		q := s.next()
		u.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if err := await(t, ended); !errors.Is(err, ErrCancelled) {
			t.Errorf("%v", err)
		}
		var id string
		_ = json.Unmarshal(q.ID, &id)
		if m := s.next(); m.Method != "notifications/cancelled" || m.Params["requestId"] != id {
			t.Errorf("not withdrawn: %+v", m)
		}
	})
	t.Run("by the connection's loss, and the call goes on", func(t *testing.T) {
		w, ended := asking(t)
		u := w.user("alice", handshake)
		s := u.talk(u.toolCall(1, "ask", nil))
		s.next()
		s.hangUp()
		if err := await(t, ended); !errors.Is(err, ErrNoStream) {
			t.Errorf("%v", err)
		}
	})
	t.Run("by time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var q questions
			sent := &recorder{}
			out := &outlet{to: sent, line: &line{questions: &q}}
			if _, err := out.ask(t.Context(), "test/ask", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if len(q.waiting) != 0 || len(sent.payloads) != 2 || !strings.Contains(sent.payloads[1], "notifications/cancelled") {
				t.Errorf("%d wait, sent %q", len(q.waiting), sent.payloads)
			}
		})
	})
}

// recorder is a sink that keeps what was sent.
type recorder struct {
	mu       sync.Mutex
	payloads []string
}

func (r *recorder) send(payload []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.payloads = append(r.payloads, string(payload))
	return nil
}

// Who cannot answer is not asked.
func TestQuestionsNeedAWayBack(t *testing.T) {
	w, ended := asking(t)
	now, nameless, jsonOnly := w.user("alice", stateless), w.user("bob", handshake), w.user("carol", handshake)
	nameless.session = ""
	tests := map[string]struct {
		u      *user
		change func(*http.Request)
		want   error
	}{
		"2026-07-28":            {now, func(*http.Request) {}, ErrCannotAsk},
		"no session":            {nameless, func(*http.Request) {}, ErrCannotAsk},
		"takes no event stream": {jsonOnly, func(r *http.Request) { r.Header.Set("Accept", "application/json") }, ErrNoStream},
	}
	for name, tt := range tests {
		if got := tt.u.post(tt.u.toolCall(1, "ask", nil), tt.change); len(got.messages) != 1 {
			t.Errorf("%s: %s", name, got.body)
		}
		if err := await(t, ended); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if _, err := Request(t.Context(), "test/ask", nil); !errors.Is(err, ErrCannotAsk) {
		t.Errorf("outside of a call: %v", err)
	}
}

// One tool asks in both eras: by elicitation/create in one, by its result in the other; never of who cannot.
func TestElicitation(t *testing.T) {
	w, _ := asking(t)
	for name, capabilities := range map[string]map[string]any{
		"form": {"elicitation": map[string]any{"form": map[string]any{}}}, "either": {"elicitation": map[string]any{}},
	} {
		u := w.able("alice", capabilities)
		s := u.talk(u.toolCall(1, "form", nil))
		q := s.next()
		if q.Method != "elicitation/create" || q.Params["message"] != "Your name?" || q.Params["requestedSchema"] == nil {
			t.Fatalf("%s: %+v", name, q)
		}
		u.post(response(q.ID, `"result":{"action":"accept","content":{"name":"Ada"}}`))
		if m := s.next(); !strings.Contains(m.says(), "accept map[name:Ada], state s1") {
			t.Errorf("%s: %+v", name, m)
		}
		s = u.talk(u.toolCall(2, "form", nil))
		u.post(response(s.next().ID, `"result":{"action":"shrug"}`))
		if got := s.next(); got.Result != nil {
			t.Errorf("%s: an unknown action is taken: %+v", name, got)
		}
	}
	for name, capabilities := range map[string]map[string]any{
		"nothing": {}, "addresses only": {"elicitation": map[string]any{"url": map[string]any{}}},
	} {
		u := w.able("alice", capabilities)
		if got := u.post(u.toolCall(1, "form", nil)); got.last().text() != "cannot ask" {
			t.Errorf("%s: %s", name, got.body)
		}
	}
}

// In 2026-07-28 each call says what its client can, and the answer comes with a second call.
func TestElicitationByResult(t *testing.T) {
	w, _ := asking(t)
	u := w.user("alice", stateless)
	call := func(capabilities string, more string) answer {
		body := u.toolCall(1, "form", nil)
		body = strings.Replace(body, `"`+mcp.MetaKeyClientCapabilities+`":{}`, `"`+mcp.MetaKeyClientCapabilities+`":`+capabilities, 1)
		return u.post(strings.Replace(body, `"name":"form"`, `"name":"form"`+more, 1))
	}
	if got := call(`{}`, ""); got.last().text() != "cannot ask" {
		t.Errorf("a client that cannot: %s", got.body)
	}
	got := call(`{"elicitation":{}}`, "")
	if got.last().Result.ResultType != "input_required" || !strings.Contains(got.body, `"requestState":"s1"`) || !strings.Contains(got.body, `"method":"elicitation/create"`) {
		t.Fatalf("%s", got.body)
	}
	got = call(`{"elicitation":{}}`, `,"requestState":"s1","inputResponses":{"name":{"action":"accept","content":{"name":"Ada"}}}`)
	if !strings.Contains(got.last().text(), "accept map[name:Ada], state s1") {
		t.Errorf("%s", got.body)
	}
}

func TestStdioQuestions(t *testing.T) {
	w, ended := asking(t)
	c := newPipeClient(t, w)
	old, now := &user{w: w, version: handshake}, &user{w: w, version: stateless}
	c.send(old.message(0, "initialize", map[string]any{"protocolVersion": handshake, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "c", "version": "1"}}))
	c.receive()
	c.send(old.toolCall(1, "ask", nil))
	q := c.receive()
	c.send(response([]byte(`"unasked"`), `"result":{}`), response(q.ID, `"result":{"colour":"red"}`))
	if got := c.receive(); !strings.Contains(got.text(), `{"colour":"red"}`) {
		t.Errorf("%+v", got)
	}
	if err := await(t, ended); err != nil {
		t.Error(err)
	}
	c.send(now.toolCall(2, "ask", nil))
	c.receive()
	if err := await(t, ended); !errors.Is(err, ErrCannotAsk) {
		t.Errorf("2026-07-28: %v", err)
	}
}

// Many questions at once, each with its own answer.
func TestQuestionsDoNotMix(t *testing.T) {
	w, _ := asking(t)
	var all sync.WaitGroup
	for i := range 8 {
		u := w.user(fmt.Sprintf("owner %d", i%2), handshake)
		for j := range 4 {
			s := u.talk(u.toolCall(j, "ask", nil))
			all.Go(func() {
				q := s.next()
				u.post(response(q.ID, fmt.Sprintf(`"result":{"of":"%d.%d"}`, i, j)))
				if m := s.next(); !strings.Contains(m.says(), fmt.Sprintf(`{"of":"%d.%d"}`, i, j)) {
					t.Errorf("%d.%d: %+v", i, j, m)
				}
			})
		}
	}
	all.Wait()
}
