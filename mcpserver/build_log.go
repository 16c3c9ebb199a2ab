package mcpserver

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/words"
	"cellblock/mcpserver/terminal"
)

// buildLog tells the caller of a call what the build of an image prints, as it comes, and gives a sign of life where nothing
// comes. A caller who sent no progress token is told nothing.
type buildLog struct {
	send func(elapsed float64, message string) error
	wake chan struct{}
	quit chan struct{}
	done chan struct{}
	once sync.Once

	mu   sync.Mutex
	text longText
}

func (s *service) buildLog(ctx context.Context, r mcp.CallToolRequest) *buildLog {
	l := &buildLog{wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	if r.Params.Meta == nil || r.Params.Meta.ProgressToken == nil {
		close(l.done)
		return l
	}
	token := r.Params.Meta.ProgressToken
	l.send = func(elapsed float64, message string) error {
		return s.notify(ctx, "notifications/progress", map[string]any{"progressToken": token, "progress": elapsed, "message": message})
	}
	go l.run(time.Now())
	return l
}

// Write takes what the build prints. It never waits for the caller, and never fails.
func (l *buildLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.text.add(strings.ToValidUTF8(string(p), "?"))
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// stop ends the notifications, after the last text was told.
func (l *buildLog) stop() {
	l.once.Do(func() { close(l.quit) })
	<-l.done
}

func (l *buildLog) run(began time.Time) {
	defer close(l.done)
	last := 0.0
	for more := true; more; {
		more = pauseProgress(last, l.wake, l.quit)
		text := l.take()
		if !more && text == "" {
			return
		}
		last = max(time.Since(began).Seconds(), last+0.001)
		if l.send(last, joinLines("building for "+words.Took(time.Since(began)), text)) != nil {
			<-l.quit // the caller cannot be reached: the result may still be
			return
		}
	}
}

// take returns what came since the last time, the end of it if it is long.
func (l *buildLog) take() string {
	l.mu.Lock()
	collected := l.text
	l.text = longText{}
	l.mu.Unlock()
	head, tail := collected.texts()
	return terminal.Plain(strings.TrimRight(lastChars(head+tail, progressChars), "\n"))
}
