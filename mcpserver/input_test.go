package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/sessions"
)

// person is a client whose user can be asked.
type person struct {
	*httpClient
	asked []string
	// answer is what the user does about a form with a message: an ElicitResult, an error of JSON-RPC, or nil for nothing.
	answer func(message string) map[string]any
}

func accept(line any) map[string]any {
	return map[string]any{"action": "accept", "content": map[string]any{answerField: line}}
}

// says is an answer that is always the same.
func says(result map[string]any) func(string) map[string]any {
	return func(string) map[string]any { return result }
}

func newPerson(t *testing.T, url, version string, answer func(string) map[string]any) *person {
	t.Helper()
	return &person{httpClient: dialAs(t, url, version, map[string]any{"elicitation": map[string]any{}}), answer: answer}
}

// reply is what came back for one request: its result, or a result that asks.
type reply struct {
	Result struct {
		ResultType    mcp.ResultType
		RequestState  string
		InputRequests map[string]struct{ Params mcp.ElicitationParams }
		Content       []struct{ Text string }
		IsError       bool
	}
	Error *struct{ Message string }
}

func (r reply) text() string {
	if r.Error != nil {
		return "protocol error: " + r.Error.Message
	}
	var b strings.Builder
	for _, block := range r.Result.Content {
		b.WriteString(block.Text + "\n")
	}
	return b.String()
}

// state is the requestState of a reply that must ask.
func (p *person) state(r reply) string {
	p.t.Helper()
	if r.Result.ResultType != mcp.ResultTypeInputRequired || r.Result.RequestState == "" {
		p.t.Fatalf("it does not ask: %s", r.text())
	}
	return r.Result.RequestState
}

// send sends one request and reads its stream to the end; what the server asks on it is answered.
func (p *person) send(ctx context.Context, tool string, args map[string]any, more map[string]any) (last reply) {
	p.t.Helper()
	params := map[string]any{"name": tool, "arguments": args}
	for name, value := range more {
		params[name] = value
	}
	resp := p.do(ctx, 5, "tools/call", params)
	if resp == nil {
		return last
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := strings.TrimPrefix(lines.Text(), "data: ")
		var question struct {
			ID     any
			Method string
			Params mcp.ElicitationParams
		}
		if !strings.HasPrefix(line, "{") {
			continue
		}
		if err := json.Unmarshal([]byte(line), &question); err != nil {
			p.t.Fatal(err)
		}
		switch question.Method {
		case "elicitation/create":
			if answer := p.ask(question.Params); answer != nil {
				kind := "result"
				if answer["code"] != nil {
					kind = "error"
				}
				_ = p.post(p.t.Context(), map[string]any{"jsonrpc": "2.0", "id": question.ID, kind: answer}).Body.Close()
			}
		case "":
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	return last
}

func (p *person) ask(form mcp.ElicitationParams) map[string]any {
	p.asked = append(p.asked, form.Message)
	return p.answer(form.Message)
}

// run is execute_python as the clients of both eras do it: one that gets a result that asks calls again with the answer.
func (p *person) run(args map[string]any) reply {
	p.t.Helper()
	r := p.send(p.t.Context(), "execute_python", args, nil)
	for r.Result.ResultType == mcp.ResultTypeInputRequired {
		answers := map[string]any{}
		for id, request := range r.Result.InputRequests {
			answers[id] = p.ask(request.Params)
		}
		r = p.send(p.t.Context(), "execute_python", args, map[string]any{"inputResponses": answers, "requestState": r.Result.RequestState})
	}
	return r
}

func cellOf(session, code string) map[string]any {
	return map[string]any{"session_id": session, "code": code}
}

var eras = []string{mcp.ProtocolVersion20250618, mcp.ProtocolVersion20251125, mcp.ProtocolVersion20260728}

func eachEra(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	for _, version := range eras {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

func expectText(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("it does not say %q:\n%s", word, text)
		}
	}
}

func TestInputAsksTheUser(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		p := newPerson(t, serveHTTP(t, newWorld(t)), version, nil)
		p.answer = func(message string) map[string]any { return accept(fmt.Sprint(len(p.asked))) }
		got := p.run(cellOf("s", "print before\ninput name?\nprint between\ninput\nprint after"))
		if want := "before\n1\nbetween\n2\nafter\n[session s · cell 1 · ok"; !strings.HasPrefix(got.text(), want) || got.Result.IsError {
			t.Errorf("the result: %s", got.text())
		}
		if want := []string{"Code in session s asks for input: name?", "Code in session s asks for input: (it does not say what for)"}; strings.Join(p.asked, "|") != strings.Join(want, "|") {
			t.Errorf("the user was asked %q", p.asked)
		}
		if minted := p.run(map[string]any{"code": "input name?"}); !strings.Contains(minted.text(), "3\n[session ") || !strings.Contains(minted.text(), "(new: pass this session_id") {
			t.Errorf("in a new session: %s", minted.text())
		}
		many := p.run(cellOf("s", strings.Repeat("input more\n", 15)))
		expectText(t, many.text(), "4\n5\n", "18\n", "[session s · cell 2 · ok")
	})
}

