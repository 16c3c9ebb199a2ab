package mcpserver

import (
	"sync"
	"time"

	"cellblock/audit"
)

const (
	// toldAgain is when the audit log is told again of somebody who looks at the same cell all the time.
	toldAgain = time.Hour
	// maxTold bounds the looks that are remembered. When there are more, all are told again.
	maxTold = 10_000
)

// lookLog is what the audit log has heard of pages that look at cells: one asks for news every few seconds, for as long as its cell runs.
// Its zero value has heard nothing.
type lookLog struct {
	mu    sync.Mutex
	looks map[looker]time.Time
}

// looker is who looks, from where, at which cell; number 0 at none that there is.
type looker struct {
	issuer, subject, client, address, session string
	number                                    int
}

// first tells whether the log is to hear of a look, and takes it that it does.
func (l *lookLog) first(e audit.Entry, now time.Time) bool {
	of := looker{e.Issuer, e.Subject, e.ClientID, e.Address, e.Session, e.Execution}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, known := l.looks[of]; known && now.Sub(at) < toldAgain {
		return false
	}
	if l.looks == nil || len(l.looks) >= maxTold {
		l.looks = map[looker]time.Time{}
	}
	l.looks[of] = now
	return true
}
