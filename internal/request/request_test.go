package request

import (
	"context"
	"testing"
)

func TestInfoGoesWithTheContext(t *testing.T) {
	info := Info{ID: NewID(), Address: "192.0.2.1"}
	ctx, cancel := context.WithCancel(NewContext(t.Context(), info))
	defer cancel()
	if got := FromContext(ctx); got != info {
		t.Errorf("%+v, want %+v", got, info)
	}
	inner := Info{ID: "another"}
	if got := FromContext(NewContext(ctx, inner)); got != inner {
		t.Errorf("the outer request's: %+v", got)
	}
}

// Every line of a log has a name, and two calls that came without one are not taken for one.
func TestWithoutInfoEachCallHasANameOfItsOwn(t *testing.T) {
	one, other := FromContext(t.Context()), FromContext(t.Context())
	if one.ID == "" || one.ID == other.ID || one.Address != "" {
		t.Errorf("%+v, %+v", one, other)
	}
}
