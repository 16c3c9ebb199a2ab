package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// A kernel that is culled saves its variables first, where its language can (images.Language.Save), in a file of the workspace. The
// next kernel loads them before its first cell, which is told what came back. So it does when the session gets another image, and
// when the server stops its kernels. A session that is closed, or restarted, wants none of them.

const (
	// savingTime is how long a kernel may take to save its variables, and the next one to load them.
	savingTime = time.Minute
	// lastSavingTime is that for a session that ends, perhaps with the server.
	lastSavingTime = 5 * time.Second
)

// Why a kernel is no more ends so if its variables are saved. By it a server that comes later knows that they are.
const (
	itsVariables   = "; its variables"
	wereSaved      = " were saved"
	variablesSaved = itsVariables + wereSaved
)

var hasSaved = regexp.MustCompile(itsVariables + `( after cell \d+)?` + wereSaved + `\.?$`)

// Saved tells that the session has no kernel, and that the next one has the variables of the last.
func (i Info) Saved() bool { return HasVariablesSaved(i.Lost) }

// HasVariablesSaved tells whether why a generation ended says that its variables are saved, the last or earlier ones.
func HasVariablesSaved(why string) bool { return hasSaved.MatchString(why) }

// beforeSaved adds to why a kernel is no more, before what that says of its variables.
func beforeSaved(why, more string) string {
	at := len(why)
	if end := hasSaved.FindStringIndex(why); end != nil {
		at = end[0]
	}
	return why[:at] + more + why[at:]
}

// cameBack is what a kernel says of the variables that it has loaded. It is not to be trusted.
type cameBack struct {
	Back int      `json:"back"`
	Left []string `json:"left"`
	More int      `json:"more"`
	Why  string   `json:"why"`
	// Never is what in the language never comes back.
	Never string `json:"never"`
	// after is the cell after which they were saved, where others have run since; 0: none has. succeeded tells that one of those has.
	after     int
	succeeded bool
}

// saveVariables has the kernel save its variables before it is culled, and tells whether it did. Whoever wants something of the session
// meanwhile comes first: then the kernel goes on as it was. A session that ends meanwhile says itself what becomes of its kernel.
func (s *session) saveVariables() (saved, wanted bool) {
	ctx, cancel := context.WithTimeout(s.ctx, savingTime)
	defer cancel()
	running := s.beginSaving(ctx)
	if running == nil {
		return false, s.ctx.Err() != nil
	}
	select {
	case <-running.Done():
		return s.wasSaved(running.Result()), false
	case <-s.wake:
		s.stopSilent(running)
		s.removeUnwanted()
		return false, true
	case o := <-s.orders:
		s.stopSilent(running)
		s.removeUnwanted()
		s.obey(o)
		return false, true
	case <-ctx.Done():
		if s.ctx.Err() != nil {
			s.saving = running
			return false, true
		}
		s.stopSilent(running)
		s.notSaved("it took longer than " + words.Length(savingTime))
		return false, false
	}
}

// saveAtLast is saveVariables for a session that has ended, perhaps while they were being saved, and tells with why it did what became
// of them.
func (s *session) saveAtLast(why *ending) *ending {
	if s.kernel == nil || !why.saves {
		return why
	}
	told := *why
	told.cause = s.withVariables(why.cause, s.awaitSaved())
	return &told
}

// awaitSaved has the kernel of a session that has ended save its variables, and tells whether it did.
func (s *session) awaitSaved() bool {
	ctx, cancel := context.WithTimeout(context.Background(), lastSavingTime)
	defer cancel()
	running := s.saving
	if running == nil {
		running = s.beginSaving(ctx)
	}
	if running == nil {
		return false
	}
	select {
	case <-running.Done():
		return s.wasSaved(running.Result())
	case <-ctx.Done():
		s.notSaved("it took longer than " + words.Length(lastSavingTime))
		return false
	}
}

// beginSaving has the kernel save its variables. It returns nil where they cannot be saved, or nobody wants that.
func (s *session) beginSaving(ctx context.Context) cell {
	cfg := s.manager.cfg
	if !cfg.SavesVariables(s.choice.Language) || !s.kernel.used || s.kernelGone() {
		return nil
	}
	if s.kernel.busy {
		s.notSaved("a cell was running")
		return nil
	}
	running, err := s.evaluate(ctx, s.savingExpression(cfg.Runtimes[s.choice.Language].Save), s.addToLast)
	if err != nil {
		s.notSaved(err.Error())
		return nil
	}
	return running
}

// wasSaved reads what a kernel answers that was to save its variables.
func (s *session) wasSaved(result kernels.Result) bool {
	var saved struct {
		Saved int `json:"saved"`
	}
	if err := readAnswer(result, &saved); err != nil {
		s.notSaved(err.Error())
		return false
	}
	s.saved = saved.Saved > 0
	return s.saved
}

// notSaved remembers why the variables of a kernel that is stopped are not saved.
func (s *session) notSaved(why string) {
	s.unsaved = strings.TrimSuffix(clip(why, 200), ".")
	s.log.Warn("the variables of a kernel that is stopped were not saved") // why is its owner's, and may have his data in it
}