func TestInputThatTheUserDoesNotGive(t *testing.T) {
	for name, tt := range map[string]struct {
		code   string
		answer map[string]any
		want   string
		asked  int
	}{
		"declined":         {"input name?", map[string]any{"action": "decline"}, "EOFError: the user declined to answer: put the value into the code", 1},
		"dismissed":        {"input name?", map[string]any{"action": "cancel"}, "EOFError: the user dismissed the question: put the value into the code", 1},
		"a password":       {"password secret?", accept("x"), "EOFError: secrets are not asked for here", 0},
		"an empty field":   {"input name?\nprint end", map[string]any{"action": "accept", "content": map[string]any{}}, "\nend\n", 1},
		"nothing filled":   {"input name?\nprint end", map[string]any{"action": "accept"}, "\nend\n", 1},
		"a number":         {"input name?", accept(7), "7\n", 1},
		"more than a line": {"input name?", accept("a\r\n"), "a\n[session", 1},
	} {
		t.Run(name, func(t *testing.T) {
			eachEra(t, func(t *testing.T, version string) {
				p := newPerson(t, serveHTTP(t, newWorld(t)), version, says(tt.answer))
				expectText(t, p.run(cellOf("s", "print before\n"+tt.code)).text(), "before\n", tt.want)
				if len(p.asked) != tt.asked {
					t.Errorf("the user was asked %q", p.asked)
				}
				expectText(t, p.run(cellOf("s", "1+1")).text(), "2\n[session s · cell 2 · ok")
			})
		})
	}
}

// Where nobody can be asked input() fails at once, and says what to do.
func TestInputWithNobodyToAsk(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		url := serveHTTP(t, newWorld(t))
		unable := dial(t, url, version)
		expectText(t, unable.call(t.Context(), 2, "execute_python", cellOf("s", "input name?")), "StdinNotImplementedError", "put the value into the code", "cell 1 · error")
		able := newPerson(t, url, version, says(accept("x")))
		alone := cellOf("s", "sleep 500ms\ninput name?")
		alone["wait_seconds"] = 0
		expectText(t, able.run(alone).text(), "read on with get_execution")
		got := able.send(t.Context(), "get_execution", map[string]any{"session_id": "s", "execution_id": 2}, nil)
		expectText(t, got.text(), "put the value into the code", "cell 2 · error")
		late := cellOf("s", "sleep 1200ms\ninput name?")
		late["wait_seconds"] = 1
		expectText(t, able.run(late).text(), "still running")
		got = able.send(t.Context(), "get_execution", map[string]any{"session_id": "s", "execution_id": 3}, nil)
		expectText(t, got.text(), "EOFError: nobody can be asked for input here: put the value into the code", "cell 3 · error")
		if len(able.asked) > 0 {
			t.Errorf("asked: %q", able.asked)
		}
	})
}

