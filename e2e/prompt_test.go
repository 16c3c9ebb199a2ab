package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/e2e/rig"
)

// user answers what a server asks by forms.
type user func(message string) (line string, action mcp.ElicitationResponseAction)

func (u user) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	line, action := u(r.Params.Message)
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action, Content: map[string]any{"value": line}}}, nil
}

// A cell's input() asks the user, on real kernels and in both eras, and whatever else is done about it, the session goes on.
func TestPrompts(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		token := s.Token(t)
		for _, version := range []string{mcp.ProtocolVersion20251125, mcp.ProtocolVersion20260728} {
			t.Run(version, func(t *testing.T) { testPrompts(t, s, token, version) })
		}
	})
}

func testPrompts(t *testing.T, s *rig.Server, token, version string) {
	session := "prompts-" + version
	other := s.Connect(t, token, false)
	stop := func(tool string) {
		waits := call(t, other, "get_execution", map[string]any{"session_id": session, "execution_id": 2, "wait_seconds": 0})
		if tool == "interrupt_session" {
			wantText(t, waits.Text, "begun\n", "waiting for the user's answer to its input()")
		}
		call(t, other, tool, map[string]any{"session_id": session})
	}
	c := s.ConnectAs(t, token, version, client.WithElicitationHandler(user(func(message string) (string, mcp.ElicitationResponseAction) {
		switch _, prompt, _ := strings.Cut(message, "for input: "); prompt {
		case "interrupt":
			stop("interrupt_session")
		case "restart":
			stop("restart_session")
		case "decline":
			return "", mcp.ElicitationResponseActionDecline
		default:
			return "<" + prompt + ">", mcp.ElicitationResponseActionAccept
		}
		return "too late", mcp.ElicitationResponseActionAccept
	})))
	for i, step := range []struct {
		code    string
		isError bool
		want    []string
	}{
		{"runs = 0\ndef ask(prompt):\n    return input(prompt)\nprint(ask('a'), ask('bé\\n'))", false, []string{"<a> <bé>\n", "cell 1 · ok"}},
		{"runs += 1\nprint('begun')\ninput('interrupt')\nprint('not reached')", true, []string{"begun\n", "KeyboardInterrupt", "Variables are kept", "cell 2 · interrupted"}},
		{"print(input('again'), runs)", false, []string{"<again> 1\n"}},
		{"ask('decline')", true, []string{"EOFError: the user declined to answer: put the value into the code", "ask('decline')"}},
		{"import getpass\ngetpass.getpass('secret')", true, []string{"EOFError: secrets are not asked for here"}},
		{"try:\n    input('decline')\nexcept EOFError as e:\n    print('caught', e)", false, []string{"caught the user declined"}},
		{"input('restart')\nprint('not reached')", true, []string{"restarted on request while this cell ran", "Variables are lost"}},
		{"print(input('fresh'))", false, []string{"<fresh>\n", "ok"}},
	} {
		got := python(t, c, session, step.code)
		if got.IsError != step.isError || strings.Contains(got.Text, "not reached\n[") {
			t.Errorf("cell %d: isError is %v:\n%s", i+1, got.IsError, got.Text)
		}
		wantText(t, got.Text, step.want...)
	}
	unable := s.ConnectAs(t, token, version)
	got := python(t, unable, session, "input('anybody?')")
	wantText(t, got.Text, "StdinNotImplementedError", "put the value into the code", fmt.Sprintf("session %s · cell 9 · error", session))
}
