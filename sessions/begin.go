package sessions

import (
	"context"

	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
)

// Begin makes a session without a cell, for somebody who wants to see it first, and starts its kernel; one that is there gets a
// kernel if it has none. Code and Timeout of the request do not count. It returns when the kernel is up. The errors are those of
// Execute, and why the kernel did not come up.
func (m *Manager) Begin(ctx context.Context, o Owner, r Request) (info Info, err error) {
	if r.SessionID != "" {
		if err := sessionid.Validate(r.SessionID); err != nil {
			return info, err
		}
	}
	if r.Language, err = m.cfg.language(r.Language); err != nil {
		return info, err
	}
	choice, ahead, err := m.choose(ctx, o, r)
	if err != nil {
		return info, err
	}
	if m.cfg.Profiles[choice.Profile].Once {
		return info, fault.New(fault.Invalid, "profile: sessions with the profile %s live for one call", choice.Profile).
			WithHint("choose another profile")
	}
	s, release, err := m.reserve(key{o, r.SessionID}, choice, ahead)
	if err != nil {
		return info, err
	}
	defer release()
	s.used()
	a := s.send(ctx, order{kind: orderAsk, ask: s.begin})
	if a.err != nil && fault.KindOf(a.err) != fault.Busy { // one that runs a cell has a kernel
		return info, s.orderError(a.err)
	}
	return s.info(), nil
}

// begin starts a kernel where there is none, while no cell runs.
func (s *session) begin() error {
	if s.kernelGone() {
		s.kernelDied(s.kernel.death())
	}
	if s.kernel != nil || s.untouched {
		return nil
	}
	err := s.start()
	if err != nil {
		s.startFailed(err)
	}
	return err
}
