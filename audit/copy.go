package audit

import (
	"context"
	"time"
)

// Copies keeps a second copy of the head, elsewhere than beside the log: who puts back or takes away log and head together
// is found out by it.
type Copies interface {
	// AuditHead returns what SetAuditHead was given last for a log, nil if nothing was.
	AuditHead(ctx context.Context, log string) ([]byte, error)
	// SetAuditHead keeps a text for a log.
	SetAuditHead(ctx context.Context, log string, text []byte) error
}

const (
	// copyPause is how old the copy of the head may be.
	copyPause = time.Second
	// copyTimeout bounds one attempt to read or write it.
	copyTimeout = 5 * time.Second
)

// recall learns from the copy how far the log has been written at least. A copy that cannot be had is not waited for: the
// log must work when what keeps it does not.
func (l *Log) recall() {
	if l.Copies == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), copyTimeout)
	defer cancel()
	text, err := l.Copies.AuditHead(ctx, l.CopyName)
	switch {
	case err != nil:
		l.Logger.Warn("the copy of the audit log's head cannot be read", "error", err)
	case text != nil:
		if _, err := unsealed(l.Key, text, &l.file.seen); err != nil {
			l.file.seen, l.file.foreign = head{}, true
		}
	}
}

// copyHeads copies the head when it has moved, at most once in a pause, until the log has ended.
func (l *Log) copyHeads() {
	defer close(l.copied)
	if l.Copies == nil {
		return
	}
	failed := false
	for open := true; open; {
		select {
		case <-l.moved:
		case <-l.ended:
			open = false
		}
		err := l.copyHead()
		if err != nil && !failed {
			l.Logger.Warn("the head of the audit log cannot be copied", "error", err)
		}
		if failed = err != nil; open {
			wait(copyPause, l.ended)
		}
	}
}

// copyHead copies the head as it is now.
func (l *Log) copyHead() error {
	l.mu.Lock()
	now := l.head
	l.mu.Unlock()
	if now.Lines == 0 {
		return nil // nothing was written
	}
	text, _, err := sealed(l.Key, now)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), copyTimeout)
	defer cancel()
	return l.Copies.SetAuditHead(ctx, l.CopyName, text)
}

// wait waits for a while, or until done is closed.
func wait(d time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}
