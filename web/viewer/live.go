package viewer

import (
	"context"
	"net/http"
	"strings"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
	"cellblock/mcpserver"
	"cellblock/web/viewer/live"
)

// sessionTopic stands before the id of a session in the name of its topic.
const sessionTopic = "session:"

// wanted is a topic that a page wants to hear, and where the page stands.
type wanted struct{ Topic, After string }

// live answers with a stream of the topics that were asked for.
func (v *Viewer) live(w http.ResponseWriter, r *http.Request, who visit) error {
	query := r.URL.Query()
	topics, cursors := query["topic"], query["after"]
	if len(topics) == 0 || len(topics) != len(cursors) || len(topics) > live.MaxSubscriptions {
		return fault.New(fault.Invalid, "a stream needs 1 to %d topics, each with a cursor", live.MaxSubscriptions)
	}
	var list []wanted
	for i, name := range topics {
		list = append(list, wanted{name, cursors[i]})
	}
	subscriptions, err := v.subscriptions(list, who)
	if err != nil {
		return err
	}
	ctx, cancel := v.SignIns.Until(r.Context(), who.signIn)
	defer cancel()
	defer context.AfterFunc(v.draining, cancel)()
	v.streams.Serve(ctx, w, who.signIn.ID, subscriptions, func() bool { return v.holds(r, who) })
	return nil
}

// changeLive begins and ends subscriptions of a stream of the same sign-in, and answers whether the stream took that.
func (v *Viewer) changeLive(w http.ResponseWriter, r *http.Request, who visit) error {
	var asked struct {
		Stream string
		First  int
		Add    []wanted
		Remove []int
	}
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	add, err := v.subscriptions(asked.Add, who)
	if err != nil {
		return err
	}
	changed := v.streams.Change(who.signIn.ID, asked.Stream, live.Change{First: asked.First, Add: add, Remove: asked.Remove})
	return writeJSON(w, http.StatusOK, map[string]any{"changed": changed})
}

// subscriptions are those that a page asks for. What the visitor may not hear is told on the stream.
func (v *Viewer) subscriptions(list []wanted, who visit) (subscriptions []live.Subscription, err error) {
	for _, one := range list {
		topic, err := v.topic(one.Topic, who)
		if err != nil {
			topic = func(context.Context, string, func(live.Event) error) error { return err }
		}
		if err := live.CheckCursor(one.After); err != nil {
			return nil, err
		}
		subscriptions = append(subscriptions, live.Subscription{Topic: topic, After: one.After})
	}
	return subscriptions, nil
}

// liveState tells a page whose stream was refused, or whose sign-in has ended, who is signed in now; by its status, that nobody is.
func (v *Viewer) liveState(w http.ResponseWriter, _ *http.Request, who visit) error {
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, http.StatusOK, map[string]any{"visitor": who.Mark(), "csrf": who.CSRF(), "left": who.Left()})
}

// holds tells whether who listens to a stream, or has cells run again, still may: signed in, with a token that holds.
func (v *Viewer) holds(r *http.Request, who visit) bool {
	if !v.SignIns.Holds(who.signIn) {
		return false
	}
	_, err := v.Verifier(context.WithoutCancel(r.Context()), who.signIn.Token)
	return fault.KindOf(err) != fault.Unauthenticated || err == nil
}

// topic finds what tells of a name. The error is that of a route to the same things.
func (v *Viewer) topic(name string, who visit) (live.Topic, error) {
	if name == serverTopic {
		return v.serverTopic(who)
	}
	if !who.can(mcpserver.ScopeRead) {
		return nil, auth.NeedsScope("this", mcpserver.ScopeRead)
	}
	for prefix, of := range map[string]func(visit, string) live.Topic{
		sessionTopic: v.stateTopic, cellsTopicPrefix: v.cellsTopic, deskTopic: v.deskTopic, samplesTopic: v.samplesTopic,
	} {
		if id, ok := strings.CutPrefix(name, prefix); ok {
			return of(who, id), sessionid.Validate(id)
		}
	}
	if name == sessionsTopic {
		return v.sessionsTopic(who), nil
	}
	return nil, fault.New(fault.NotFound, "there is no topic %.60q", name)
}
