package viewer

import (
	"cmp"
	"context"
	"html/template"
	"slices"

	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/web/render"
)

const (
	// maxCellOutputs and maxCellBytes bound what is read of one cell to be shown, in outputs and in bytes as costOf counts them.
	maxCellOutputs, maxCellBytes = 20_000, 24 << 20
	// maxBlockBytes bounds what is read of a block's cells together, the last ones first: they are what is looked at. minCellBytes are
	// there for each cell, whatever the others have taken; what a cell has more is shown when somebody asks for it.
	maxBlockBytes, minCellBytes = 64 << 20, 256 << 10
	// bytesPassed is how many bytes of what is shown by its address count as one: they are read, and nothing of them is kept.
	bytesPassed = 8
)

// cellViews describes cells of a session, with what they show.
func (v *Viewer) cellViews(ctx context.Context, o sessions.Owner, id string, from, to int) ([]cellView, error) {
	infos, err := v.Sessions.ExecutionPage(ctx, o, id, max(1, from-1), to-max(1, from-1)+1)
	if err != nil {
		return nil, err
	}
	b := block{v: v, owner: o, id: id, from: from, left: maxBlockBytes}
	if b.executions, err = v.Sessions.ExecutionsFrom(ctx, o, id, from, to-from+1, 0); err != nil {
		return nil, err
	}
	return b.views(ctx, infos), ctx.Err()
}

// block makes the views of cells that follow each other.
type block struct {
	v           *Viewer
	owner       sessions.Owner
	id          string
	from        int                   // the number of its first cell
	executions  []*sessions.Execution // its cells, by number, as far as they were read
	generation  int                   // of the cell before the one that is made
	generations []sessions.StoredGeneration
	updates     *updates
	left        int64 // how much may be read of the cells that have not been read, beside minCellBytes of each
}

// views are the cells of a block, made from the last to the first. Before them may stand the cell that the first follows.
func (b *block) views(ctx context.Context, infos []sessions.ExecutionInfo) (views []cellView) {
	before := make([]int, len(infos))
	for i := range infos[:max(0, len(infos)-1)] {
		before[i+1] = cmp.Or(infos[i].Generation, before[i])
	}
	for i, info := range slices.Backward(infos) {
		if info.Number >= b.from {
			b.generation = before[i]
			views = append(views, b.view(ctx, info))
		}
	}
	slices.Reverse(views)
	return views
}

func (b *block) view(ctx context.Context, info sessions.ExecutionInfo) cellView {
	view := viewOf(info)
	e, err := b.execution(ctx, info.Number)
	if err != nil {
		view.Code = render.Code("", info.Code)
		view.fails(err)
		return view
	}
	view.Code = codeOf(e, info)
	b.divide(ctx, &view)
	s, unread := b.read(e, info)
	b.update(ctx, s)
	view.Items = s.views()
	switch unread {
	case crowdedOut:
		view.Crowded = true
	case tooMuch:
		view.Unread = s.inNotebook("more of its output")
	}
	return view
}

// execution is a cell of the block, the error why there is none.
func (b *block) execution(ctx context.Context, number int) (*sessions.Execution, error) {
	i, found := slices.BinarySearchFunc(b.executions, number, func(e *sessions.Execution, number int) int { return cmp.Compare(e.Number(), number) })
	if found {
		return b.executions[i], nil
	}
	return b.v.Sessions.Execution(ctx, b.owner, b.id, number)
}

func codeOf(e *sessions.Execution, info sessions.ExecutionInfo) template.HTML {
	return render.Code(e.Language(), info.Code)
}

// divide says of a cell that it ran on another kernel than the one before.
func (b *block) divide(ctx context.Context, view *cellView) {
	if view.Generation == 0 || view.Generation == b.generation || view.Generation == 1 {
		return
	}
	view.NewKernel = true
	if b.generations == nil {
		if account, err := b.v.Sessions.Account(ctx, b.owner, b.id); err == nil {
			b.generations = account.Generations
		}
	}
	for _, g := range b.generations {
		if g.Number == view.Generation-1 {
			view.Why = g.Why
		}
	}
	if !view.Saved() {
		return
	}
	if info, _, err := b.v.describe(ctx, b.owner, b.id); err == nil && info.Back && info.Generation == view.Generation {
		view.Back = backText(info.NotBack)
	}
}

// maxNotBack bounds what is said not to be back, in bytes: it is the kernel's word.
const maxNotBack = 400

// backText says what is back of variables that were saved, where some of them, which are named, may not be.
func backText(not string) string {
	if not == "" {
		return "they are back"
	}
	return "they are back, but for " + clipText(not, maxNotBack)
}

// unread tells why not all outputs of a cell were read.
type unread int

const (
	nothing    unread = iota
	tooMuch           // the cell has more than is shown of any
	crowdedOut        // other cells have taken what there is for all
)

// read applies what a cell has produced by now, within bounds.
func (b *block) read(e *sessions.Execution, info sessions.ExecutionInfo) (s *shown, left unread) {
	s = b.v.newShown(b.id, e, info)
	share := min(max(b.left, minCellBytes), maxCellBytes)
	may := budget{outputs: maxCellOutputs, bytes: share, strict: share < maxCellBytes}
	if s.pull(e, &may) {
		left = tooMuch
		if may.strict && may.outputs > 0 {
			left = crowdedOut
		}
	}
	b.left -= share - may.bytes
	if info.Phase == sessions.PhaseEnded {
		s.advise(info.Result.Error)
	}
	return s, left
}

// budget is what may be read of a cell in one go.
type budget struct {
	outputs int
	bytes   int64
	// strict keeps all that is read within bytes; else one output may be larger than what is left, so that the next go is behind it.
	strict bool
}

// takes tells whether there is room for an output, and takes it.
func (b *budget) takes(out kernels.Output) bool {
	cost := costOf(out)
	if b.outputs <= 0 || b.bytes <= 0 || b.strict && cost > b.bytes {
		return false
	}
	b.outputs--
	b.bytes -= cost
	return true
}

// pull applies what there is of a cell behind what was read, within a budget, and tells whether there may be more.
func (s *shown) pull(e *sessions.Execution, may *budget) (more bool) {
	for out := range e.SoFar(s.next) {
		if !may.takes(out.Output) {
			return true
		}
		s.add(out)
	}
	return false
}

// costOf is about what an output takes to be read and kept, in bytes.
func costOf(out kernels.Output) int64 {
	size := int64(len(out.Text))
	for _, value := range out.Data {
		size += int64(len(value))
	}
	if render.ByAddress(out) {
		size /= bytesPassed
	}
	return 100 + size
}
