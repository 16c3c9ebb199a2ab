package sessions

import (
	"cmp"
	"context"
	"errors"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// Choice is what a session is made of: chosen by its first call, and the same for all its kernels.
type Choice struct {
	// Language is a name of Config.Runtimes, Profile one of Config.Profiles.
	Language, Profile string
	// Image is what the provisioner is to run the kernel in; empty: the language's own (Runtime.Image).
	Image string
}

// choice is what a session in the store was made of.
func (s StoredSession) choice() Choice {
	return Choice{Language: s.Language, Profile: cmp.Or(s.Profile, DefaultProfile), Image: s.Image}
}

// spec is what kernels of a choice are launched as, without what is each one's own.
func (m *Manager) spec(c Choice) kernels.Spec {
	runtime, profile := m.cfg.Runtimes[c.Language], m.cfg.Profiles[c.Profile]
	spec := kernels.Spec{
		Kernelspec: runtime.Kernelspec, Image: cmp.Or(c.Image, runtime.Image), Limits: profile.Limits,
		Egress: profile.Network.Open(), Mounts: profile.Mounts, Runtime: profile.Runtime, Devices: profile.Devices, Patience: max(m.cfg.Unattended, 0),
	}
	if spec.Egress {
		spec.Env, spec.Authorities = runtime.Online, m.cfg.Authorities
	}
	return spec
}

// offers tells whether sessions of a choice can be had.
func (m *Manager) offers(c Choice) bool {
	_, language := m.cfg.Runtimes[c.Language]
	_, profile := m.cfg.Profiles[c.Profile]
	return language && profile
}

// errChosen is why a session is not a request's: by now somebody else has made another choice for it.
var errChosen = errors.New("the session was made of something else meanwhile")

// choose returns what a request's session is made of: what it was made of when it began, and for a new one what the request
// names. One that was closed can be made of something else. The error is Conflict when the request names something else than
// the session has. Ahead is what was found out on the way.
func (m *Manager) choose(ctx context.Context, o Owner, r Request) (c Choice, a ahead, err error) {
	if r.Profile != "" {
		if err := m.cfg.profile(r.Profile); err != nil {
			return c, a, err
		}
	}
	had, closed, a, err := m.chosen(ctx, key{o, r.SessionID}, r)
	if err != nil {
		return c, a, err
	}
	c = Choice{Language: r.Language, Profile: cmp.Or(r.Profile, had.Profile, DefaultProfile)}
	if r.Image != "" {
		if c.Image, err = m.image(ctx, o, r.Language, r.Image); err != nil {
			return c, a, err
		}
	} else if had.Language == r.Language {
		c.Image = had.Image
	}
	if had != (Choice{}) && !closed {
		err = had.refuse(r, c, m.cfg.NameOfImage(o, had.Image))
	}
	if err == nil {
		err = m.cfg.profile(c.Profile)
	}
	if err == nil && r.Permit != nil {
		err = r.Permit(c.Profile)
	}
	if err == nil && m.cfg.Profiles[c.Profile].Once {
		err = once(r, c.Profile, had)
	}
	return c, a, err
}

// chosen is what the session of an id was made of, and whether it is closed; the zero Choice if there is none, or it is
// minted only now. The error is Unavailable where there was one of which that cannot be known now: it is not made of something
// else for that.
func (m *Manager) chosen(ctx context.Context, k key, r Request) (had Choice, closed bool, a ahead, err error) {
	if k.id == "" {
		return Choice{}, false, a, nil
	}
	m.mu.Lock()
	s := m.sessions[k]
	m.mu.Unlock()
	if s != nil {
		return s.choice, s.ended(), a, nil
	}
	a = m.lookAhead(ctx, k, r)
	switch {
	case a.err == nil:
		return a.past.choice(), !a.past.Closed.IsZero() || !m.offers(a.past.choice()), a, nil
	case fault.KindOf(a.err) != fault.NotFound && m.workspaces.Known(k.workspace()):
		return Choice{}, false, a, fault.New(fault.Unavailable, "what session %q is made of cannot be read: %w", k.id, a.err).
			WithHint("try again later, or use another session_id")
	}
	return Choice{}, false, a, nil
}

// refuse is the error of a request for something else than the session has, whose owner calls its image so.
func (c Choice) refuse(r Request, want Choice, image string) error {
	other := "use another session_id, or close_session this one first: its files stay"
	switch {
	case c.Language != want.Language:
		return fault.New(fault.Conflict, "session %q is a %s session, it cannot run %s", r.SessionID, c.Language, r.Language).
			WithHint("use another session_id for %s, or call execute_%s on this one", r.Language, c.Language)
	case c.Profile != want.Profile:
		return fault.New(fault.Conflict, "session %q has the profile %s, it cannot have %s", r.SessionID, c.Profile, clip(r.Profile, 40)).
			WithHint("%s", other)
	case c.Image != want.Image && c.Image == "":
		return fault.New(fault.Conflict, "session %q runs in the image that %s has by itself, not in %s", r.SessionID, c.Language, clip(r.Image, 200)).
			WithHint("%s", other)
	case c.Image != want.Image:
		return fault.New(fault.Conflict, "session %q runs in the image %s, not in %s", r.SessionID, image, clip(r.Image, 200)).
			WithHint("%s", other)
	}
	return nil
}

// once refuses a name for a session of one cell: nobody can come back to it.
func once(r Request, profile string, had Choice) error {
	switch {
	case r.SessionID == "":
		return nil
	case had.Profile == profile && r.Profile == "":
		return fault.New(fault.Conflict, "session %q was made for one call, with the profile %s: nothing of it can be used again", r.SessionID, profile).
			WithHint("use a session_id of your own, without that profile, for variables and files that stay")
	}
	return fault.New(fault.Invalid, "session_id: a session with the profile %s lives for one call and has no name", profile).
		WithHint("leave session_id out, or leave profile out for variables and files that stay")
}

// image checks the image that a request names, and returns what the provisioner knows it by; "" for the language's own.
func (m *Manager) image(ctx context.Context, o Owner, language, name string) (string, error) {
	own := m.cfg.Runtimes[language].Image
	switch {
	case !m.cfg.Provisioner.Capabilities().Images:
		return "", fault.New(fault.Invalid, "image: the kernels of this server run in no images").WithHint("leave image out")
	case name == own:
		return "", nil
	case m.cfg.Image != nil:
		return m.cfg.Image(ctx, o, language, name)
	}
	return "", fault.New(fault.Invalid, "image: %q is not one that a %s session may run in", clip(name, 200), language).
		WithHint("leave image out, which means %s", own)
}
