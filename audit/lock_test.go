package audit

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// A process that stands still with the lock held does not hold up others without end.
func TestLockHasATimeLimit(t *testing.T) {
	dir := written(t, 1)
	l := openLog(t, dir)
	l.Required = true
	l.file.patience = 50 * time.Millisecond
	held := flock.New(filepath.Join(dir, "audit.jsonl.lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := l.Require(t.Context(), Entry{Event: Called}); err == nil || l.Health() == nil || !strings.Contains(l.Health().Error(), "held its lock for 50ms") {
		t.Errorf("%v, and health says %v", err, l.Health())
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := l.Require(t.Context(), Entry{Event: Called}); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if r := verified(t, dir); r.Lines != 2 || len(r.Problems) > 0 {
		t.Errorf("%+v", r)
	}
}
