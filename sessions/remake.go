package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellblock/internal/fault"
)

// Remake makes a session of another image, which a name stands for as in a Request: its kernel and its running cell end, waiting
// cells never run, files and history are kept, and a kernel in the image is started. It returns when that is ready, and does
// nothing where the session has the image already. When the kernel does not come up the session has the image all the same, and
// the next call tries again. Loaded tells of variables that the new kernel has back; where it is empty the caller (Request.Caller) says
// that they are lost: where it hears of success, its own cells are not told of that once more.
func (m *Manager) Remake(ctx context.Context, o Owner, id, image, caller string) (info Info, loaded string, err error) {
	s, err := m.use(ctx, o, id)
	if err != nil {
		return Info{}, "", err
	}
	choice := s.choice
	if choice.Image, err = m.image(ctx, o, choice.Language, image); err != nil {
		return Info{}, "", err
	}
	if choice == s.choice {
		return s.info(), "", nil
	}
	next, parting, release, err := m.succeed(s, choice, &ending{kind: fault.Cancelled, cause: fmt.Sprintf("the session was given the image %s", clip(image, 200)), saves: true})
	if errors.Is(err, errChosen) {
		return Info{}, "", fault.New(fault.Conflict, "session %q was used by another call just now, in its old image", id).WithHint("try again")
	}
	if err != nil {
		return Info{}, "", err
	}
	defer release()
	if a := next.send(ctx, order{kind: orderAsk, ask: next.begin}); a.err != nil {
		return Info{}, "", next.orderError(a.err)
	}
	loaded = next.loaded().text
	if ctx.Err() == nil {
		next.knows(caller, parting)
	}
	return next.info(), loaded, nil
}

// succeed ends a session and puts another one in its place, of another choice, which is told what that was to be told. parting is what
// it is told of the end itself. The error is errChosen when another call was sooner.
func (m *Manager) succeed(s *session, choice Choice, why *ending) (next *session, parting string, release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.key] != s || s.ended() {
		return nil, "", nil, errChosen
	}
	s.close(why, false)
	next, release, err = m.reserveLocked(s.key, choice, ahead{})
	if err != nil {
		return nil, "", nil, err
	}
	return next, next.inherit(s), release, nil
}

// ImagesInUse names the images other than their languages' own that sessions are made of: those that run, and those whose kernel
// an earlier process has left.
func (m *Manager) ImagesInUse(ctx context.Context) (map[string]bool, error) {
	used := map[string]bool{}
	m.mu.Lock()
	for _, s := range m.sessions {
		used[s.choice.Image] = true
	}
	m.mu.Unlock()
	if m.cfg.Store != nil {
		left, err := m.cfg.Store.Running(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range left {
			used[k.Session.Image] = true
		}
	}
	delete(used, "")
	return used, nil
}

// ImagesKept names those that the next kernel of any session would run in that is not closed, whether it has one now or not, with
// when such a session was last used.
func (m *Manager) ImagesKept(ctx context.Context) (map[string]time.Time, error) {
	if m.cfg.Store == nil {
		return nil, nil
	}
	return m.cfg.Store.Images(ctx)
}
