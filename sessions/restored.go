package sessions

import (
	"context"
	"slices"

	"cellblock/kernels"
)

// restoreCells makes the session's last cells of what the store has of them: those that have ended can still produce late
// output; the first that has not ended runs, or may do; the others wait, and will not run.
func (s *session) restoreCells(ctx context.Context, l left, release func(msgID string, seq uint64)) (running *adopted, waiting []*Execution) {
	var ended []*Execution
	for _, stored := range l.cells {
		e, asks := s.reopen(ctx, stored)
		switch {
		case !stored.Ended.IsZero():
			msgID := e.msgID // not the cell, which need not stay
			e.record.onDealt(func(seq uint64) { release(msgID, seq) })
			ended = append(ended, e)
		case running == nil:
			running = &adopted{Execution: e, asks: asks, doubt: stored.Started.IsZero()}
			e.phase, e.generation, e.input.orphan = PhaseRunning, l.kernel.Number, true
			e.record.seen = max(e.record.seen, l.kernel.Seq)
			if running.doubt {
				e.started, e.since = s.past.Used, s.past.Used
			}
		default:
			waiting = append(waiting, e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var records []*record
	for _, e := range ended {
		records = append(records, e.record)
	}
	s.records, s.recent = append(records, s.records...), append(ended, s.recent...)
	return running, waiting
}

// forgetCells undoes restoreCells.
func (s *session) forgetCells() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = slices.DeleteFunc(s.records, func(r *record) bool { return s.isLeft(r.number) })
	s.recent = slices.DeleteFunc(s.recent, func(e *Execution) bool { return s.isLeft(e.number) })
}

// isEarlier tells whether a request to the kernel is a cell of the session that ended before this process came.
func (s *session) isEarlier(msgID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.msgID == msgID {
			return true
		}
	}
	return false
}

// reopen makes an execution of what the store has of one, to which more can be added. It tells whether the last that it
// did was to ask for input.
func (s *session) reopen(ctx context.Context, stored StoredExecution) (e *Execution, asks bool) {
	e = &Execution{
		session: s, id: s.key.id, choice: s.choice, once: s.profile().Once, number: stored.Number, msgID: stored.MsgID, code: stored.Code, file: stored.File, args: stored.Args,
		restores: stored.Restores, caller: stored.Caller, timeout: stored.Timeout, record: newRecord(s.manager.cfg.RecordBytes, stored.Number, stored.MsgID),
		done: make(chan struct{}), cancelled: make(chan struct{}), phase: PhaseQueued,
		started: stored.Started, since: stored.Started, generation: stored.Generation, preamble: stored.Preamble,
	}
	e.record.shelf = &shelf{saver: s.saver, saved: stored.length()}
	e.record.seen, asks = s.lastOutput(ctx, stored)
	e.record.goOn(stored)
	if !stored.Ended.IsZero() {
		e.phase, e.ending, e.result = PhaseEnded, true, stored.Result
		if stored.Failure != nil {
			e.err = stored.Failure
		}
		e.record.told = e.record.lateFrom(stored.length())
		close(e.done)
	}
	return e, asks
}

// length is the index after the last output. Where the last outputs were given up, earlier versions did not count them.
func (e StoredExecution) length() int { return max(e.Outputs, e.Own) }

// goOn lets a new record go on behind what the store has of its cell.
func (r *record) goOn(stored StoredExecution) {
	r.count = stored.length()
	if r.count > 0 {
		r.parts = []*part{{span: span{0, r.count}, bytes: stored.Bytes}}
		r.heads, r.kept[0] = 1, stored.Bytes
	}
	if !stored.Ended.IsZero() {
		r.ended, r.endCount, r.shelf.old = true, stored.Own, true
	}
}

// unchanged tells whether a record that goes on has got nothing yet.
func (r *record) unchanged() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count == r.shelf.saved
}

// lastOutputs is how many outputs are looked at for the last that the shim has sent: behind it are at most a few notices
// of this server's own.
const lastOutputs = 8

// lastOutput returns the highest number of the shim's sequence among a stored cell's outputs, 0 if there is none, and
// whether the last of them asks for input.
func (s *session) lastOutput(ctx context.Context, stored StoredExecution) (seq uint64, asks bool) {
	if stored.length() == 0 {
		return 0, false
	}
	for out, err := range s.manager.cfg.Store.Outputs(ctx, s.past.Ref, stored.Number, max(0, stored.length()-lastOutputs)) {
		if err != nil {
			s.log.Warn("the end of a cell cannot be read; what it prints may come twice", "cell", stored.Number, "error", err)
			continue
		}
		seq = max(seq, out.Output.Seq)
		asks = out.Output.Kind == kernels.OutputInput
	}
	return seq, asks
}
