package viewer

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
	"cellblock/web/viewer/live"
)

const (
	// deskTopic stands before the id of a session in the name of the topic that tells who works in it how it is.
	deskTopic = "desk:"
	// samplesTopic stands before the id in the topic of what the session uses.
	samplesTopic = "samples:"
)

// desk is how a session is, to who works in it.
type desk struct {
	State      sessions.State `json:"state"`
	Generation int            `json:"generation"`
	// Cells counts those that there have been, Running is the number of the one that runs, 0 for none, and Queue how many wait.
	Cells   int `json:"cells"`
	Running int `json:"running"`
	Queue   int `json:"queue"`
	// Filed counts changes of its files that no cell has made.
	Filed int `json:"filed"`
	// Fresh tells that the kernel has run no cell yet, though another one has.
	Fresh bool `json:"fresh,omitempty"`
	// Back tells that it has that one's variables, as they were after the cell BackAfter; 0: after its last.
	Back      bool `json:"back,omitempty"`
	BackAfter int  `json:"back_after,omitempty"`
	// Prompt is what the running cell asks for.
	Prompt *deskPrompt `json:"prompt,omitempty"`
	// Restoring is how far the cells of a lost kernel are that run again, whoever has them run; nil: none do.
	Restoring *deskRestoring `json:"restoring,omitempty"`
}

// deskRestoring counts cells.
type deskRestoring struct {
	Done int `json:"done"`
	Of   int `json:"of"`
}

// deskPrompt is a line of input that a cell waits for.
type deskPrompt struct {
	Cell     int    `json:"cell"`
	ID       string `json:"id"`
	Text     string `json:"text"`
	Password bool   `json:"password"`
}

// maxPrompt bounds what is shown of a prompt's text, in bytes.
const maxPrompt = 2000

func deskOf(info sessions.Info) desk {
	d := desk{State: info.State, Generation: info.Generation, Cells: info.Executions, Queue: info.Queue, Filed: info.Filed, Back: info.Back, BackAfter: info.BackAfter}
	if info.Last == nil {
		return d
	}
	ran := info.Last.Generation() // 0 for what never ran
	d.Fresh = info.State == sessions.Idle && ran > 0 && ran < info.Generation
	if phase, _ := info.Last.Phase(); phase != sessions.PhaseRunning {
		return d
	}
	d.Running = info.Last.Number()
	if p := info.Last.Prompt(); p != nil {
		d.Prompt = &deskPrompt{Cell: d.Running, ID: p.ID, Text: clipText(p.Text, maxPrompt), Password: p.Password}
	}
	return d
}

// deskTopic tells how a session is, whenever that changes. Who may not run code there is told of no prompt, which it is not for
// him to answer.
func (v *Viewer) deskTopic(who visit, id string) live.Topic {
	return func(ctx context.Context, _ string, send func(live.Event) error) error {
		var last []byte
		for {
			changed := v.Sessions.Changed(who.owner, id)
			info, _, err := v.describe(ctx, who.owner, id)
			if err != nil && fault.KindOf(err) != fault.NotFound { // where it is gone there is nothing to be done
				return err
			}
			d := deskOf(info)
			if !who.mayRun(info.Language) {
				d.Prompt = nil
			}
			if p, running := v.Sessions.Restoring(who.owner, id); running && p.Of > 0 {
				d.Restoring = &deskRestoring{p.Done, p.Of}
			}
			now, err := json.Marshal(d)
			if err != nil {
				return err
			}
			if !bytes.Equal(now, last) {
				last = now
				if err := send(live.Event{Name: "desk", Data: d}); err != nil {
					return err
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// sample is a sessions.Sample on its way to a page.
type sample struct {
	At     int64   `json:"at"` // in milliseconds
	CPU    float64 `json:"cpu"`
	Memory int64   `json:"memory"`
	Limit  int64   `json:"limit"`
}

// samplesTopic tells what a session has used, and goes on with what it uses, as long as somebody looks.
func (v *Viewer) samplesTopic(who visit, id string) live.Topic {
	return func(ctx context.Context, _ string, send func(live.Event) error) error {
		tick := time.NewTicker(sessions.SampleEvery)
		defer tick.Stop()
		var last time.Time
		for {
			all, err := v.Sessions.Samples(ctx, who.owner, id)
			if err != nil && fault.KindOf(err) != fault.NotFound {
				return err
			}
			if fresh := samplesAfter(all, last); len(fresh) > 0 || last.IsZero() {
				if err := send(live.Event{Name: "samples", Data: map[string]any{"first": last.IsZero(), "samples": fresh}}); err != nil {
					return err
				}
			}
			last = time.Unix(0, 1) // told once
			if n := len(all); n > 0 {
				last = all[n-1].At
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

func samplesAfter(all []sessions.Sample, last time.Time) []sample {
	fresh := []sample{}
	for _, s := range all {
		if s.At.After(last) {
			fresh = append(fresh, sample{s.At.UnixMilli(), s.CPU, s.Memory, s.MemoryLimit})
		}
	}
	return fresh
}
