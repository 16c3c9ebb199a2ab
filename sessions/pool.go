package sessions

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"cellblock/internal/fault"
)

// pool keeps kernels that are up and have never run anybody's code, so that a session need not wait for its own to start.
// Each is launched in an empty folder, which becomes the session's with it.
//
// One goroutine fills it, one kernel at a time, while no cell runs: what a start takes from the processors is missing
// there. It waits for that only for a while, or a server that is always busy would never have a kernel ready.
type pool struct {
	m      *Manager
	size   int
	ctx    context.Context
	cancel context.CancelFunc
	// changed wakes the goroutine: what is missing, or whether cells run, may be different now.
	changed chan struct{}
	short   func() bool

	mu      sync.Mutex
	begun   bool
	wanted  map[Choice]time.Time  // what it has kernels of, and when somebody last wanted one
	shelves map[Choice]*poolShelf // none before the pool is started
	active  int                   // sessions that start or run a cell
	quiet   time.Time             // since when there are none
}

// poolShelf is what the pool has of one choice.
type poolShelf struct {
	ready []*pooled
	// missing is since when there are too few, notBefore when the next start may be tried. Failed starts are that many in a
	// row, the last because of problem.
	missing, notBefore time.Time
	failed             int
	problem            string
}

const (
	// poolQuiet is how long no cell must have run before the pool is filled, poolPatience how long that is waited for.
	poolQuiet    = 300 * time.Millisecond
	poolPatience = 5 * time.Second
	// poolAsking is how often a kernel in the pool is asked whether it answers.
	poolAsking = time.Minute
	// poolRenewal is how long a kernel waits in the pool before a fresh one takes its place.
	poolRenewal = time.Hour
	// maxUnusual bounds the profiles and images that it has kernels of besides those that sessions have by themselves: owners make
	// images as they like, and what is in the pool counts for none of them.
	maxUnusual = 16
	// poolPause is how long the pool waits after a failed start, doubled with each, or while memory is short.
	poolPause, maxPoolPause = 5 * time.Second, 10 * time.Minute
)

// PoolStats says what the pool holds.
type PoolStats struct {
	// Size is how many kernels it keeps ready of each language, profile and image that is used, Ready how many it has by
	// language, of the default profile and the language's own image.
	Size  int
	Ready map[string]int
	// Problem is why the last start for it failed, empty when it did not.
	Problem string
}

