package sessions

import (
	"cmp"
	"math"
	"slices"

	"cellblock/kernels"
)

// Cells that have ended leave two things behind. Their records stay for a while, because a thread or a task that a cell has
// started may produce output long after its end. The cells themselves, with their code and results, stay only until the
// store has them, but for the last few.

const (
	// maxRetained bounds the ended cells of a session whose late output still finds its way. Those that the store does not
	// have stay besides while there is memory for them.
	maxRetained = 64
	// cellOverhead is what an ended cell holds beside its outputs and its code, in bytes, about.
	cellOverhead = 4 << 10
	// maxRecent is how many ended cells of a session are in memory although the store has them: who asks for one asks for
	// the last, mostly.
	maxRecent = 4
)

// retain keeps an ended cell. The caller holds s.mu.
func (s *session) retain(e *Execution) {
	if n := len(s.records); n > 0 {
		s.records[n-1].age()
	}
	s.records = append(s.records, e.record)
	i, _ := slices.BinarySearchFunc(s.recent, e, func(a, b *Execution) int { return cmp.Compare(a.number, b.number) })
	s.recent = slices.Insert(s.recent, i, e)
	s.forgetOldest()
}

// retained returns the record of a cell that has ended, nil where its late output would not find its way.
func (s *session) retained(number int) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.number == number {
			return r
		}
	}
	return nil
}

// forgetOldest forgets ended cells, so that a session holds about one record's limit of outputs in memory. The caller
// holds s.mu.
func (s *session) forgetOldest() {
	if n := s.superfluous(); n > 0 {
		s.forgetRecords(n)
	}
	open := s.oldestOpen()
	for len(s.recent) > maxRecent && s.recent[0].number < open && s.recent[0].stored() {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
}

// superfluous is how many of the oldest records are to be forgotten: those beyond maxRetained that the store has, and what
// is too much for the memory, whether the store has it or not. The caller holds s.mu.
func (s *session) superfluous() (n int) {
	for n < len(s.records)-maxRetained && !s.records[n].owed() {
		n++
	}
	codes := map[*record]int64{}
	for _, e := range s.recent {
		codes[e.record] = int64(len(e.code))
	}
	most := min(s.manager.cfg.RecordBytes, maxMemory)
	var size int64
	for i := len(s.records) - 1; i >= n; i-- {
		size += s.records[i].size()
		if len(s.records)-i > maxRetained {
			size += codes[s.records[i]] + cellOverhead
		}
		if size > most && i < len(s.records)-1 {
			return i + 1
		}
	}
	return n
}

// oldestOpen is the lowest number of a cell that has not ended. Behind it none is forgotten that was cancelled while it
// waited: the cells in memory are the last ones, without a gap. The caller holds s.mu.
func (s *session) oldestOpen() int {
	switch {
	case s.running != nil:
		return s.running.number
	case len(s.queue) > 0:
		return s.queue[0].number
	}
	return math.MaxInt
}

// forgetRecords forgets the first n records, with their cells. The caller holds s.mu.
func (s *session) forgetRecords(n int) {
	forgotten := s.records[:n]
	for _, r := range forgotten {
		r.squeeze() // it may still wait for the store
	}
	s.recent = slices.DeleteFunc(s.recent, func(e *Execution) bool { return slices.Contains(forgotten, e.record) })
	s.records = slices.Clone(s.records[n:])
}

// stored tells whether all of a cell that has ended is in the store.
func (e *Execution) stored() bool {
	if !e.over() || !e.record.settled() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.result.Unsaved == nil
}

// maxLate bounds what one result takes along of earlier cells' late output, in bytes. The next one goes on behind it.
const maxLate = 4 << 20

// takeLate returns what earlier cells produced after their end since it was last asked.
func (s *session) takeLate() []Late {
	s.mu.Lock()
	records := slices.Clone(s.records)
	s.mu.Unlock()
	var late []Late
	var size int64
	for _, r := range records {
		var outs []kernels.Output
		for size < maxLate {
			out, ok := r.nextLate()
			if !ok {
				break
			}
			size += outputSize(out)
			outs = append(outs, out)
		}
		if len(outs) > 0 {
			late = append(late, Late{Number: r.number, Outputs: outs})
		}
	}
	return late
}

// behind is what threads of the running cell have put out after its end, before all that is the cell's own was read: it waits for its
// place behind that.
type behind struct {
	outs []kernels.Output
	size int64
	over bool // all of the cell's own was read
}

// maxBehind bounds it, in bytes: more takes the place that it finds.
const maxBehind = 4 << 20

// addBehind is addLate for the running cell. The caller holds s.mu.
func (s *session) addBehind(out kernels.Output) (held bool) {
	if s.behind.over || s.behind.size > maxBehind {
		return s.running.record.append(out)
	}
	s.behind.outs = append(s.behind.outs, out)
	s.behind.size += outputSize(out)
	return s.saver != nil
}

// allRead notes that the running cell's own output has been read, and puts what came behind it into its record.
func (s *session) allRead(e *Execution, c client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, out := range s.behind.outs {
		if !e.record.append(out) && s.saver != nil { // it was held, and is not to be saved
			c.ReleaseLate(e.msgID, out.Seq)
		}
	}
	s.behind = behind{over: true}
}

// begins notes that a cell runs, of which nothing has been read. The caller holds s.mu.
func (s *session) begins(e *Execution) {
	s.running, s.behind = e, behind{}
}

// addLate keeps output that came after its cell had ended, and tells whether the shim is to keep it until it is saved.
// Called by the kernel's client.
func (s *session) addLate(out kernels.Output, msgID string) (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.msgID == msgID {
			held = r.append(out)
			s.changed()
			s.forgetOldest()
			return held
		}
	}
	if s.running != nil && s.running.msgID == msgID {
		return s.addBehind(out)
	}
	s.log.Debug("late output of a cell that is forgotten", "kind", out.Kind)
	return false
}
