package viewer

import (
	"context"
	"strconv"
	"sync"
	"time"

	"cellblock/sessions"
	"cellblock/web/viewer/live"
)

const (
	// cellsTopicPrefix stands before the id of a session in the name of the topic of its cells.
	cellsTopicPrefix = "cells:"
	// maxBehind is how many cells a page is told of one by one; of more it is told that they are there, to be fetched.
	maxBehind = 60
	// maxPull is how many outputs are applied before the page is told, pullBytes how many bytes.
	maxPull, pullBytes = 2000, 8 << 20
	// keptCells is how many cells that have ended are watched for late output.
	keptCells = 20
	// itemsEvery is how often a page is told of what cells produce, at most: a browser shows no more than two frames of that.
	itemsEvery = 30 * time.Millisecond
)

// cellsTopic tells of a session's cells: of each that is new or has changed, and of what they produce. Its cursor is the number of the
// first cell whose end was not told. All that it tells replaces what was there of the same cell or item, so what is told again
// does no harm.
func (v *Viewer) cellsTopic(who visit, id string) live.Topic {
	return func(ctx context.Context, after string, send func(live.Event) error) error {
		ctx, cancel := context.WithCancel(ctx)
		f := &follower{v: v, owner: who.owner, id: id, send: send, cells: map[int]*followed{}, more: make(chan struct{}, 1), calm: pace{every: itemsEvery}, next: max(1, atoi(after))}
		defer f.watchers.Wait()
		defer cancel()
		return f.run(ctx)
	}
}

// follower follows the cells of a session for one page.
type follower struct {
	v        *Viewer
	owner    sessions.Owner
	id       string
	send     func(live.Event) error
	next     int // the first cell whose end was not told
	top      int // the last cell that was told of
	cells    map[int]*followed
	more     chan struct{} // has one while cells may have produced more
	calm     pace
	watchers sync.WaitGroup
}

// followed is a cell that the page knows of.
type followed struct {
	e       *sessions.Execution
	shown   *shown
	phase   sessions.Phase
	watched bool
	final   bool // all of it was told, but for late output
	had     int  // without shown: the outputs that it had when the page began to be told, which has it from elsewhere
}

// The events of the topic.
type (
	// cellEvent is a whole cell: it takes the place of what was there of it.
	cellEvent struct {
		Number int    `json:"n"`
		HTML   string `json:"html"`
	}
	// headEvent is a cell without its outputs.
	headEvent cellEvent
	// itemsEvent is what a cell shows anew, behind what it shows already or in its place.
	itemsEvent struct {
		Number  int         `json:"n"`
		Cleared bool        `json:"cleared,omitempty"`
		Items   []keyedHTML `json:"items"`
		// Time is when the last of it reached the server.
		Time time.Time `json:"time"`
	}
	keyedHTML struct {
		Key  string `json:"key"`
		HTML string `json:"html"`
	}
	// displayEvent is the new content of a display, wherever it is shown.
	displayEvent struct {
		Display string `json:"display"`
		HTML    string `json:"html"`
	}
	// beginEvent says that the page is told from here on, and how many cells there are.
	beginEvent struct {
		Total int `json:"total"`
		From  int `json:"from"`
	}
)

func (f *follower) run(ctx context.Context) error {
	total, err := f.total(ctx)
	if err != nil {
		return err
	}
	f.skip(total)
	if err := f.send(live.Event{Name: "begin", Data: beginEvent{total, f.next}}); err != nil {
		return err
	}
	f.top = f.next - 1
	f.recall(ctx)
	for {
		changed := f.v.Sessions.Changed(f.owner, f.id)
		if err := f.look(ctx); err != nil {
			return err
		}
		if err := f.wait(ctx, changed); err != nil {
			return err
		}
	}
}

// wait tells what cells produce until something else changes.
func (f *follower) wait(ctx context.Context, changed <-chan struct{}) error {
	for {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.more:
			if err := f.calm.wait(ctx); err != nil {
				return err
			}
			for _, c := range f.cells {
				if err := f.tellItems(c); err != nil {
					return err
				}
			}
		}
	}
}

func (f *follower) total(ctx context.Context) (int, error) {
	info, _, err := f.v.describe(ctx, f.owner, f.id)
	return info.Executions, err
}

// skip leaves out cells that are too many to be told of.
func (f *follower) skip(total int) {
	if f.next < total-maxBehind {
		f.next = total - maxBehind
	}
	f.next = min(f.next, total+1)
}

// recall remembers the cells before those that are told of: they may have late output.
func (f *follower) recall(ctx context.Context) {
	before, err := f.v.Sessions.ExecutionsFrom(ctx, f.owner, f.id, f.top-keptCells+1, keptCells, 0)
	if err != nil {
		return // it hears of what comes now all the same
	}
	for _, e := range before {
		f.cells[e.Number()] = &followed{e: e, final: true, had: e.Produced()}
	}
}