// withVariables goes on, after why a kernel is stopped, with what became of its variables.
func (s *session) withVariables(why string, saved bool) string {
	unsaved := s.unsaved
	s.unsaved = ""
	if saved {
		return why + variablesSaved
	}
	why = s.outlived(why)
	if unsaved != "" && !s.saved {
		return why + "; its variables were not saved: " + unsaved
	}
	return why
}

// loadVariables has a new kernel load what the last one has saved. What that did not come to the end with goes.
func (s *session) loadVariables() {
	if s.manager.cfg.SavesVariables(s.choice.Language) {
		s.removeFiles(images.UnfinishedFiles)
	}
	if !s.saved {
		return
	}
	s.saved = false
	after, last := s.savedBehind(), cmp.Or(s.checkpoints.cell, s.past.Executions)
	s.checkpoints = checkpoints{cell: cmp.Or(after, last)}
	s.kernel.used = true // by what it loads, of which there may be no other copy
	s.saveNow()
	ctx, cancel := context.WithTimeout(s.ctx, savingTime)
	defer cancel()
	back := s.load(ctx)
	if after < last {
		back.after = after
	}
	s.removeUnwanted()
	s.log.Info("saved variables were loaded", "back", back.Back, "all", back.Why == "")
	s.mu.Lock()
	defer s.mu.Unlock()
	back.succeeded = s.restorableAfter(after)
	s.back = &back
}

// load has the kernel load variables, and returns what it says.
func (s *session) load(ctx context.Context) (back cameBack) {
	unseen := func(kernels.Output) {} // what modules print that are imported with the variables
	running, err := s.evaluate(ctx, s.manager.cfg.Runtimes[s.choice.Language].Load, unseen)
	if err != nil {
		back.Why = err.Error()
		return back
	}
	select {
	case <-running.Done():
	case <-ctx.Done():
		if !s.stopSilent(running) {
			return cameBack{Why: "it took longer than " + words.Length(savingTime)}
		}
	}
	if err := readAnswer(running.Result(), &back); err != nil {
		return cameBack{Why: err.Error()}
	}
	return back
}

// expectSaved has the session's first kernel load what the last kernel of an earlier session of its id has saved, if there is such a file.
func (s *session) expectSaved() {
	if s.info().Generation == 0 || !s.manager.cfg.SavesVariables(s.choice.Language) {
		return
	}
	f, err := s.manager.workspaces.Open(s.key.workspace())
	if err != nil {
		return
	}
	defer f.Close()
	_, err = f.Stat(images.SavedFile)
	s.saved = err == nil
}

// forgetSaved removes the variables that are saved, which nobody wants.
func (s *session) forgetSaved() {
	if s.saved {
		s.saved = false
		s.mu.Lock()
		for i := range s.news {
			s.news[i] = hasSaved.ReplaceAllString(s.news[i], ".")
		}
		s.mu.Unlock()
	}
	if s.manager.cfg.SavesVariables(s.choice.Language) {
		s.removeSaved()
	}
}

// removeSaved removes the file, also one that a kernel had saved just when it was interrupted: a later session of the id would load it.
// A process that still writes one gives up when it does not find it.
func (s *session) removeSaved() {
	s.removeFiles(append(slices.Clone(images.UnfinishedFiles), images.SavedFile)) // that last: the others may still become it
}

// removeUnwanted removes it where nothing is kept for the case that a kernel dies that goes on.
func (s *session) removeUnwanted() {
	if s.manager.cfg.CheckpointAfter <= 0 {
		s.removeSaved()
	}
}

func (s *session) removeFiles(names []string) {
	f, err := s.manager.workspaces.Open(s.key.workspace())
	if err != nil {
		return // where this host has no way to it, the next that are saved take its place
	}
	defer f.Close()
	for _, name := range names {
		if _, err := f.Delete(name, false); err != nil && fault.KindOf(err) != fault.NotFound {
			s.log.Warn("saved variables were not removed", "error", err)
		}
	}
}

// instead is what a session has of its last kernel without running a cell again.
type instead struct {
	// text tells of it; empty where that is nothing.
	text string
	// after is the last cell whose variables these are.
	after int
}

// loadInstead starts the kernel of a session that has none, where its variables were saved, and returns what it tells of them. The caller's
// own cells are not told that once more.
func (m *Manager) loadInstead(ctx context.Context, o Owner, id string, opts RestoreOptions) (back instead, err error) {
	choice, err := m.Choice(ctx, o, id)
	if err != nil || !m.cfg.SavesVariables(choice.Language) || m.cfg.Profiles[choice.Profile].Once {
		return back, err
	}
	live, err := m.liveGeneration(ctx, o, id)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return back, err
	}
	if live == 0 {
		if _, err := m.Begin(ctx, o, Request{SessionID: id, Language: choice.Language, Caller: opts.Caller, Permit: opts.Permit}); err != nil {
			return back, err
		}
	}
	s, err := m.find(ctx, o, id)
	if err != nil {
		return back, err
	}
	back = s.loaded()
	if live == 0 && back.text != "" {
		s.knows(opts.Caller, s.latest())
	}
	return back, nil
}

