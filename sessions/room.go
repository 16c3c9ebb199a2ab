package sessions

import (
	"maps"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/sessions/files"
)

const (
	// roomFor is how long at least it is believed how much a workspace holds. One that takes long to look at is believed
	// longer: roomShare times as long as that took.
	roomFor   = 2 * time.Second
	roomShare = 20
)

// rooms remembers for a moment how much workspaces hold. A large file comes in many parts, and its workspace is not walked
// through for each.
type rooms struct {
	mu    sync.Mutex
	byKey map[key]held
}

// held is how much a workspace holds, in bytes, and until when that is believed.
type held struct {
	bytes int64
	until time.Time
}

// take tells whether k's workspace is known to have room for more, which is counted then.
func (r *rooms) take(k key, more, limit int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.byKey[k]
	if h.bytes += more; !ok || time.Now().After(h.until) || h.bytes > limit {
		return false
	}
	r.byKey[k] = h
	return true
}

// put remembers how much k's workspace holds, which took so long to find out.
func (r *rooms) put(k key, bytes int64, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.byKey, func(_ key, h held) bool { return now.After(h.until) })
	if r.byKey == nil {
		r.byKey = map[key]held{}
	}
	r.byKey[k] = held{bytes, now.Add(max(roomFor, roomShare*took))}
}

// room refuses what a workspace would hold too much with. What cells write meanwhile is seen to by the gauge.
func (m *Manager) room(k key, f *files.Folder, more int64) error {
	limit := m.cfg.WorkspaceBytes
	if limit <= 0 || m.rooms.take(k, more, limit) {
		return nil
	}
	began := time.Now()
	l, err := f.List(files.Query{All: true})
	if err != nil {
		return err
	}
	if l.Bytes+more <= limit {
		m.rooms.put(k, l.Bytes+more, time.Since(began))
		return nil
	}
	return fault.New(fault.Conflict, "the workspace holds %s and may hold %s: there is no room for %s more", words.Bytes(l.Bytes), words.Bytes(limit), words.Bytes(more)).
		WithHint("delete files that are not needed")
}
