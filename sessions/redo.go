package sessions

import "cellblock/kernels"

// redo is what of a session's lost kernels can be run again (RestoreSession), and what of it has been, as far as those are to be told
// who lose their variables. Guarded by the session's lock.
type redo struct {
	// good is the first generation of which a cell is known to have succeeded; 0: none is. known counts the cells of earlier processes,
	// and of earlier sessions of the same id, of which that is known.
	good, known int
	// last is the last cell of which that is known.
	last int
	// again are the cells that have run cells of lost kernels again in a generation.
	again      []int
	generation int
	// progress is how far the restoration was, with them, whose cells they are; zero for cells of an earlier process.
	progress RestoreProgress
}

// note remembers how a cell ended, and, of one that runs another one again, how far its restoration is if it has succeeded.
func (d *redo) note(number, generation, restores int, progress RestoreProgress, r Result) {
	if r.Status != kernels.StatusOK || generation == 0 {
		return
	}
	d.last = max(d.last, number)
	if d.good == 0 || generation < d.good {
		d.good = generation
	}
	if restores == 0 {
		return
	}
	if d.generation != generation {
		d.generation, d.again = generation, nil
		progress.Done = min(progress.Done, 1) // those before were on another kernel
	}
	d.progress = progress
	d.again = append(d.again, number)
	d.again = d.again[max(0, len(d.again)-maxRestored):]
}

// recall is note for cells of an earlier process.
func (d *redo) recall(cells []StoredExecution) {
	d.known = len(cells)
	for _, e := range cells {
		if !e.Ended.IsZero() && e.Failure == nil {
			d.note(e.Number, e.Generation, e.Restores, RestoreProgress{}, e.Result)
		}
	}
}

// redone are the cells that have run earlier ones again on a generation's kernel, and of how many these are how many.
func (d *redo) redone(generation int) ([]int, RestoreProgress) {
	if d.generation != generation {
		return nil, RestoreProgress{}
	}
	return d.again, d.progress
}

// restorable tells whether kernels that are lost may have cells that can be run again. Of cells of which nobody knows how they ended it
// supposes so. s.mu is held.
func (s *session) restorable() bool {
	return s.unknownPast() || s.redo.good > 0 && s.redo.good < s.generation
}

// restorableAfter is restorable for the cells after one of them. s.mu is held.
func (s *session) restorableAfter(cell int) bool {
	return s.redo.last > cell || s.unknownPast() && s.past.Executions > cell
}

// unknownPast tells that there are cells of which nobody knows how they ended.
func (s *session) unknownPast() bool { return s.saver != nil && s.past.Executions > s.redo.known }
