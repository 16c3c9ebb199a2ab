package sessions

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"cellblock/images"
)

// A kernel that dies saves nothing, and may take the work of hours with it. So where its cells have run for long enough, its variables
// are saved while it goes on (images.Language.Checkpoint). The kernel that comes after its death loads them, as it does after a cull,
// and restore_session runs only the cells that came later.

// checkpoints are those of a session's kernel. Only the runner uses them.
type checkpoints struct {
	// owed is how long cells have run since the last, took how long the kernel knows an earlier one to have taken.
	owed, took time.Duration
	// cell is the last that has run on the kernel, or on one before whose variables it has.
	cell int
}

const (
	// restBeforeCheckpoint is how long a session rests before: whoever has its next cell ready gets it run first.
	restBeforeCheckpoint = time.Second
	// checkpointShare is how much longer than a checkpoint takes cells must have run.
	checkpointShare = 20
	// checkpointTime is how long a kernel may take to begin one.
	checkpointTime = 10 * time.Second
)

// ran notes that a cell has run, after which there is more to save.
func (c *checkpoints) ran(e *Execution) {
	_, started := e.Phase()
	c.cell = e.number
	c.owed += elapsed(started)
}

// due tells whether cells have run for long enough.
func (c *checkpoints) due(after time.Duration) bool {
	return after > 0 && c.owed >= max(after, checkpointShare*c.took)
}

// checkpointTimer fires when the kernel is to save its variables while it goes on; it is nil if that is not due.
func (s *session) checkpointTimer() <-chan time.Time {
	if !s.checkpoints.due(s.manager.cfg.CheckpointAfter) || !s.savesAside() {
		return nil
	}
	return time.After(restBeforeCheckpoint)
}

// savesAside tells whether the kernel that rests can save its variables while it goes on, where the next one finds them.
func (s *session) savesAside() bool {
	cfg := s.manager.cfg
	return cfg.SavesVariables(s.choice.Language) && cfg.Runtimes[s.choice.Language].Checkpoint != "" && !s.profile().Once &&
		s.kernel != nil && s.kernel.used && !s.kernel.busy && !s.manager.workspaces.Away(s.ctx)
}

// checkpoint has the kernel begin to save its variables. What becomes of that, the file tells.
func (s *session) checkpoint() {
	s.checkpoints.owed = 0
	ctx, cancel := context.WithTimeout(s.ctx, checkpointTime)
	defer cancel()
	running, err := s.evaluate(ctx, s.savingExpression(s.manager.cfg.Runtimes[s.choice.Language].Checkpoint), s.addToLast)
	if err != nil {
		return // the kernel is gone, or goes
	}
	select {
	case <-running.Done():
	case <-ctx.Done():
		s.stopSilent(running)
		return
	}
	var began struct {
		Took float64 `json:"took"`
	}
	if err := readAnswer(running.Result(), &began); err != nil {
		s.log.Warn("a kernel could not begin to save its variables") // why is its owner's, and may have his data in it
		return
	}
	s.checkpoints.took = time.Duration(min(max(began.Took, 0), savingTime.Seconds()) * float64(time.Second))
}

// savingExpression is an expression that saves variables, for the session as it is.
func (s *session) savingExpression(expression string) string {
	most := int64(math.MaxInt64)
	if limit := s.manager.cfg.WorkspaceBytes; limit > 0 {
		most = max(0, limit-s.gauge.size) / 2 // the rest is for who works there
	}
	return strings.NewReplacer("{cell}", strconv.Itoa(s.checkpoints.cell), "{most}", strconv.FormatInt(most, 10)).Replace(expression)
}

// outlived goes on, after why a kernel is no more, with what it had saved before, if that can be had. The next kernel loads it.
func (s *session) outlived(why string) string {
	if s.saved || !s.manager.cfg.SavesVariables(s.choice.Language) {
		return why
	}
	cell := s.savedBehind()
	if cell == 0 {
		return why
	}
	s.saved = true
	return fmt.Sprintf("%s%s after cell %d%s", strings.TrimSuffix(why, "."), itsVariables, cell, wereSaved)
}

// savedBehind is the number of the cell behind which that was saved which the workspace has; 0 where that is nothing, or not known.
func (s *session) savedBehind() (cell int) {
	f, err := s.manager.workspaces.Open(s.key.workspace())
	if err != nil {
		return 0
	}
	defer f.Close()
	file, _, err := f.OpenFile(images.SavedFile)
	if err != nil {
		return 0
	}
	defer file.Close()
	line, err := bufio.NewReader(io.LimitReader(file, maxHead)).ReadBytes('\n')
	var head struct {
		Cell int `json:"cell"`
	}
	if err != nil || json.Unmarshal(line, &head) != nil {
		return 0
	}
	return max(0, head.Cell)
}

// maxHead bounds the first line of what is saved, in bytes. User code can write there.
const maxHead = 1 << 10
