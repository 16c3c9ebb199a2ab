package notebook

import (
	"fmt"
	"strings"
	"time"

	"cellblock/internal/words"
	"cellblock/kernels"
)

// Session is what a notebook is made of, beside its cells.
type Session struct {
	ID         string
	Kernelspec kernels.Kernelspec
	// Language is what a kernel of the session's language said of it; it may be empty.
	Language kernels.LanguageInfo
	// Generation counts its kernels. Ended says why there is none any more; empty while it lives.
	Generation int
	Ended      string
}

// Run is one execution of a cell, without its outputs.
type Run struct {
	// Number counts the session's cells, from 1. Generation is that of the kernel that ran it.
	Number, Generation int
	Code               string
	// Remark is a line that stands as a comment before the code, where the language has known comments; empty for none.
	Remark string
	// ExecutionCount is the kernel's own number of it, 0 for none.
	ExecutionCount int
	// Status says in a word or two how it ended, as StatusTimedOut.
	Status string
	// Caller says who asked; it may be empty.
	Caller   string
	Started  time.Time
	Duration time.Duration
	// Failure is why the cell ended, where its outputs do not say it: its kernel died.
	Failure string
}

// MaxBytes is about how large the file may get that a Builder makes, maxCell how much of it one cell may take; of more,
// what was left out is said at its place.
const (
	MaxBytes = 32 << 20
	maxCell  = 8 << 20
)

// Builder makes a notebook of a session, cell by cell in their order.
type Builder struct {
	notebook   Notebook
	session    Session
	generation int
	cell       *outputs
	displays   displays
	pending    []shown
	left       int64
	missing    int
}

// NewBuilder returns a Builder of a session's notebook.
func NewBuilder(s Session) *Builder {
	about := Object{"session_id": s.ID, "generations": s.Generation}
	if s.Ended != "" {
		about["ended"] = s.Ended
	}
	return &Builder{session: s, left: MaxBytes, displays: displays{}, notebook: Notebook{Metadata: Object{
		"kernelspec":    Object{"name": s.Kernelspec.Name, "display_name": s.Kernelspec.DisplayName, "language": s.Kernelspec.Language},
		"language_info": languageInfo(s.Kernelspec.Language, s.Language),
		"cellblock":     about,
	}}}
}

// NewKernel begins a generation: the cells before it ran in a kernel that is no more, for a reason that may be empty.
// Before the first cell it says nothing: there is nothing to be told apart.
func (b *Builder) NewKernel(generation int, why string) {
	first := b.generation == 0
	b.generation, b.displays = generation, displays{}
	if first {
		return
	}
	if why = strings.TrimRight(strings.TrimSpace(why), "."); why == "" {
		why = "its kernel was replaced"
	}
	b.note(fmt.Sprintf("generation-%d", generation), fmt.Sprintf("---\n**Kernel generation %d.** The one before ended: %s. "+
		"All variables were lost; the cells below ran on a new kernel.", generation, why), Object{"generation": generation})
}

// Missing says in place of cells that they cannot be had, and why.
func (b *Builder) Missing(from, to int, why string) {
	which := fmt.Sprintf("cell %d", from)
	if to > from {
		which = fmt.Sprintf("cells %d to %d", from, to)
	}
	b.note(fmt.Sprintf("missing-%d", from), fmt.Sprintf("… %s left out here: %s …", which, why), Object{"from": from, "to": to})
}

// note adds a cell that is no code, but a remark of ours.
func (b *Builder) note(id, text string, about Object) {
	b.close()
	b.notebook.Cells = append(b.notebook.Cells, &Cell{Type: Markdown, ID: id, Source: text, Metadata: Object{"cellblock": about}})
}

// What a Run's Status is where the cell was stopped, which Cell.Stopped knows again.
const (
	StatusTimedOut    = "timed out"
	StatusInterrupted = "interrupted"
	StatusRestarted   = "kernel restarted"
	StatusStopped     = "kernel stopped"
)

// Begin adds a cell; its outputs follow. It returns false, and the cell is only counted, when there is no room for it.
func (b *Builder) Begin(r Run) bool {
	b.close()
	source := r.Code
	if mark := Comment(b.session.Kernelspec.Language); r.Remark != "" && mark != "" {
		source = mark + " " + r.Remark + "\n" + source
	}
	size := textSize(source)
	if b.missing > 0 || size > b.left {
		b.missing++
		return false
	}
	b.left -= size
	c := &Cell{
		Type: Code, ID: fmt.Sprintf("cell-%d", r.Number), Source: source, ExecutionCount: r.ExecutionCount, Metadata: r.metadata(),
	}
	b.notebook.Cells = append(b.notebook.Cells, c)
	b.cell = &outputs{cell: c, displays: b.displays, pending: &b.pending, left: min(b.left, maxCell), failure: r.Failure}
	return true
}

// metadata is what is known of a run, and its times in the form that JupyterLab shows.
func (r Run) metadata() Object {
	about := Object{"execution_id": r.Number, "generation": r.Generation, "status": r.Status, "duration": r.Duration.Seconds()}
	if r.Caller != "" {
		about["caller"] = r.Caller
	}
	if r.Started.IsZero() {
		return Object{"cellblock": about}
	}
	started := r.Started.UTC()
	about["started"] = started.Format(time.RFC3339Nano)
	return Object{"cellblock": about, "execution": Object{
		"iopub.execute_input": started.Format(time.RFC3339Nano),
		"shell.execute_reply": started.Add(r.Duration).Format(time.RFC3339Nano),
	}}
}

// Output adds what the cell that was begun last has produced next, late output too.
func (b *Builder) Output(out kernels.Output) {
	if b.cell != nil {
		b.cell.add(out)
	}
}

// close ends the cell that was begun last.
func (b *Builder) close() {
	if b.cell != nil {
		b.left -= b.cell.end()
		b.cell = nil
	}
}

// Notebook returns the notebook. The Builder is of no use afterwards.
func (b *Builder) Notebook() *Notebook {
	b.close()
	if b.missing > 0 {
		b.note("left-out", fmt.Sprintf("… %s left out here: the notebook has as much as fits into one file (%s) …",
			words.Count(int64(b.missing), "cell"), words.Bytes(MaxBytes)), Object{"left_out": b.missing})
	}
	for _, s := range b.pending {
		s.output.Data, s.output.Metadata = s.content.data, s.content.metadata
	}
	return &b.notebook
}