// loaded tells what the session's kernel has loaded, in the words that its next cell is told if that is to come.
func (s *session) loaded() (back instead) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back == nil || s.back.Back == 0 {
		return back
	}
	if back.after = s.back.after; back.after == 0 {
		back.after = math.MaxInt
	}
	if len(s.news) > 0 {
		back.text = s.back.text(strings.Join(s.news[max(0, len(s.news)-maxNews):], "\n"), s.generation, false)
		return back
	}
	back.text = fmt.Sprintf("The kernel that runs, generation %d, began with the variables of the one before, which had saved them.", s.generation)
	if s.back.after > 0 {
		back.text = fmt.Sprintf("The kernel that runs, generation %d, began with the variables of the one before, saved after cell %d.", s.generation, back.after)
	}
	return back
}

// text goes on, after what happened to the kernels before, with what of the last one's variables is back in a generation, and what is not,
// and how the rest of it can be had.
func (b cameBack) text(happened string, generation int, how bool) string {
	switch {
	case HasVariablesSaved(happened):
	case b.after > 0:
		happened += fmt.Sprintf(" Its variables after cell %d were saved.", b.after)
	default:
		happened += " Its variables were saved."
	}
	why := strings.TrimSuffix(clip(b.Why, 300), ".")
	switch {
	case b.Back == 0:
		return fmt.Sprintf("%s They could not be loaded: %s.", happened, why)
	case why != "":
		happened = fmt.Sprintf("%s %s of them are back on a new kernel, generation %d, with files, until one could not be loaded: %s",
			happened, words.Thousands(int64(b.Back)), generation, why)
	default:
		happened = fmt.Sprintf("%s They are back on a new kernel, generation %d, and files are kept", happened, generation)
	}
	missing := "background work"
	if b.Never != "" {
		missing += " and " + clip(b.Never, 100)
	}
	if names := b.missing(); names != "" {
		missing = names + ", " + missing
	}
	if b.after > 0 {
		later := fmt.Sprintf("what was done after cell %d", b.after)
		if how && b.succeeded {
			later += " (restore_session runs that again)"
		}
		missing = later + ", " + missing
	}
	return fmt.Sprintf("%s. Not back: %s.", happened, missing)
}

// maxMissing is how many names of what is not back a cell is told.
const maxMissing = 20

// missing names what could not be saved, or not be loaded.
func (b cameBack) missing() string {
	names := b.Left[:min(len(b.Left), maxMissing)]
	for i, name := range names {
		names[i] = clip(name, 150)
	}
	text := strings.Join(names, ", ")
	if more := b.More + len(b.Left) - len(names); more > 0 {
		text += fmt.Sprintf(", %d more", more)
	}
	return text
}

// evaluate has the kernel evaluate an expression of its language's, silently, and puts what comes meanwhile somewhere.
func (s *session) evaluate(ctx context.Context, expression string, put func(kernels.Output)) (cell, error) {
	running, err := s.kernel.client.Execute(ctx, kernels.ExecuteRequest{Silent: true, UserExpressions: map[string]string{"v": expression}})
	if err == nil {
		s.manager.running.Go(func() { drain(s.ctx, running, put) })
	}
	return running, err
}

// stopSilent interrupts a kernel that evaluates an expression. Should that not help, the next cell waits in the kernel, until it is
// interrupted by its own time.
func (s *session) stopSilent(running cell) (ended bool) {
	ctx, cancel := context.WithTimeout(s.ctx, s.manager.cfg.Grace)
	defer cancel()
	if err := s.kernel.client.Interrupt(ctx); err != nil {
		s.log.Warn("the kernel was not interrupted", "error", err)
	}
	select {
	case <-running.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// readAnswer reads what an expression of the kernel's language gave, within bounds.
func readAnswer(result kernels.Result, into any) error {
	var answers map[string]struct {
		Status string                     `json:"status"`
		EName  string                     `json:"ename"`
		EValue string                     `json:"evalue"`
		Data   map[string]json.RawMessage `json:"data"`
	}
	switch {
	case result.Status == kernels.StatusDied && result.Death != nil:
		return errors.New(result.Death.Cause)
	case result.Status != kernels.StatusOK:
		return fmt.Errorf("the request ended with status %s", result.Status)
	case len(result.UserExpressions) > maxDescription:
		return errors.New("the answer is too long")
	case json.Unmarshal(result.UserExpressions, &answers) != nil:
		return errors.New("the answer cannot be read")
	}
	answer := answers["v"]
	if answer.Status != "ok" {
		return errors.New(cmp.Or(strings.TrimSpace(answer.EName+" "+answer.EValue), "the kernel gave no answer")) // as one that is older than the question
	}
	var text string
	if json.Unmarshal(answer.Data[images.VariablesType], &text) != nil || json.Unmarshal([]byte(text), into) != nil {
		return errors.New("the answer cannot be read")
	}
	return nil
}
