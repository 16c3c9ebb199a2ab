package sessions

// A kernel may die just as a cell is sent to it. A cell that it certainly never had, because it was not sent or the shim
// could not give it on, has had no effect: it runs on the next kernel, once, and its preamble tells what was lost. Of one
// that was given to the kernel nobody can say so, even if the kernel gave no sign of it: code that ends its process at once
// is faster than what the kernel says.

// neverHad tells whether the kernel has died without having had the cell.
func (r *run) neverHad() bool {
	s := r.s
	if r.e.again || s.ctx.Err() != nil || !s.kernelGone() || r.wanted() {
		return false
	}
	return r.unsent != nil || r.running.Unsent()
}

// wanted tells whether the cell was to end.
func (r *run) wanted() bool {
	return r.timedOut || r.cancelled || r.overrun > 0 || r.order != nil || r.replaced != ""
}

// startOver has the cell run on the next kernel.
func (r *run) startOver() {
	death := r.death()
	r.s.log.Info("a cell that its kernel never had runs on the next", "cell", r.e.number)
	r.s.putBack(r.e)
	r.s.dispose(r.s.lose(death))
}

// doubtful says of a cell whose kernel died that it may not have begun, in words to stand behind the cause; nothing where
// that is known.
func (r *run) doubtful() string {
	if r.running == nil || r.wanted() || r.e.record.length() > 0 {
		return ""
	}
	select {
	case <-r.running.Begun():
		return ""
	default:
		return ", and nothing had come from the cell: it may have run in part, or not at all"
	}
}
