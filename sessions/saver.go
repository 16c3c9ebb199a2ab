package sessions

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"cellblock/internal/fault"
)

// saver puts what happens in one session into the store, in the order in which it happened, and holds nobody up. What
// comes gathers for a moment, and while a commit is on its way, so that many small outputs cost few commits, and a short
// cell one. Who waits for a commit has it made at once. When the store does not work, what was not saved stays here and is tried again, until it works or the session is
// gone.
type saver struct {
	store Store
	want  StoredSession
	log   *slog.Logger
	start func(work func()) // on a goroutine

	mu      sync.Mutex
	ref     SessionRef
	first   int     // the session's first number here; the store must not have it yet
	waiting []entry // in order
	added   uint64  // entries ever added
	done    uint64  // entries ever dealt with
	err     error   // why the last attempt failed; nil while the store works
	lost    bool    // nothing more will be saved, because the store says that it contradicts what is there
	opened  bool    // open has returned, and what waits may be saved
	active  bool    // the goroutine runs, or timer will start it
	timer   *time.Timer
	stopped bool // it will not be started any more
	changed chan struct{}
	tries   int           // attempts that have ended
	again   chan struct{} // has room for one: the goroutine's rest is to end

	// works is called when the store works again.
	works func()

	quit  chan struct{}
	ended sync.WaitGroup
}

// entry is something to save: a change, or what a record has.
type entry struct {
	change Change
	record *record
}

const (
	// gatherTime is how long a first change waits for more. Nobody waits for it: it is about how many cells are one commit.
	gatherTime = 20 * time.Millisecond
	// firstPause and lastPause are how long a store that does not work is left alone, at first and at most.
	firstPause = time.Second
	lastPause  = 15 * time.Second
	// maxEntries bounds the entries of one commit.
	maxEntries = 256
	// maxWaiting is how much may wait for a store that does not work before no new cells are taken. What those that were
	// taken still do waits beyond it: a change that is left out would contradict those after it.
	maxWaiting = 20_000
	// askTime is how long whoever wants something saved waits for another attempt, where the last has failed.
	askTime = 200 * time.Millisecond
)

// errStuck is why something is not saved when the store neither works nor fails.
var errStuck error = fault.New(fault.Unavailable, "the history's disk does not answer").
	WithHint("look at the disk of the data folder")

func newSaver(store Store, want StoredSession, log *slog.Logger, start func(func())) *saver {
	return &saver{store: store, want: want, log: log, start: start, changed: make(chan struct{}), again: make(chan struct{}, 1), works: func() {}, quit: make(chan struct{})}
}

// open claims the session. It returns Conflict when another process has it; when the store does not work the session goes
// on without, and is claimed as soon as it does.
func (s *saver) open(ctx context.Context, first int) error {
	s.mu.Lock()
	s.first = first
	s.mu.Unlock()
	err := s.claim(ctx)
	if err != nil && fault.KindOf(err) == fault.Conflict {
		s.fail(err)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened, s.err = true, err
	s.wake()
	return nil
}

func (s *saver) claim(ctx context.Context) error {
	found, err := s.store.Open(ctx, s.want)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found.Executions >= s.first {
		return fault.New(fault.Conflict, "the history already has cell %d of this session", found.Executions)
	}
	s.ref = found.Ref
	return nil
}

func (s *saver) session() SessionRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ref
}

// add has changes saved. With what it returns owes tells whether that is still to come.
func (s *saver) add(changes ...Change) (ticket uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, change := range changes {
		s.push(entry{change: change})
	}
	return s.added
}

// owes tells whether the changes of a ticket are still to be saved.
func (s *saver) owes(ticket uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done < ticket
}

// mark has what a record holds saved, and returns false when it will not be. Its lock is held.
func (s *saver) mark(r *record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push(entry{record: r})
}

// push adds an entry, unless nothing more is saved. The caller holds s.mu.
func (s *saver) push(e entry) bool {
	if s.lost {
		return false
	}
	s.waiting = append(s.waiting, e)
	s.added++
	s.wake()
	return true
}

// wake has the goroutine started soon if there is something to do for it. Before open there is not. The caller holds s.mu.
func (s *saver) wake() {
	if !s.active && !s.stopped && len(s.waiting) > 0 && s.opened {
		s.active = true
		s.timer = time.AfterFunc(gatherTime, s.now)
	}
}

// now ends the gathering.
func (s *saver) now() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurry()
}

// hurry starts the goroutine now if it is to be started soon. The caller holds s.mu.
func (s *saver) hurry() {
	if s.timer == nil {
		return
	}
	s.timer.Stop()
	s.timer = nil
	if s.stopped {
		s.active = false
		return
	}
	s.ended.Add(1)
	s.start(s.work)
}

// work saves what waits, and ends when nothing does.
func (s *saver) work() {
	defer s.ended.Done()
	pause := firstPause
	for {
		entries := s.next()
		if entries == nil {
			return
		}
		err := s.save(entries)
		if err == nil {
			pause = firstPause
			continue
		}
		if fault.KindOf(err) == fault.Conflict {
			s.log.Error("the session's history is not saved any more", "error", err)
			s.fail(err)
			continue
		}
		if !s.rest(pause) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// next returns what waits; nil when the goroutine is to end.
func (s *saver) next() []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.active = false
		return nil
	}
	return s.waiting[:min(len(s.waiting), maxEntries)]
}

