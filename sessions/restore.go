package sessions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// RestoreOptions say what of a session is run again.
type RestoreOptions struct {
	// Generation is the first lost one whose cells are run again; 0: the last one that has any, and those whose variables it began with.
	Generation int
	// Timeout bounds all cells together; 0 means the default of one cell.
	Timeout time.Duration
	// Caller says who asks, and Permit what he may; see Request.
	Caller string
	Permit func(profile string) error
	// Leave, when it ends, keeps further cells from being sent, and leaves the one that runs to its end, for which nobody waits; its
	// cause is why. Nil: it never ends.
	Leave context.Context
	// Began is told each cell that was sent; nil: nobody is.
	Began func(*Execution)
}

// RestoreReport says what became of a restoration.
type RestoreReport struct {
	// Generation is the kernel's that the cells ran on; From and To are the first and the last whose cells they were.
	Generation, From, To int
	// Cells are those that were run or skipped, in order, Left is how many were not reached, and Done how many had been run
	// again before.
	Cells      []RestoredCell
	Left, Done int
	// Missing is how many cells are not kept any more that may have been among these.
	Missing int
	// Absent is the name that the cell misses which failed, where SetBy is the number of the last cell before it that gives it a
	// meaning and is not among these, because it did not succeed itself.
	Absent string
	SetBy  int
	// Stopped is why it ended before the last cell; empty when it did not.
	Stopped string
	// Earlier is the last lost generation before From that has cells which are not among these; 0 if there is none.
	Earlier int
	// Preamble is the first cell's.
	Preamble string
	// Loaded tells of the lost kernel's variables, where it had saved them and the new one has loaded them: then only cells were run that
	// came later. What else is not back, a restoration of that generation by its number runs again.
	Loaded   string
	Duration time.Duration
}

// Ran counts the cells that have run again, and succeeded.
func (r RestoreReport) Ran() (n int) {
	for _, c := range r.Cells {
		if c.Skipped == "" && c.Result.Status == kernels.StatusOK {
			n++
		}
	}
	return n
}

// RestoredCell is one cell of a restoration.
type RestoredCell struct {
	// Original is the number of the cell that was run again, Number that of its new run, 0 if there was none.
	Original, Number int
	// Title is the cell's: see ExecutionInfo.
	Title  string
	Result Result
	// Skipped is why the cell was passed over; empty when it was not.
	Skipped string
}

// RestoreProgress is how far a restoration is: Done cells of Of have run again, or were skipped.
type RestoreProgress struct{ Done, Of int }

// Restoring tells whether a session is being restored, and how far that is. Changed tells when to ask again.
func (m *Manager) Restoring(o Owner, id string) (p RestoreProgress, running bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, running = m.restoring[key{o, id}]
	return p, running
}

// restored notes how far a restoration is.
func (m *Manager) restored(k key, p RestoreProgress) {
	m.mu.Lock()
	m.restoring[k] = p
	m.mu.Unlock()
	m.watchers.tell(k)
}

// maxRestored bounds the cells of one restoration.
const maxRestored = 1000

// readsInput is why a cell is skipped.
const readsInput = "it reads input()"

// Choice is what a session is made of, whether it runs or not; NotFound if there is no such session.
func (m *Manager) Choice(ctx context.Context, o Owner, id string) (Choice, error) {
	s, err := m.find(ctx, o, id)
	if err == nil {
		return s.choice, nil
	}
	if stored, storeErr := m.stored(ctx, o, id); storeErr == nil {
		return stored.choice(), nil
	}
	return Choice{}, err
}

