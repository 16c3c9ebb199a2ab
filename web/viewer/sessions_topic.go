package viewer

import (
	"context"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/web/viewer/live"
)

const (
	// sampleEvery is how often those who look at a list of sessions are told what these use.
	sampleEvery = 4 * time.Second
	// listEvery is how often they are told what has changed, at most: sessions that work change many times a second.
	listEvery = 300 * time.Millisecond
)

// listed is a part of the list on its way to a page.
type listed struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
}

// sessionsTopic tells of the visitor's sessions: "row" for each that is new or has changed, "order" with the ids of all, and "usage"
// with what one uses. It has no cursor: a page that comes anew is told how things are, once.
func (v *Viewer) sessionsTopic(who visit) live.Topic {
	return func(ctx context.Context, _ string, send func(live.Event) error) error {
		t := &listTopic{v: v, who: who, send: send, rows: map[string]string{}, usage: map[string]string{}}
		sample := time.NewTicker(sampleEvery)
		defer sample.Stop()
		calm := pace{every: listEvery}
		for {
			if err := calm.wait(ctx); err != nil {
				return err
			}
			changed := v.Sessions.Changed(who.owner, "")
			if err := t.tell(ctx); err != nil {
				return err
			}
			if err := t.wait(ctx, changed, sample.C); err != nil {
				return err
			}
		}
	}
}

// listTopic is what one page has been told of the list.
type listTopic struct {
	v           *Viewer
	who         visit
	send        func(live.Event) error
	rows, usage map[string]string // HTML, by session
	running     []string
}

// wait returns when sessions have changed, and tells what they use until then.
func (t *listTopic) wait(ctx context.Context, changed <-chan struct{}, sample <-chan time.Time) error {
	if err := t.tellUsage(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-changed:
			return nil
		case <-sample:
			if err := t.tellUsage(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tell tells which rows have changed.
func (t *listTopic) tell(ctx context.Context) error {
	rows, err := t.v.rows(ctx, t.who)
	if err != nil {
		return err
	}
	order := []string{}
	t.running = nil
	for _, row := range rows {
		order = append(order, row.ID)
		if row.State == sessions.Idle || row.State == sessions.Busy {
			t.running = append(t.running, row.ID)
		}
		if err := t.tellPart("row", "session-row", row.ID, row, t.rows); err != nil {
			return err
		}
	}
	return t.send(live.Event{Name: "order", Data: order})
}

// tellUsage tells what the sessions that have a kernel use. They are asked at once, so that those that do not answer hold the
// list up together for as long as one of them.
func (t *listTopic) tellUsage(ctx context.Context) error {
	samples := make([][]sessions.Sample, len(t.running))
	var asked sync.WaitGroup
	for i, id := range t.running {
		asked.Go(func() { samples[i], _ = t.v.Sessions.Samples(ctx, t.who.owner, id) }) // one that has just ended has none
	}
	asked.Wait()
	for i, id := range t.running {
		if len(samples[i]) == 0 {
			continue
		}
		if err := t.tellPart("usage", "usage", id, usageOf(samples[i]), t.usage); err != nil {
			return err
		}
	}
	return nil
}

// tellPart sends HTML of a session that the page does not have yet.
func (t *listTopic) tellPart(event, template, id string, data any, had map[string]string) error {
	html, err := partial(template, data)
	if err != nil {
		return fault.New(fault.Internal, "the list cannot be made: %w", err)
	}
	if had[id] == html {
		return nil
	}
	had[id] = html
	return t.send(live.Event{Name: event, Data: listed{id, html}})
}
