package sessions

import (
	"context"

	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
)

// CloseOptions say how a session is closed.
type CloseOptions struct {
	// DeleteFiles deletes the session's workspace and history too.
	DeleteFiles bool
	// Operator tells that an operator of the server closes it, which its owner is told.
	Operator bool
}

// why is what the owner is told that ended the session.
func (o CloseOptions) why() *ending {
	if o.Operator && o.DeleteFiles {
		return &ending{kind: fault.Cancelled, cause: "the session was deleted, with files and history, by an operator of the server", forgets: true}
	}
	if o.Operator {
		return &ending{kind: fault.Cancelled, cause: "the session was stopped by an operator of the server", forgets: true}
	}
	return &ending{kind: fault.Cancelled, cause: "the session was closed", forgets: true}
}

// Close ends a session: its kernel is stopped, a running cell ends, waiting cells never run. Files are kept unless the
// options say otherwise. It returns when nothing is left running. Closing again a session whose files are kept is no
// error; an id that is not known at all is NotFound.
func (m *Manager) Close(ctx context.Context, o Owner, id string, opts CloseOptions) error {
	if err := sessionid.Validate(id); err != nil {
		return err
	}
	k := key{o, id}
	if s := m.takeOver(ctx, k); s != nil { // what its cells have printed meanwhile is not lost
		_ = s.awaitSettled(ctx)
	}
	past, err := m.stored(ctx, o, id)
	s, err := m.closing(k, opts, past, err == nil)
	if s == nil {
		return err
	}
	select {
	case <-s.gone:
		return s.endErr
	case <-ctx.Done():
		return fault.New(fault.Timeout, "session %q is still stopping: %w", id, context.Cause(ctx))
	}
}

// IsClosed tells whether an id has nothing that Close would end: its session was closed, or there was none.
func (m *Manager) IsClosed(ctx context.Context, o Owner, id string) bool {
	past, err := m.stored(ctx, o, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	ends := err == nil && past.Closed.IsZero() || err != nil && fault.KindOf(err) != fault.NotFound
	return m.sessions[key{o, id}] == nil && !ends
}

// closing begins to close a session and returns it, or nil when there is nothing to do. What there is of a session that does
// not run, or is ending already, a kernel of an earlier process or files to be deleted, is dealt with by a session of its
// own, made for that: whoever uses the id next waits for it.
func (m *Manager) closing(k key, opts CloseOptions, past StoredSession, recorded bool) (*session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known, open := m.sessions[k], recorded || m.workspaces.Known(k.workspace()), recorded && past.Closed.IsZero()
	switch {
	case s == nil && !known:
		return nil, fault.New(fault.NotFound, "there is no session %q", k.id).
			WithHint("list_sessions names the ones there are")
	case m.closed && opts.DeleteFiles: // the kernel may be left running in them
		return nil, errShuttingDown
	case s == nil && (m.closed || !opts.DeleteFiles && !open):
		return nil, nil
	case s == nil || s.ended() && opts.DeleteFiles:
		s = m.add(k, past.choice(), false, ahead{})
	}
	s.close(opts.why(), opts.DeleteFiles)
	return s, nil
}