// rest waits before the next attempt. It returns false when there will be none.
func (s *saver) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.again:
		return true
	case <-s.quit:
		return false
	}
}

// retry ends the rest before the next attempt.
func (s *saver) retry() {
	select {
	case s.again <- struct{}{}:
	default:
	}
}

// save commits entries, as many as fit.
func (s *saver) save(entries []entry) error {
	changes, batches, n := gather(entries)
	err := s.commit(changes)
	if err != nil {
		s.note(err)
		for _, b := range batches {
			b.record.dealt(b.batch)
		}
		return err
	}
	var again []entry
	for _, b := range batches {
		if b.record.savedBatch(b.batch) {
			again = append(again, entry{record: b.record})
		}
	}
	s.saved(n, again)
	return nil
}

// taken is a batch with the record that it is of.
type taken struct {
	batch  batch
	record *record
}

// gather makes changes of entries, up to the first that does not fit whole. It returns how many entries it has dealt
// with.
func gather(entries []entry) (changes []Change, batches []taken, n int) {
	var size int64
	for _, e := range entries {
		n++
		if e.record == nil {
			changes = append(changes, e.change)
			continue
		}
		b, ok := e.record.batch()
		if ok {
			changes = append(changes, b.OutputsKept)
		}
		batches = append(batches, taken{b, e.record})
		for _, out := range b.Outputs {
			size += outputSize(out)
		}
		if b.more || size > maxBatch {
			break // what comes behind it must not overtake it
		}
	}
	return changes, batches, n
}

func (s *saver) commit(changes []Change) error {
	if s.session() == 0 {
		if err := s.claim(context.Background()); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return s.store.Commit(context.Background(), s.session(), changes...)
}

// saved takes the first n entries off, and puts records that have more in their place.
func (s *saver) saved(n int, again []entry) {
	s.mu.Lock()
	recovered := s.err != nil
	s.waiting = append(again, s.waiting[n:]...)
	s.done += uint64(n - len(again))
	s.err = nil
	s.tries++
	s.broadcast()
	s.mu.Unlock()
	if recovered {
		s.works()
	}
}

// note remembers that an attempt failed.
func (s *saver) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.tries++
	s.broadcast()
}

// fail gives up for good: what waits will not be saved, nor what comes.
func (s *saver) fail(err error) {
	s.mu.Lock()
	left := s.waiting
	s.lost, s.err = true, err
	s.waiting, s.done = nil, s.added
	s.broadcast()
	s.mu.Unlock()
	for _, e := range left {
		if e.record != nil {
			e.record.unmark()
		}
	}
}

func (s *saver) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// room refuses a cell while very much waits for a store that does not work. Asking is an attempt's occasion.
func (s *saver) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) < maxWaiting || s.err == nil {
		return nil
	}
	s.retry()
	return fault.New(fault.Unavailable, "the history takes nothing, and %d changes of this session wait for it: %v", len(s.waiting), fault.WithoutPlaces(s.err)).
		WithHint("%s; nothing is lost so far, and cells run again when the history takes what waits", cmp.Or(fault.Hint(s.err), "look at the disk of the data folder"))
}

// trouble returns why what happens is not being saved now, nil when it is.
func (s *saver) trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// flush returns when everything that was added so far is in the store. The error says why it is not: the store does not
// work (it will still be saved if that changes), has not moved on for so long, or ctx has ended. Where the last attempt has
// failed another one is made, which must not take long.
func (s *saver) flush(ctx context.Context, most time.Duration) error {
	s.mu.Lock()
	s.hurry()
	target, tries, failed := s.added, s.tries, s.err
	wait := most
	if failed != nil && !s.lost {
		s.retry()
		wait = min(most, askTime)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for s.done < target && (s.err == nil || failed != nil && s.tries == tries) {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
			timer.Reset(most)
		case <-timer.C:
			if err := s.trouble(); err != nil {
				return err
			}
			return errStuck
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	return s.err
}

// close saves what is left, with one more attempt if the store did not work, and ends. What is added later is not saved.
func (s *saver) close(ctx context.Context, most time.Duration) error {
	err := s.flush(ctx, most)
	s.stop()
	if ctx.Err() == nil {
		for entries := s.next(); entries != nil; entries = s.next() {
			if err = s.save(entries); err != nil {
				break
			}
		}
	}
	if n := s.abandon(); n > 0 {
		s.log.Error("the end of a session's history could not be saved", "entries", n, "error", err)
	}
	return err
}

// stop ends the goroutine.
func (s *saver) stop() {
	s.mu.Lock()
	if !s.stopped {
		s.stopped = true
		s.hurry()
		close(s.quit)
	}
	s.mu.Unlock()
	s.ended.Wait()
}

// abandon ends without saving what is left, and returns how much that is.
func (s *saver) abandon() int {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	left := len(s.waiting)
	s.lost, s.waiting, s.done = true, nil, s.added
	s.broadcast()
	return left
}