func TestPromptThatNobodyAnswersExpires(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		w := newWorld(t, func(c *sessions.Config) { c.PromptTimeout = 300 * time.Millisecond })
		p := newPerson(t, serveHTTP(t, w), version, says(nil))
		args := cellOf("s", "print before\ninput name?")
		var got reply
		if version == mcp.ProtocolVersion20260728 {
			state := p.state(p.send(t.Context(), "execute_python", args, nil))
			for !strings.Contains(p.send(t.Context(), "list_executions", map[string]any{"session_id": "s"}, nil).text(), "error") {
			}
			got = p.send(t.Context(), "execute_python", args, map[string]any{"requestState": state, "inputResponses": map[string]any{promptID: accept("late")}})
		} else {
			got = p.run(args)
		}
		expectText(t, got.text(), "before\n", "EOFError: nobody answered within 0.3 seconds: put the value into the code", "cell 1 · error")
	})
}

// In 2026-07-28 nothing of what a client brings back runs code again.
func TestSecondCallResumesTheSameCell(t *testing.T) {
	w := newWorld(t)
	url := serveHTTP(t, w)
	p := newPerson(t, url, mcp.ProtocolVersion20260728, says(nil))
	args := cellOf("s", "print before\ninput name?\nprint after")
	again := func(state string, answers map[string]any) reply {
		return p.send(t.Context(), "execute_python", args, map[string]any{"requestState": state, "inputResponses": answers})
	}
	state := p.state(p.send(t.Context(), "execute_python", args, nil))
	expectText(t, p.send(t.Context(), "get_execution", map[string]any{"session_id": "s", "execution_id": 1, "wait_seconds": 0}, nil).text(),
		"before\n", "cell 1 · waiting for the user's answer to its input()")
	for name, forged := range map[string]string{"changed": state[:len(state)-8] + "AAAAAAAA", "made up": "x", "missing": ""} {
		got := again(forged, map[string]any{promptID: accept("x")})
		expectText(t, got.text(), "requestState: it is not one that this server gave to you", "was not run again")
		if !got.Result.IsError {
			t.Errorf("%s: no error", name)
		}
	}
	w.owner = sessions.Owner{Subject: "mallory"}
	expectText(t, again(state, map[string]any{promptID: accept("x")}).text(), "requestState: it is not one that this server gave to you")
	w.owner = sessions.Owner{Subject: "alice"}
	if p.state(again(state, nil)) == "" || p.state(again(state, map[string]any{promptID: 7})) == "" {
		t.Error("unreachable")
	}
	answers := map[string]any{promptID: accept("ada")}
	for range 2 { // the second is a client that lost the response to the first
		expectText(t, again(state, answers).text(), "before\nada\nafter\n[session s · cell 1 · ok")
	}
	expectText(t, p.send(t.Context(), "list_executions", map[string]any{"session_id": "s"}, nil).text(), "1 · ok")
	expectText(t, p.send(t.Context(), "close_session", map[string]any{"session_id": "s", "delete_files": true}, nil).text(), "")
	again2 := p.run(cellOf("s", "print another"))
	expectText(t, again2.text(), "another\n")
	if got := again(state, answers).text(); strings.Contains(got, "another") || strings.Contains(got, "ada\n") {
		t.Errorf("a closed session's state: %s", got)
	}
}