// RestoreSession runs the successful cells of a session's lost kernels again, in their order, on the kernel that it has
// now, or gets. It stops at the first that fails, when the time is over, when ctx ends, which cancels the cell that runs, and when
// opts.Leave does, which leaves it; cells that read input are skipped. What it runs are cells of the session like others: those of other callers may come between, and the history
// tells which cell each of them repeats. The error is Conflict while the generation lives that is to be restored, and while
// another call restores the session, NotFound when there is nothing to run again.
func (m *Manager) RestoreSession(ctx context.Context, o Owner, id string, opts RestoreOptions) (RestoreReport, error) {
	choice, err := m.Choice(ctx, o, id)
	if err != nil {
		return RestoreReport{}, err
	}
	total, err := m.cfg.Profiles[choice.Profile].timeout(opts.Timeout)
	if err != nil {
		return RestoreReport{}, err
	}
	done, err := m.restoreAlone(key{o, id})
	if err != nil {
		return RestoreReport{}, err
	}
	defer done()
	cells, failed, report, err := m.lost(ctx, o, id, opts.Generation)
	if err != nil {
		return report, err
	}
	if opts.Generation == 0 {
		back, err := m.loadInstead(ctx, o, id, opts)
		if err != nil {
			return report, err
		}
		report.Loaded = back.text
		cells = slices.DeleteFunc(cells, func(c ExecutionInfo) bool { return back.text != "" && c.Number <= back.after })
	}
	report.To = report.From
	if n := len(cells); n > 0 {
		report.To = cells[n-1].Generation
	}
	if opts.Leave == nil {
		opts.Leave = context.Background()
	}
	began := time.Now()
	timeUp := fmt.Sprintf("the time of %s for all cells was over", words.Length(total))
	ctx, cancel := context.WithTimeoutCause(ctx, total, fault.New(fault.Timeout, "%s", timeUp))
	defer cancel()
	r := restoration{
		m: m, owner: o, id: id, language: choice.Language, opts: opts, deadline: began.Add(total), timeUp: timeUp, report: report,
		progress: RestoreProgress{Done: report.Done, Of: report.Done + len(cells)},
	}
	for i, c := range cells {
		m.restored(key{o, id}, RestoreProgress{i, len(cells)})
		if r.report.Stopped = r.next(ctx, c); r.report.Stopped != "" {
			break
		}
	}
	r.report.whoSetWhatIsMissing(failed)
	r.report.Left = len(cells) - len(r.report.Cells)
	r.report.Duration = time.Since(began)
	return r.report, nil
}

// restoreAlone keeps other calls from restoring a session until the returned function is called: two would run each cell twice.
func (m *Manager) restoreAlone(k key) (done func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, others := m.restoring[k]; others {
		return nil, fault.New(fault.Conflict, "session %q is being restored by another call", k.id).
			WithHint("list_executions shows how far that is; when it has ended, restore_session runs what is left, if anything is")
	}
	m.restoring[k] = RestoreProgress{}
	return func() {
		m.mu.Lock()
		delete(m.restoring, k)
		m.mu.Unlock()
		m.watchers.tell(k)
	}, nil
}

// lost returns the cells that are to be run again, oldest first, those that did not succeed, and a report that says of which
// generations they are.
func (m *Manager) lost(ctx context.Context, o Owner, id string, from int) (cells, failed []ExecutionInfo, report RestoreReport, err error) {
	live, err := m.liveGeneration(ctx, o, id)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, nil, RestoreReport{}, err
	}
	infos, err := m.Executions(ctx, o, id, maxRestored)
	if err != nil {
		return nil, nil, RestoreReport{}, err
	}
	if live > 0 && from >= live {
		return nil, nil, RestoreReport{}, fault.New(fault.Conflict, "generation %d of session %q lives: nothing of it is lost", live, id).
			WithHint("only generations before it can be restored")
	}
	report = RestoreReport{From: from}
	done := map[int]bool{} // originals that the kernel which lives has run again
	var good []ExecutionInfo
	for _, i := range infos {
		switch {
		case i.Phase != PhaseEnded || i.Err != nil:
		case i.Result.Status != kernels.StatusOK:
			failed = append(failed, i)
		case i.Generation == live:
			done[i.Restores] = true
		default:
			good = append(good, i)
			if from == 0 {
				report.From = max(report.From, i.Generation)
			}
		}
	}
	if len(good) == 0 || report.From > good[len(good)-1].Generation {
		return nil, nil, report, nothingLost(id, live)
	}
	if from == 0 {
		report.From, err = m.beganEmpty(ctx, o, id, report.From)
		if err != nil {
			return nil, nil, report, err
		}
	}
	seen := map[int]bool{}
	for _, i := range good {
		original := i.original()
		switch {
		case i.Generation < report.From:
			continue
		case done[original]:
			report.Done++
		case !seen[original]:
			cells = append(cells, i)
		}
		seen[original] = true
	}
	for _, i := range good {
		if i.Generation < report.From && !seen[i.original()] {
			report.Earlier = i.Generation
		}
	}
	report.Missing = missingFrom(infos, report.From)
	return cells, failed, report, nil
}

// beganEmpty is the last generation up to this one that did not begin with the variables of another.
func (m *Manager) beganEmpty(ctx context.Context, o Owner, id string, generation int) (int, error) {
	if m.cfg.Store == nil {
		return generation, nil
	}
	past, err := m.stored(ctx, o, id)
	if fault.KindOf(err) == fault.NotFound {
		return generation, nil
	}
	if err != nil {
		return 0, err
	}
	all, err := m.cfg.Store.Generations(ctx, past.Ref)
	if err != nil {
		return 0, err
	}
	saved := map[int]bool{}
	for _, g := range all {
		saved[g.Number] = HasVariablesSaved(g.Why)
	}
	for saved[generation-1] {
		generation--
	}
	return generation, nil
}

