package sessions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cellblock/internal/words"
	"cellblock/kernels"
)

// restartedBy is why a kernel was replaced that a caller wanted to be.
func restartedBy(caller string) string {
	if caller == Person {
		return Person + " restarted the kernel"
	}
	return "the kernel was restarted on request"
}

const clock = "2006-01-02 15:04:05 MST"

// lose takes the kernel from the session because it died, and remembers what the next cell must be told. The caller
// disposes of the kernel.
func (s *session) lose(death kernels.Death) *kernel {
	at := death.Time
	if at.IsZero() {
		at = time.Now()
	}
	s.addLoss(death.Cause, at)
	s.lost(Died)
	s.log.Warn("kernel died", "cause", death.Cause, "generation", s.info().Generation)
	dead := s.kernel
	s.kernel = nil
	return dead
}

// kernelDied is lose and dispose, for a kernel that ran nothing.
func (s *session) kernelDied(death kernels.Death) {
	s.dispose(s.lose(s.explain(death)))
}

// dispose stops what is left of a kernel that died.
func (s *session) dispose(dead *kernel) {
	if err := dead.dispose(0); err != nil {
		s.log.Error("what a dead kernel left could not be stopped", "error", err)
	}
}

// explain adds what the session knows to a death's cause, and what it has of the variables.
func (s *session) explain(death kernels.Death) kernels.Death {
	if limit := s.profile().Limits.Memory; death.OOM && limit > 0 {
		death.Cause = fmt.Sprintf("the kernel ran out of memory (limit %s) and was killed", words.Bytes(limit))
	}
	death.Cause = s.outlived(death.Cause)
	return death
}

// addLoss notes that a generation's kernel is no more, and returns what the next cell is told of that. It must be called while that
// generation still counts.
func (s *session) addLoss(cause string, at time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sentence := lossSentence(s.key.id, s.generation, cause, at)
	s.news = append(s.news, sentence)
	s.loss, s.back = cause, nil
	s.save(GenerationEnded{Number: s.generation, Ended: at, Why: cause})
	return sentence
}

// lossTime bounds how long a session that has lost its kernel looks as before to those who list it, while the store does not
// answer.
const lossTime = time.Second

// lost takes the session into a state without a kernel, once it is in the store that the kernel ended: what has been seen in
// a list is so after a restart of the server, too.
func (s *session) lost(to State) {
	s.committed()
	if to == Culled {
		s.manager.culls.Add(1)
	} else {
		s.manager.deaths.Add(1)
	}
	s.transition(to)
}

// committed waits a moment until what happened is in the store. Where it is not, that is said elsewhere.
func (s *session) committed() {
	if s.saver != nil {
		_ = s.saver.flush(context.Background(), lossTime)
	}
}

// lossSentence tells that a kernel of a session is no more.
func lossSentence(id string, generation int, cause string, at time.Time) string {
	return fmt.Sprintf("The kernel of session %q (generation %d) ended at %s: %s.",
		id, generation, at.UTC().Format(clock), strings.TrimSuffix(cause, "."))
}

// welcomeBack notes, for the first kernel of a session, that there was an earlier session of the same id: one that has run
// cells. Files may be there without one.
func (s *session) welcomeBack(filesThere, ran bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation > s.past.Generations+1 {
		return
	}
	if filesThere && ran && len(s.news) == 0 {
		s.news = append(s.news, fmt.Sprintf("An earlier session %q has ended.", s.key.id))
	}
	s.filesThere = filesThere
}

// known is a piece of news that a caller's cells are not told: its call has told it.
type known struct{ sentence, caller string }

// knows notes that a caller was told of one piece of news. What else there is the next cell is told all the same.
func (s *session) knows(caller, sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known{sentence, caller}
}

// latest is the last piece of news.
func (s *session) latest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.news) == 0 {
		return ""
	}
	return s.news[len(s.news)-1]
}

// inherit takes over the age of the session before, what no cell of it was told of its lost kernels, and who worked in it. It returns what is told of
// that session's own end, empty where it never had a kernel.
func (s *session) inherit(before *session) (parting string) {
	before.mu.Lock()
	untold, seen, created := slices.Clone(before.news), before.visits.clone(), before.created
	before.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.news) > 0 {
		parting = s.news[len(s.news)-1]
	}
	s.news, s.visits, s.created = append(untold, s.news...), seen, created
	return parting
}

// maxNews is of how many lost kernels a cell is told, the last ones.
const maxNews = 3

// takeNews returns the generation that runs now and what a cell that begins must be told, once: that its kernel is another,
// that a person ran cells before it. A cell that is run again does not tell how that is done.
func (s *session) takeNews(e *Execution) (generation int, preamble string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visits.note(e.number, e.caller)
	s.told = s.visits.hear(e.caller, s.news)
	if s.known.caller == e.caller {
		s.told = slices.DeleteFunc(slices.Clone(s.told), func(one string) bool { return one == s.known.sentence })
	}
	s.news = nil
	lost := ""
	if len(s.told) > 0 {
		lost = s.lossText(e.restores > 0)
	}
	return s.generation, joinSentences(lost, s.takeOverfull(), s.visits.visited(e))
}

// lossText says what the cell that begins is told of kernels that are no more. s.mu is held.
func (s *session) lossText(restores bool) string {
	lines := s.told[max(0, len(s.told)-maxNews):]
	kept := "files in the workspace are kept, as is the history of cells"
	if s.generation == s.past.Generations+1 && !s.filesThere {
		kept = "the workspace is empty"
	}
	happened := strings.Join(lines, "\n")
	if s.back != nil {
		if happened = s.back.text(happened, s.generation, !restores); s.back.Back > 0 {
			return happened
		}
	}
	if restores {
		return fmt.Sprintf("%s What it had in memory was lost with it; %s. Its earlier cells are run again on a new kernel, generation %d.",
			happened, kept, s.generation)
	}
	if redone, p := s.redo.redone(s.generation); len(redone) > 0 {
		which, then := "its earlier cells", ""
		if p.Done < p.Of {
			which = fmt.Sprintf("%d of %d earlier cells", p.Done, p.Of)
			then = ": define again what else you need, or let restore_session run the rest"
		}
		return fmt.Sprintf("%s What it had in memory was lost with it; %s. A person has run %s again since, as %s, on a new kernel, generation %d%s.",
			happened, kept, which, cellsText(redone), s.generation, then)
	}
	again := "define again what you need"
	if s.restorable() {
		again += ", or let restore_session run the earlier cells again"
	}
	return fmt.Sprintf("%s All variables, imports and background work are lost; %s. This cell ran on a new kernel, generation %d: %s.",
		happened, kept, s.generation, again)
}

// joinSentences joins texts that are not empty.
func joinSentences(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), " ")
}
