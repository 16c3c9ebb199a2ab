package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"
)

// caller calls tools of a server as an MCP client.
type caller interface {
	// Call returns a result's text, and whether it is marked as an error.
	Call(ctx context.Context, tool string, args map[string]any) (text string, isError bool, err error)
	Close() error
}

// hold has n sessions work for a while, each with a connection of its own, and closes them. The time begins when all of them
// have a kernel. tell is called about once a second.
func hold(ctx context.Context, dial func(context.Context) (caller, error), n int, length time.Duration, tell func(*tally, time.Duration)) (*tally, error) {
	t := newTally()
	workers, err := begin(ctx, dial, n, t)
	defer each(workers, func(w *worker) { w.leave(context.WithoutCancel(ctx)) })
	if err != nil {
		return nil, err
	}
	working, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { each(workers, func(w *worker) { w.work(working) }) })
	start, tick := time.Now(), time.NewTicker(time.Second)
	defer tick.Stop()
	for working.Err() == nil {
		select {
		case <-tick.C:
			tell(t, time.Since(start))
		case <-working.Done():
		}
	}
	all.Wait()
	return t, ctx.Err()
}

// begin connects n sessions and starts their kernels. Those that it returns are to be left, also after an error.
func begin(ctx context.Context, dial func(context.Context) (caller, error), n int, t *tally) (workers []*worker, err error) {
	run := strings.ToLower(rand.Text()[:6])
	for i := range n {
		c, err := dial(ctx)
		if err != nil {
			return workers, err
		}
		workers = append(workers, &worker{caller: c, id: fmt.Sprintf("load-%s-%d", run, i), tally: t})
	}
	each(workers, func(w *worker) { t.start(w.run(ctx, "counted = 0; print('here')", "here", false)) })
	return workers, ctx.Err()
}

// each has all workers do something side by side, and waits for them.
func each(workers []*worker, do func(*worker)) {
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() { do(w) })
	}
	all.Wait()
}

// afterFailure is how long a session rests after something went wrong.
const afterFailure = 200 * time.Millisecond

// worker is one session at work.
type worker struct {
	caller
	id    string
	tally *tally
	cells int // that it has run
}

// work runs one job after the other until ctx ends. A cell that has begun is let end.
func (w *worker) work(ctx context.Context) {
	for i := len(w.id); ctx.Err() == nil; i++ {
		job := jobs[i%len(jobs)]
		start := time.Now()
		err := job.run(context.WithoutCancel(ctx), w)
		w.tally.add(job.name, time.Since(start), err)
		if err != nil {
			wait(ctx, afterFailure) // whatever it is, it is not made worse by asking at once
		}
	}
}

// leave closes the session, and the connection.
func (w *worker) leave(ctx context.Context) {
	defer w.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, _, _ = w.Call(ctx, "close_session", map[string]any{"session_id": w.id, "delete_files": true})
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
