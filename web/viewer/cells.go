package viewer

import (
	"hash/fnv"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// blockCells is how many cells a page gets at once. A page keeps a few blocks, and the height of the others.
const blockCells = 50

// cellsRoutes are the addresses of the session page's cells.
func (v *Viewer) cellsRoutes() []route {
	return []route{
		{pattern: "GET /s/{id}/cells", scope: mcpserver.ScopeRead, handle: v.cellsBlock},
		{pattern: "GET /s/{id}/find", scope: mcpserver.ScopeRead, handle: v.find},
		{pattern: "GET /s/{id}/cells/{number}", scope: mcpserver.ScopeRead, handle: v.cellAlone},
		{pattern: "GET /s/{id}/cells/{number}/text", scope: mcpserver.ScopeRead, handle: v.cellText},
		{pattern: "GET /s/{id}/cells/{number}/items/{key}", scope: mcpserver.ScopeRead, handle: v.wholeItem},
		{pattern: "GET /s/{id}/cells/{number}/outputs/{index}", scope: mcpserver.ScopeRead, handle: v.rawOutput},
		{pattern: "GET /s/{id}/cells/{number}/outputs/{index}/frame", scope: mcpserver.ScopeRead, handle: v.frameOutput},
	}
}

// cellsView is what templates/parts/cells.html shows: blocks of cells, of which the last is filled.
type cellsView struct {
	// Total is how many cells the session has had, After the cursor from which on the page hears of them.
	Total int
	After string
	// First is the number of the first cell that is kept, Dropped how many came before it.
	First, Dropped int
	Blocks         []cellBlock
}

// cellBlock is the cells with numbers of From to To.
type cellBlock struct {
	From, To int
	// Filled tells that Cells are there.
	Filled bool
	Cells  []cellView
}

// cellView is one cell.
type cellView struct {
	Number, Generation int
	// NewKernel tells that it ran on another kernel than the cell before, Why what ended that one, and Back, while it runs, what of its
	// variables is back.
	NewKernel bool
	Why, Back string

	Code template.HTML
	// Script says which script the code runs, and is shown in its place; empty for a cell of its own.
	Script string
	Lines  int
	// Status is a word for a class, Label what people read.
	Status, Label string
	Caller        string
	Restores      int
	Started       time.Time
	Took          string
	// Failure says why the cell never ran, did not end, or what went wrong in it; Hint what to do.
	Failure, Hint string
	// Again tells that the cell never ran though nobody took it back, and can be run now.
	Again bool
	Items []itemView
	// Unread says, where not all of its outputs were read, so, and where all text is.
	Unread template.HTML
	// Crowded tells that the other cells of its block have left no room for all of its outputs: it has it when it is asked for alone.
	Crowded bool
}

// Saved tells that the variables of the kernel before were saved.
func (c cellView) Saved() bool { return sessions.HasVariablesSaved(c.Why) }

// cellsPart is what templates/parts/cells.html shows.
func (v *Viewer) cellsPart(r *http.Request, who visit, s sessionView) (any, error) {
	view := cellsView{Total: s.Executions, After: strconv.Itoa(s.Executions + 1)}
	first, err := v.Sessions.FirstExecution(r.Context(), who.owner, s.ID)
	if err != nil {
		return nil, err
	}
	view.First = max(1, first)
	view.Dropped = view.First - 1
	if first == 0 {
		view.First, view.Dropped = s.Executions+1, s.Executions
	}
	for from := view.Dropped/blockCells*blockCells + 1; from <= s.Executions && first > 0; from += blockCells {
		view.Blocks = append(view.Blocks, cellBlock{From: from, To: min(from+blockCells-1, s.Executions)})
	}
	for i := len(view.Blocks) - 1; i >= max(0, len(view.Blocks)-2); i-- {
		b := &view.Blocks[i]
		if i < len(view.Blocks)-1 && view.Blocks[i+1].To-view.Blocks[i+1].From > 10 {
			break // the last fills a screen
		}
		if b.Cells, err = v.cellViews(r.Context(), who.owner, s.ID, b.From, b.To); err != nil {
			return nil, err
		}
		b.Filled = true
		for _, c := range b.Cells {
			if c.Status == string(sessions.PhaseRunning) || c.Status == string(sessions.PhaseQueued) {
				view.After = strconv.Itoa(min(c.Number, atoi(view.After)))
			}
		}
	}
	return view, nil
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text) // what is no number is 0
	return n
}

// cellsBlock answers with the cells of a block.
func (v *Viewer) cellsBlock(w http.ResponseWriter, r *http.Request, who visit) error {
	from := atoi(r.URL.Query().Get("from"))
	to := atoi(r.URL.Query().Get("to"))
	if from < 1 || to < from || to-from >= 2*blockCells {
		return fault.New(fault.Invalid, "from and to are to be numbers of cells, at most %d of them", 2*blockCells)
	}
	return v.answerCells(w, r, who, from, to)
}

// cellAlone answers with one cell, as a block has it.
func (v *Viewer) cellAlone(w http.ResponseWriter, r *http.Request, who visit) error {
	n := atoi(r.PathValue("number"))
	return v.answerCells(w, r, who, n, n)
}

