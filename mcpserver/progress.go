package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/sessions"
)

const (
	// lifeSign is the longest that a caller waits for progress: clients give up after a minute without.
	lifeSign = 5 * time.Second
	// progressPause is the shortest time between two notifications.
	progressPause = 250 * time.Millisecond
	// progressChars is the most text that one notification carries.
	progressChars = 2000
)

// progress tells the caller of one call how its cell goes on: new text as it comes, and a sign of life where none comes.
// A caller who sent no progress token is told nothing.
type progress struct {
	execution *sessions.Execution
	send      func(elapsed float64, message, live string) error
	began     time.Time
	wake      chan struct{}
	quit      chan struct{}
	stopped   chan struct{}

	mu   sync.Mutex
	text longText
	live liveLines
}

func (s *service) startProgress(ctx context.Context, r mcp.CallToolRequest, e *sessions.Execution) *progress {
	return s.goOnProgress(ctx, r, e, time.Now())
}

// goOnProgress is startProgress for a call that has begun with other cells.
func (s *service) goOnProgress(ctx context.Context, r mcp.CallToolRequest, e *sessions.Execution, began time.Time) *progress {
	if r.Params.Meta == nil || r.Params.Meta.ProgressToken == nil {
		return nil
	}
	token := r.Params.Meta.ProgressToken
	p := &progress{
		execution: e, began: began,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), stopped: make(chan struct{}),
		send: func(elapsed float64, message, live string) error {
			params := map[string]any{"progressToken": token, "progress": elapsed, "message": message}
			if live != "" {
				params["_meta"] = map[string]any{OutputMeta: live}
			}
			return s.notify(ctx, "notifications/progress", params)
		},
	}
	go p.run()
	return p
}

// add takes an output of the cell. It never waits for the caller.
func (p *progress) add(out kernels.Output) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.live.add(out)
	p.text.add(out.Text)
	if out.Kind == kernels.OutputAnswer {
		p.text.add("\n") // which ended it where it was typed
	}
	p.mu.Unlock()
	if out.Kind != kernels.OutputStream {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// stop ends the notifications, after the last text was told.
func (p *progress) stop() {
	if p == nil {
		return
	}
	close(p.quit)
	<-p.stopped
}

func (p *progress) run() {
	defer close(p.stopped)
	last := 0.0
	for more := true; more; {
		more = p.pause(last)
		text, live := p.take()
		if !more && text == "" {
			return
		}
		// Progress must increase, also where the clock does not.
		last = max(time.Since(p.began).Seconds(), last+0.001)
		if p.send(last, p.message(text), live) != nil {
			<-p.quit // the caller cannot be reached: the result may still be
			return
		}
	}
}

// pause waits until there is something to tell, and returns false when the cell has ended.
func (p *progress) pause(last float64) bool { return pauseProgress(last, p.wake, p.quit) }

// pauseProgress waits until something wakes it, or a sign of life is due, but never less than progressPause after the last time.
// It returns false when quit is closed.
func pauseProgress(last float64, wake, quit <-chan struct{}) bool {
	sign := time.NewTimer(lifeSign)
	defer sign.Stop()
	if last > 0 {
		select {
		case <-time.After(progressPause):
		case <-quit:
			return false
		}
	}
	select {
	case <-wake:
	case <-sign.C:
	case <-quit:
		return false
	}
	return true
}

// take returns the text that came since the last time, the end of it if it is long, and whole lines for OutputMeta.
func (p *progress) take() (text, live string) {
	p.mu.Lock()
	collected := p.text
	p.text = longText{}
	live = p.live.take()
	p.mu.Unlock()
	head, tail := collected.texts()
	return strings.TrimRight(lastChars(head+tail, progressChars), "\n"), live
}

// message says where the cell is, and what it printed.
func (p *progress) message(text string) string {
	where := "running for " + words.Took(time.Since(p.began))
	switch info := p.execution.Info(); {
	case p.execution.Prompt() != nil:
		where = waitsForUser
	case info.Phase == sessions.PhaseRunning:
		where = "running for " + words.Took(info.Duration)
	case info.Phase == sessions.PhaseQueued && info.Position > 0:
		where = fmt.Sprintf("waiting for %s before it in the session", words.Count(int64(info.Position), "cell"))
	case info.Phase == sessions.PhaseQueued && info.Crowded:
		where = crowded
	case info.Phase == sessions.PhaseQueued && info.Starting:
		where = "starting the kernel"
	case info.Phase == sessions.PhaseQueued:
		where = aboutToRun
	}
	return joinLines(where, text)
}