func newPool(m *Manager) *pool {
	p := &pool{m: m, size: max(0, m.cfg.PoolSize), changed: make(chan struct{}, 1), short: m.memory.short, shelves: map[Choice]*poolShelf{}, wanted: map[Choice]time.Time{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// StartPool begins to keep Config.PoolSize kernels ready of Python, or of the only language that there is, under the default
// profile; of other languages, profiles and images once a session has used them: an image may bring many languages that nobody
// uses. Sessions do not wait for it.
func (m *Manager) StartPool() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed && m.pool.size > 0 && m.pool.begin() {
		m.running.Go(m.pool.run)
	}
}

// begin tells whether the pool was not begun before.
func (p *pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun {
		return false
	}
	p.quiet = time.Now()
	p.begun = true
	for language := range p.m.cfg.Runtimes {
		if language == "python" || len(p.m.cfg.Runtimes) == 1 {
			p.wanted[Choice{Language: language, Profile: DefaultProfile}] = p.quiet
		}
	}
	for choice := range p.wanted {
		p.shelves[choice] = &poolShelf{missing: p.quiet}
	}
	return true
}

// want has the pool keep kernels of a choice ready from now on: somebody uses it. There may be too many of those.
func (p *pool) want(choice Choice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.wanted[choice]; !known && !choice.usual() && p.unusual() >= maxUnusual {
		return
	}
	p.wanted[choice] = time.Now()
	if p.begun && p.shelves[choice] == nil {
		p.shelves[choice] = &poolShelf{missing: time.Now()}
		p.wake()
	}
}

// usual tells whether a choice is of the default profile and its language's own image: there are not many of those.
func (c Choice) usual() bool { return c == Choice{Language: c.Language, Profile: DefaultProfile} }

// unusual is how many other choices are wanted. The caller holds p.mu.
func (p *pool) unusual() (n int) {
	for choice := range p.wanted {
		if !choice.usual() {
			n++
		}
	}
	return n
}

// forgotten tells whether nobody has wanted a choice for long. The usual ones always are wanted. The caller holds p.mu.
func (p *pool) forgotten(choice Choice) bool {
	return !choice.usual() && time.Since(p.wanted[choice]) >= poolRenewal
}

// run fills the pool until the Manager shuts down.
func (p *pool) run() {
	defer p.empty()
	for p.ctx.Err() == nil {
		choice, at := p.due()
		switch wait := time.Until(at); {
		case choice == (Choice{}):
			p.rest(nil)
		case wait > 0:
			timer := time.NewTimer(wait)
			p.rest(timer.C)
			timer.Stop()
		default:
			p.fill(choice)
		}
	}
}

func (p *pool) rest(until <-chan time.Time) {
	select {
	case <-p.ctx.Done():
	case <-p.changed:
	case <-until:
	}
}

// due returns of which choice the next kernel is to be started first, and when; none when nothing is missing.
func (p *pool) due() (choice Choice, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, shelf := range p.shelves {
		if len(shelf.ready) >= p.size {
			continue
		}
		when := shelf.missing.Add(poolPatience)
		if calm := p.quiet.Add(poolQuiet); p.active == 0 && calm.Before(when) {
			when = later(calm, shelf.missing)
		}
		when = later(when, shelf.notBefore)
		if choice == (Choice{}) || when.Before(at) {
			choice, at = c, when
		}
	}
	return choice, at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// fill starts one kernel.
func (p *pool) fill(choice Choice) {
	if p.short() {
		p.failedStart(choice, fault.New(fault.Unavailable, "memory is short on this host"))
		return
	}
	k, err := p.launch(choice)
	if err != nil {
		if p.ctx.Err() == nil {
			p.failedStart(choice, err)
		}
		return
	}
	p.mu.Lock()
	shelf := p.shelves[choice]
	if shelf == nil { // it was given up meanwhile
		shelf = &poolShelf{}
		p.shelves[choice] = shelf
	}
	shelf.ready = append(shelf.ready, k)
	shelf.failed, shelf.problem, shelf.missing = 0, "", time.Now()
	p.mu.Unlock()
	p.m.running.Go(func() { p.watch(k) })
}

// failedStart puts off the next start. Only the first of several failures is told loudly.
func (p *pool) failedStart(choice Choice, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shelf := p.shelves[choice]
	if shelf == nil {
		return // it was given up meanwhile
	}
	log := p.m.cfg.Logger.Debug
	if shelf.failed == 0 {
		log = p.m.cfg.Logger.Warn
	}
	log("no kernel for the pool", "language", choice.Language, "profile", choice.Profile, "image", choice.Image, "error", err, "hint", fault.Hint(err))
	shelf.notBefore = time.Now().Add(min(poolPause<<min(shelf.failed, 10), maxPoolPause))
	shelf.failed++
	shelf.problem = "a kernel could not be started, and the log says why"
	if known, ok := errors.AsType[*fault.Error](err); ok {
		shelf.problem = known.Error()
	}
	p.forget(choice)
}

// watch sees to it that a kernel which dies in the pool, does not answer, or gets old there, is replaced.
func (p *pool) watch(k *pooled) {
	asking := time.NewTicker(poolAsking)
	defer asking.Stop()
	renewal := time.NewTimer(poolRenewal)
	defer renewal.Stop()
	why := ""
	for why == "" {
		select {
		case <-k.left:
			return
		case <-p.ctx.Done():
			return
		case <-k.kernel.client.Done():
			why = k.kernel.death().Cause
		case <-renewal.C:
			why = "it is old"
		case <-asking.C:
			if err := k.answers(p.ctx); err != nil {
				why = "it does not answer: " + err.Error()
			}
		}
	}
	if p.remove(k) {
		p.throwAway(k, why)
	}
}

// has tells whether there is a kernel of a choice.
func (p *pool) has(choice Choice) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	shelf := p.shelves[choice]
	return shelf != nil && len(shelf.ready) > 0
}

// pop takes a kernel of a choice from the pool, for the caller to check; nil when there is none.
func (p *pool) pop(choice Choice) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	shelf := p.shelves[choice]
	if shelf == nil || len(shelf.ready) == 0 {
		return nil
	}
	k := shelf.ready[0]
	p.drop(k, 0)
	return k
}

// remove takes a kernel out of the pool, if it is there still.
func (p *pool) remove(k *pooled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := -1
	if shelf := p.shelves[k.choice]; shelf != nil {
		i = slices.Index(shelf.ready, k)
	}
	if i >= 0 {
		p.drop(k, i)
	}
	return i >= 0
}

// drop takes a kernel, the i-th, from its shelf, and the shelf away with the last one if nobody wants more. The caller holds p.mu.
func (p *pool) drop(k *pooled, i int) {
	close(k.left)
	shelf := p.shelves[k.choice]
	shelf.ready = slices.Delete(shelf.ready, i, i+1)
	shelf.missing = time.Now()
	p.forget(k.choice)
	p.wake()
}

// forget takes the shelf of a choice away if it is empty and nobody has wanted the choice for long. The caller holds p.mu.
func (p *pool) forget(choice Choice) {
	if len(p.shelves[choice].ready) == 0 && p.forgotten(choice) {
		delete(p.shelves, choice)
		delete(p.wanted, choice)
	}
}

func (p *pool) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// activity notes that a session begins (+1) or ends (-1) to start a kernel or to run a cell.
func (p *pool) activity(change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active += change
	if p.active == 0 {
		p.quiet = time.Now()
	}
	p.wake()
}

// empty ends all kernels of the pool, side by side.
func (p *pool) empty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shelf := range p.shelves {
		for _, k := range shelf.ready {
			p.m.running.Go(func() { p.throwAway(k, "") })
		}
		shelf.ready = nil
	}
}

// stats says what the pool holds.
func (p *pool) stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := PoolStats{Size: p.size, Ready: map[string]int{}}
	for choice, shelf := range p.shelves {
		if choice.Image == "" && choice.Profile == DefaultProfile {
			stats.Ready[choice.Language] = len(shelf.ready)
		}
		if shelf.problem != "" {
			stats.Problem = shelf.problem
		}
	}
	return stats
}