func (v *Viewer) answerCells(w http.ResponseWriter, r *http.Request, who visit, from, to int) error {
	cells, err := v.cellViews(r.Context(), who.owner, r.PathValue("id"), from, to)
	if err != nil {
		return err
	}
	html, err := partial("cell-list", cells)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]string{"html": html})
}

// Version is another one whenever the cell looks other than before, with or without the tags around it.
func (c cellView) Version() string {
	sum := fnv.New64a()
	for _, text := range []string{c.Status, c.Took, c.Failure} {
		_, _ = sum.Write([]byte(text + "\x00")) // it never fails
	}
	for _, it := range c.Items {
		_, _ = sum.Write([]byte(it.Key + "\x00" + string(it.HTML)))
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}

// Who is who ran the cell.
func (c cellView) Who() string { return whoRan(c.Caller) }

// Others tells that no person has sent the cell.
func (c cellView) Others() bool { return c.Caller != sessions.Person }

// newShown is what a cell shows that has not produced anything.
func (v *Viewer) newShown(id string, e *sessions.Execution, info sessions.ExecutionInfo) *shown {
	s := newShown(id, info)
	if v.ErrorHint != nil {
		s.hint = func(failed kernels.ExecError) string { return modelHintForPeople(v.ErrorHint(e.Choice(), failed)) }
	}
	if v.PrintedHint != nil {
		s.advice.find = func(texts []string, failed *kernels.ExecError) string {
			return modelHintForPeople(v.PrintedHint(e.Choice(), texts, failed))
		}
	}
	return s
}

func newShown(id string, info sessions.ExecutionInfo) *shown {
	s := &shown{session: id, number: info.Number, generation: info.Generation}
	s.renumber(info)
	return s
}

// renumber takes notice of the number that the kernel gave a cell, which is known when the cell has ended. Errors name it.
func (s *shown) renumber(info sessions.ExecutionInfo) {
	count := info.Result.ExecutionCount
	if count <= 0 || s.shift == info.Number-count {
		return
	}
	s.shift = info.Number - count
	for _, it := range s.items {
		it.changed = it.changed || it.out.Error != nil
	}
}

// viewOf is a cell without its outputs.
func viewOf(info sessions.ExecutionInfo) cellView {
	view := cellView{
		Number: info.Number, Generation: info.Generation, Caller: info.Caller, Restores: info.Restores, Started: info.Started,
		Status: string(info.Phase), Label: string(info.Phase), Lines: countLines(info.Code),
	}
	if info.File != "" {
		view.Script = info.Title()
	}
	if info.Phase != sessions.PhaseEnded {
		return view
	}
	if !info.Started.IsZero() {
		view.Took = words.Took(info.Duration)
	}
	view.Status, view.Label = statusOf(info)
	if info.Err != nil {
		view.fails(info.Err)
		view.Hint = sentence(hintForPeople(fault.HintWithout(fault.Hint(info.Err), againWords)))
		view.Again = !info.Result.Cancelled && fault.KindOf(info.Err) != fault.Cancelled // nobody gave it up
	} else {
		view.Failure, view.Hint = whatHappened(info.Result)
	}
	return view
}

// whatHappened says what ended a cell, or went wrong in it, that its outputs do not tell.
func whatHappened(r sessions.Result) (failure, hint string) {
	died := r.Death != nil && r.Status == kernels.StatusDied
	switch {
	case r.Overrun > 0:
		failure = "It was stopped because the workspace held " + words.Bytes(r.Overrun) + ", more than it may."
		hint = "Delete files that are not needed."
		if died {
			failure += " " + sentence(r.Death.Cause)
		}
	case died:
		failure = sentence(r.Death.Cause)
		if r.Death.OOM {
			hint = "Work on the data in pieces, use smaller types, or delete what is not needed."
		}
	case r.OOMKills > 0:
		failure = "A process of this session was killed while the cell ran, for want of memory."
		if r.OOMKills > 1 {
			failure = words.Thousands(r.OOMKills) + " processes of this session were killed while the cell ran, for want of memory."
		}
		hint = "Work on the data in pieces, or with fewer processes at once."
	}
	return failure, hint
}

func (c *cellView) fails(err error) {
	body := bodyForPeople(err)
	c.Failure, c.Hint = body.Message, body.Hint
}

func countLines(code string) (n int) {
	for _, r := range code {
		if r == '\n' {
			n++
		}
	}
	return n + 1
}

// statusOf is how a cell ended, as a class and in words.
func statusOf(info sessions.ExecutionInfo) (status, label string) {
	switch r := info.Result; {
	case r.Cancelled:
		return "stopped", "cancelled"
	case info.Err != nil:
		return "stopped", "not run"
	case r.TimedOut:
		return "failed", "timed out"
	case r.Interrupted():
		return "stopped", "interrupted"
	case r.Restarted:
		return "stopped", "kernel restarted"
	case r.Stopped():
		return "stopped", "kernel stopped"
	case r.Status == kernels.StatusDied:
		return "failed", "kernel died"
	case r.Status == kernels.StatusOK:
		return "ok", "ok"
	}
	return "failed", string(info.Result.Status)
}
