package kernels

// Hold keeps Next from telling that what it returned before was dealt with: Release does that from now on. It is for
// readers who store outputs many at a time, and is called before the first Next. The end is dealt with as ever, by
// calling Next once more.
func (e *Execution) Hold() {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	e.held = true
}

// Release tells that the outputs up to a number were dealt with: the shim may forget them, and no later Client will get
// them. Numbers that were released before are ignored. Its late output that Options.Late holds is released likewise.
func (e *Execution) Release(seq uint64) {
	e.c.ReleaseLate(e.call.id, seq)
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	if !e.held || seq <= e.released || e.taken == 0 {
		return
	}
	e.released = min(seq, e.taken)
	e.c.releaseBefore(e.released)
	e.c.ackSoon()
}

// keep notes that an output was returned, and from which number on nothing was dealt with. c.mu is held.
func (e *Execution) keep(seq uint64) {
	switch {
	case !e.held:
		e.returned = seq
	case seq > e.taken:
		if e.taken == 0 {
			e.released = seq - 1
		}
		e.taken = seq
	}
}

// unreleased returns the first number that may not have been released, 0 if all were. c.mu is held.
func (e *Execution) unreleased() uint64 {
	if e.taken > e.released {
		return e.released + 1
	}
	return 0
}