// look tells of cells that are new, or further than they were.
func (f *follower) look(ctx context.Context) error {
	total, err := f.total(ctx)
	if err != nil {
		return err
	}
	if total > f.top {
		fresh, err := f.v.Sessions.ExecutionsFrom(ctx, f.owner, f.id, f.top+1, total-f.top, 0)
		if err != nil {
			return err
		}
		for _, e := range fresh {
			f.cells[e.Number()] = &followed{e: e}
		}
		f.top = total
	}
	for n := f.next; n <= f.top; n++ {
		if c := f.cells[n]; c != nil {
			if err := f.tell(ctx, c); err != nil {
				return err
			}
		}
	}
	for n := f.next - 1; n >= f.next-keptCells; n-- {
		if c := f.cells[n]; c != nil && c.final {
			if err := f.tellLate(ctx, c); err != nil {
				return err
			}
		}
	}
	return f.advance()
}

// tellLate tells what a cell has produced after its end.
func (f *follower) tellLate(ctx context.Context, c *followed) error {
	switch {
	case c.shown != nil:
		return f.tellItems(c)
	case c.e.Produced() != c.had:
		c.final = false
		return f.tell(ctx, c)
	}
	return nil
}

// advance moves the cursor behind cells that have been told to their end.
func (f *follower) advance() error {
	before := f.next
	for f.next <= f.top && (f.cells[f.next] == nil || f.cells[f.next].final) {
		delete(f.cells, f.next-keptCells)
		f.next++
	}
	if f.next == before {
		return nil
	}
	return f.send(live.Event{Name: "told", Cursor: strconv.Itoa(f.next), Data: f.next})
}

// tell tells how far a cell is.
func (f *follower) tell(ctx context.Context, c *followed) error {
	info := c.e.Info()
	if c.final {
		return nil
	}
	fresh := c.shown == nil || c.shown.generation != info.Generation
	if fresh {
		c.shown = f.v.newShown(f.id, c.e, info)
	}
	c.shown.renumber(info)
	if fresh || c.phase != info.Phase {
		c.phase = info.Phase
		if err := f.tellCell(ctx, c, info, fresh); err != nil {
			return err
		}
	}
	if info.Phase == sessions.PhaseRunning && !c.watched {
		f.watch(ctx, c)
	}
	if err := f.tellItems(c); err != nil {
		return err
	}
	c.final = info.Phase == sessions.PhaseEnded
	return nil
}

// tellCell sends a cell: all of it when it is new to the page, else its head.
func (f *follower) tellCell(ctx context.Context, c *followed, info sessions.ExecutionInfo, fresh bool) error {
	view := viewOf(info)
	name := "cell-head"
	var elsewhere []*item
	if fresh {
		b := block{v: f.v, owner: f.owner, id: f.id}
		if before, err := f.v.Sessions.ExecutionPage(ctx, f.owner, f.id, info.Number-1, 1); err == nil && len(before) == 1 {
			b.generation = before[0].Generation
		}
		b.divide(ctx, &view)
		view.Code = codeOf(c.e, info)
		c.pull()
		view.Items = c.shown.views()
		_, _, elsewhere = c.shown.take()
		name = "cell"
	}
	html, err := partial(name, view)
	if err != nil {
		return err
	}
	if !fresh {
		return f.send(live.Event{Name: "head", Data: headEvent{info.Number, html}})
	}
	if err := f.send(live.Event{Name: "cell", Data: cellEvent{info.Number, html}}); err != nil {
		return err
	}
	return f.tellDisplays(c, elsewhere)
}

// tellDisplays sends what a cell has made of displays that may be in other cells.
func (f *follower) tellDisplays(c *followed, updated []*item) error {
	for _, it := range updated {
		if err := f.send(live.Event{Name: "display", Data: displayEvent{it.Display, string(c.shown.html(it))}}); err != nil {
			return err
		}
	}
	return nil
}

// pull applies what a cell has produced, within bounds, and tells whether there is more. Behind all of an ended cell stands what to do
// about it.
func (c *followed) pull() (more bool) {
	if more = c.shown.pull(c.e, &budget{outputs: maxPull, bytes: pullBytes}); !more && c.phase == sessions.PhaseEnded {
		c.shown.advise(c.e.Info().Result.Error)
	}
	return more
}

// watch wakes the follower whenever a cell that runs has produced something.
func (f *follower) watch(ctx context.Context, c *followed) {
	c.watched = true
	from := c.shown.next
	f.watchers.Go(func() {
		for range c.e.OutputsFrom(ctx, from) { //nolint:errcheck // who draws them looks at errors
			f.wake()
		}
		f.wake()
	})
}

func (f *follower) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// tellItems sends what a cell shows anew.
func (f *follower) tellItems(c *followed) error {
	if c.shown == nil {
		return nil
	}
	for more := true; more; {
		more = c.pull()
		cleared, changed, foreign := c.shown.take()
		if cleared || len(changed) > 0 {
			event := itemsEvent{Number: c.shown.number, Cleared: cleared, Time: time.Now()}
			for _, it := range changed {
				html, err := partial("cell-item", itemView{it, c.shown.html(it)})
				if err != nil {
					return err
				}
				event.Items = append(event.Items, keyedHTML{it.Key, html})
			}
			if err := f.send(live.Event{Name: "items", Data: event}); err != nil {
				return err
			}
		}
		if err := f.tellDisplays(c, foreign); err != nil {
			return err
		}
	}
	return nil
}
