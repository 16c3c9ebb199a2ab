package viewer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"cellblock/web/viewer/live"
)

// The list tells of the visitor's sessions and of what each uses, and of nobody else's.
func TestListIsTold(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "one", "print a")
	p.ran("ann", "two", "print b")
	p.ran("bob", "his", "print c")
	ann := p.signIn("ann", all...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := map[string][]string{}
	err := p.viewer.sessionsTopic(ann.who)(ctx, "", func(e live.Event) error {
		if data, ok := e.Data.(listed); ok && !slices.Contains(told[e.Name], data.ID) {
			told[e.Name] = append(told[e.Name], data.ID)
		}
		if len(told["usage"]) == 2 {
			return errEnough
		}
		return nil
	})
	slices.Sort(told["row"])
	slices.Sort(told["usage"])
	if want := []string{"one", "two"}; !errors.Is(err, errEnough) || !slices.Equal(told["row"], want) || !slices.Equal(told["usage"], want) {
		t.Errorf("told %v, %v", told, err)
	}
}
