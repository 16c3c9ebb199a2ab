package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// Completion is what could stand at a cursor, from the kernel: not to be trusted.
type Completion struct {
	Matches []Match `json:"matches"`
	// Start and End bound the text that a match takes the place of, in Unicode code points of the code.
	Start int `json:"start"`
	End   int `json:"end"`
	// More is how many matches there are beside these.
	More int `json:"more"`
}

// Match is one text that would fit, and what kind of thing it names, where the kernel says so: "function", "module".
type Match struct {
	Text string `json:"text"`
	Kind string `json:"kind,omitempty"`
}

const (
	// assistTimeout is how long a kernel may think about what somebody is writing.
	assistTimeout = 4 * time.Second
	// maxMatches bounds the matches of a completion, maxMatch the length of one, in bytes.
	maxMatches, maxMatch = 500, 300
	// maxHelp bounds the help on a name, in bytes.
	maxHelp = 64 << 10
)

// Complete says what could stand at a cursor in code, which is a position in Unicode code points. It may run code: that of the
// objects which it looks at. It is Busy while the session starts or runs a cell, Timeout when the kernel takes longer than
// four seconds. A session without a kernel knows nothing.
func (m *Manager) Complete(ctx context.Context, o Owner, id, code string, cursor int) (Completion, error) {
	s, err := m.assist(ctx, o, id, code, cursor)
	if err != nil {
		return Completion{}, err
	}
	return askIdle(ctx, s, func() (Completion, error) {
		c, err := assisted(s, func(ctx context.Context) (kernels.Completion, error) {
			return s.kernel.client.Complete(ctx, code, cursor)
		})
		return completionOf(c, code), err
	})
}

// Inspect returns what the kernel has to say of the name at a cursor in code, as text with ANSI colours; empty when that is
// nothing. For the rest it is like Complete.
func (m *Manager) Inspect(ctx context.Context, o Owner, id, code string, cursor int) (string, error) {
	s, err := m.assist(ctx, o, id, code, cursor)
	if err != nil {
		return "", err
	}
	return askIdle(ctx, s, func() (string, error) {
		i, err := assisted(s, func(ctx context.Context) (kernels.Inspection, error) {
			return s.kernel.client.Inspect(ctx, code, cursor, 0)
		})
		return helpOf(i), err
	})
}

// assist returns the session that a text is written for, if the cursor is in that text.
func (m *Manager) assist(ctx context.Context, o Owner, id, code string, cursor int) (*session, error) {
	if strings.TrimSpace(code) != "" {
		if err := ValidateCode(code); err != nil {
			return nil, err
		}
	}
	if n := utf8.RuneCountInString(code); cursor < 0 || cursor > n {
		return nil, fault.New(fault.Invalid, "cursor: %d is not in the code, which has %d characters", cursor, n)
	}
	return m.use(ctx, o, id)
}

// assisted asks the kernel something. The runner calls it while no cell runs. A kernel that does not answer is interrupted,
// so that the next cell does not wait behind the question.
func assisted[T any](s *session, question func(context.Context) (T, error)) (answer T, err error) {
	if s.kernel == nil || s.kernelGone() {
		return answer, nil
	}
	s.touch()
	ctx, cancel := context.WithTimeout(s.ctx, assistTimeout)
	defer cancel()
	answer, err = question(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		return answer, err
	}
	stop, cancel := context.WithTimeout(s.ctx, s.manager.cfg.Grace)
	defer cancel()
	if err := s.kernel.client.Interrupt(stop); err != nil {
		s.log.Warn("a question to the kernel was not interrupted", "error", err)
	}
	return answer, fault.New(fault.Timeout, "the kernel did not answer within %s", words.Length(assistTimeout)).
		WithHint("go on without; restart the session if its cells do not run either")
}

// completionOf makes what came from a kernel fit for its reader.
func completionOf(c kernels.Completion, code string) Completion {
	end := min(max(c.CursorEnd, 0), utf8.RuneCountInString(code))
	fit := Completion{Matches: []Match{}, Start: min(max(c.CursorStart, 0), end), End: end}
	kinds := matchKinds(c.Metadata)
	for _, text := range c.Matches {
		if text == "" || len(text) > maxMatch {
			continue
		}
		if len(fit.Matches) == maxMatches {
			fit.More++
			continue
		}
		fit.Matches = append(fit.Matches, Match{Text: text, Kind: kinds[text]})
	}
	return fit
}

// matchKinds are the kinds of matches by their text, as IPython tells them beside.
func matchKinds(metadata json.RawMessage) map[string]string {
	var said struct {
		Types []struct{ Text, Type string } `json:"_jupyter_types_experimental"`
	}
	if json.Unmarshal(metadata, &said) != nil {
		return nil
	}
	kinds := map[string]string{}
	for _, t := range said.Types {
		if t.Type != "<unknown>" {
			kinds[t.Text] = clip(t.Type, 40)
		}
	}
	return kinds
}

// helpOf is an inspection's text.
func helpOf(i kernels.Inspection) string {
	var text string
	if !i.Found || json.Unmarshal(i.Data["text/plain"], &text) != nil {
		return ""
	}
	return clip(text, maxHelp)
}