// Whatever ends a cell while it waits for input, its call hears of it.
func TestCellThatWaitsForInputCanBeStopped(t *testing.T) {
	for tool, want := range map[string]string{
		"interrupt_session": "KeyboardInterrupt", "restart_session": "restarted on request while this cell ran", "close_session": "was closed",
	} {
		t.Run(tool, func(t *testing.T) {
			eachEra(t, func(t *testing.T, version string) {
				p := newPerson(t, serveHTTP(t, newWorld(t)), version, nil)
				other := dial(t, p.url, version)
				p.answer = func(string) map[string]any {
					expectText(t, other.call(t.Context(), 9, "get_execution", map[string]any{"session_id": "s", "execution_id": 1, "wait_seconds": 0}),
						"before\n", "waiting for the user's answer")
					other.call(t.Context(), 10, tool, map[string]any{"session_id": "s"})
					return accept("late")
				}
				got := p.run(cellOf("s", "print before\ninput name?\nprint after"))
				if strings.Contains(got.text(), "after") || strings.Contains(got.text(), "late") {
					t.Errorf("the cell went on: %s", got.text())
				}
				if tool != "close_session" || version != mcp.ProtocolVersion20260728 {
					expectText(t, got.text(), "before\n", want)
				}
			})
		})
	}
}

// Who gives up the call during a prompt gives up the cell.
func TestCancelledWhileTheUserIsAsked(t *testing.T) {
	w := newWorld(t)
	p := newPerson(t, serveHTTP(t, w), mcp.ProtocolVersion20251125, nil)
	p.answer = func(string) map[string]any {
		_ = p.do(t.Context(), 0, "notifications/cancelled", map[string]any{"requestId": 5}).Body.Close()
		return nil
	}
	expectText(t, p.run(cellOf("s", "print before\ninput name?")).text(), "cancelled")
	got := p.send(t.Context(), "get_execution", map[string]any{"session_id": "s", "execution_id": 1}, nil)
	expectText(t, got.text(), "before\n", "KeyboardInterrupt", "cell 1 · cancelled")
}

// In the handshake revisions a lost connection is no cancel: the cell goes on, with nobody to ask.
func TestConnectionLostWhileTheUserIsAsked(t *testing.T) {
	w := newWorld(t)
	p := newPerson(t, serveHTTP(t, w), mcp.ProtocolVersion20251125, nil)
	ctx, hangUp := context.WithCancel(t.Context())
	p.answer = func(string) map[string]any { hangUp(); return nil }
	p.send(ctx, "execute_python", cellOf("s", "print before\ninput name?"), nil)
	// Another session of the client's: the server may not have noticed yet that the first one's request has nobody left.
	got := dial(t, p.url, mcp.ProtocolVersion20251125).call(t.Context(), 9, "get_execution", map[string]any{"session_id": "s", "execution_id": 1})
	expectText(t, got, "before\n", "EOFError: the user could not be asked, ", "put the value into the code", "cell 1 · error")
}

// A client that says that it can ask, and then cannot.
func TestClientThatCannotAskAfterAll(t *testing.T) {
	p := newPerson(t, serveHTTP(t, newWorld(t)), mcp.ProtocolVersion20251125, says(map[string]any{"code": -32601, "message": "no screen"}))
	expectText(t, p.run(cellOf("s", "input name?")).text(), "EOFError: the user could not be asked, ", "no screen", "put the value into the code")
}

// The time that the user takes is not the call's: from his answer on it waits as long again.
func TestWaitBeginsAgainWithTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		calls := 0
		ask := func(_ context.Context, e *sessions.Execution, p *sessions.Prompt) error {
			calls++
			time.Sleep(time.Minute)
			e.Answer(p.ID, "x")
			return nil
		}
		e, err := w.service.Sessions.Execute(t.Context(), w.owner, sessions.Request{SessionID: "s", Code: "input a\nsleep 20s\ninput b\nsleep 20s", Attended: true})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		v := w.service.follow(t.Context(), mcp.CallToolRequest{}, e, 0, 25*time.Second, ask)
		if v.err != nil || calls != 2 || time.Since(began) != 160*time.Second {
			t.Errorf("%v after %v, asked %d times", v.err, time.Since(began), calls)
		}
	})
}