// missingFrom counts the cells that are not among a session's last ones, and may have run in a generation or after it.
func missingFrom(infos []ExecutionInfo, generation int) (missing int) {
	last := 0
	for _, i := range infos {
		missing += i.Number - last - 1
		if last = i.Number; i.Generation > 0 && i.Generation < generation {
			missing = 0
		}
	}
	return missing
}

func nothingLost(id string, live int) error {
	if live > 0 {
		return fault.New(fault.Conflict, "session %q has nothing to run again: its kernel, generation %d, lives, and none before it has run a cell "+
			"successfully", id, live)
	}
	return fault.New(fault.NotFound, "session %q has no cell that ran successfully", id)
}

// original is the number of the cell that this one repeats, or its own.
func (i ExecutionInfo) original() int {
	if i.Restores > 0 {
		return i.Restores
	}
	return i.Number
}

// liveGeneration is that of the session's kernel, 0 when it has none now.
func (m *Manager) liveGeneration(ctx context.Context, o Owner, id string) (int, error) {
	s, err := m.find(ctx, o, id)
	if err != nil {
		return 0, err
	}
	switch info := s.info(); info.State {
	case Died, Culled, Closed:
		return 0, nil
	default:
		return info.Generation, nil
	}
}

// restoration is a restoration on its way.
type restoration struct {
	m        *Manager
	owner    Owner
	id       string
	language string
	opts     RestoreOptions
	deadline time.Time
	timeUp   string
	report   RestoreReport
	progress RestoreProgress // of all cells, those that were run again before are Done too
}

// next runs or skips one cell, and says why no other is to come.
func (r *restoration) next(ctx context.Context, c ExecutionInfo) (stop string) {
	done := RestoredCell{Original: c.original(), Title: c.Title()}
	if r.m.asked(ctx, r.owner, r.id, c.Number) {
		done.Skipped = readsInput
		r.report.Cells = append(r.report.Cells, done)
		return ""
	}
	left := time.Until(r.deadline)
	if ctx.Err() != nil {
		return context.Cause(ctx).Error()
	}
	if r.opts.Leave.Err() != nil {
		return context.Cause(r.opts.Leave).Error()
	}
	if left <= 0 {
		return r.timeUp
	}
	e, err := r.m.Execute(ctx, r.owner, Request{
		SessionID: r.id, Language: r.language, Code: c.Code, File: c.File, Args: c.Args, Timeout: left, Caller: r.opts.Caller, Permit: r.opts.Permit, restores: done.Original,
		restored: RestoreProgress{Done: r.progress.Done + 1, Of: r.progress.Of},
	})
	if err != nil {
		return err.Error()
	}
	if r.opts.Began != nil {
		r.opts.Began(e)
	}
	giveUp := context.AfterFunc(ctx, e.Cancel)
	done.Number = e.Number()
	done.Result, err = e.Wait(r.opts.Leave)
	giveUp()
	return r.took(ctx, e, done, err)
}

// took notes what became of a cell, and says why no other is to come.
func (r *restoration) took(ctx context.Context, e *Execution, done RestoredCell, err error) (stop string) {
	first := r.report.Generation == 0
	if err == nil && done.Result.Status == kernels.StatusOK {
		r.progress.Done++
	}
	switch {
	case done.Result.TimedOut:
		stop = r.timeUp
	case ctx.Err() != nil && (err != nil || done.Result.Status != kernels.StatusOK):
		stop = context.Cause(ctx).Error()
	case err != nil:
		stop = err.Error()
	case done.Result.Status == kernels.StatusDied && done.Result.Death != nil:
		stop = done.Result.Death.Cause
	case done.Result.Status != kernels.StatusOK && e.asks():
		done.Skipped = readsInput
	case done.Result.Status != kernels.StatusOK:
		stop = "the cell failed"
		if failed := done.Result.Error; failed != nil {
			stop = strings.TrimSuffix(fmt.Sprintf("the cell failed: %s: %s", failed.Name, clip(failed.Value, 200)), ": ")
		}
	case !first && e.Generation() != r.report.Generation:
		stop = fmt.Sprintf("the kernel of generation %d is lost", r.report.Generation)
	}
	if first {
		r.report.Generation, r.report.Preamble = e.Generation(), e.Preamble()
	}
	r.report.Cells = append(r.report.Cells, done)
	return stop
}

// asked tells whether a cell of the session's history asked for input.
func (m *Manager) asked(ctx context.Context, o Owner, id string, number int) bool {
	e, err := m.Execution(ctx, o, id, number)
	return err == nil && e.asks()
}

// asks tells whether the cell has asked for input so far.
func (e *Execution) asks() bool {
	for out := range e.SoFar(0) {
		if out.Kind == kernels.OutputInput {
			return true
		}
	}
	return false
}
