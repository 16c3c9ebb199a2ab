package channels

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cellblock/kernels/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

type received struct {
	ch     stream.Channel
	parts  [][]byte
	reason string // of what was dropped
	bytes  int64
}

// recorder is a Handler that keeps everything.
type recorder struct {
	mu       sync.Mutex
	changed  chan struct{}
	messages []received
	dropped  []received
	lost     map[stream.Channel][]error
}

func newRecorder() *recorder {
	return &recorder{changed: make(chan struct{}, 1), lost: make(map[stream.Channel][]error)}
}

func (r *recorder) Message(ch stream.Channel, parts [][]byte) {
	r.record(func() { r.messages = append(r.messages, received{ch: ch, parts: parts}) })
}

func (r *recorder) Dropped(ch stream.Channel, reason string, frames [][]byte, bytes int64) {
	r.record(func() { r.dropped = append(r.dropped, received{ch, frames, reason, bytes}) })
}

func (r *recorder) Lost(ch stream.Channel, err error) {
	r.record(func() { r.lost[ch] = append(r.lost[ch], err) })
}

func (r *recorder) record(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// await waits until ok, which is called with the lock held.
func (r *recorder) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		r.mu.Lock()
		done := ok()
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("never came: %s", what)
		}
	}
}

func (r *recorder) awaitLost(t *testing.T, ch stream.Channel) (cause error) {
	t.Helper()
	r.await(t, ch.String()+" lost", func() bool {
		if len(r.lost[ch]) > 0 {
			cause = r.lost[ch][0]
		}
		return cause != nil
	})
	return cause
}

// texter is a recorder that reads large texts.
type texter struct {
	*recorder
	texts []*largeText // guarded by the recorder, once they have ended
}

// largeText is what was read of one.
type largeText struct {
	r       *texter
	parts   [][]byte
	content bytes.Buffer
	reason  string
}

func (r *texter) Text(parts [][]byte) Text { return &largeText{r: r, parts: parts} }

func (l *largeText) Write(b []byte) (int, error) { return l.content.Write(b) }

func (l *largeText) End(reason string) {
	l.reason = reason
	l.r.record(func() { l.r.texts = append(l.r.texts, l) })
}
