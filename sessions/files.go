package sessions

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
	"cellblock/internal/words"
	"cellblock/sessions/files"
	"cellblock/sessions/workspaces"
)

// MaxFile is the most that WriteFile takes, in bytes.
const MaxFile = 16 << 20

// errNoFiles is why a session's workspace cannot be opened that does not exist yet.
var errNoFiles = errors.New("has no files yet")

// ListFiles lists the workspace of an owner's session, whether it runs or not. It is NotFound when there is no such session.
func (m *Manager) ListFiles(ctx context.Context, o Owner, id string, q files.Query) (files.Listing, error) {
	return m.listFiles(ctx, m.use, o, id, q)
}

// PeekFiles is ListFiles for an overview of sessions, which is no use of them.
func (m *Manager) PeekFiles(ctx context.Context, o Owner, id string, q files.Query) (files.Listing, error) {
	return m.listFiles(ctx, m.find, o, id, q)
}

// finder is m.use or m.find.
type finder func(context.Context, Owner, string) (*session, error)

func (m *Manager) listFiles(ctx context.Context, find finder, o Owner, id string, q files.Query) (files.Listing, error) {
	f, err := m.folder(ctx, find, o, id)
	if errors.Is(err, errNoFiles) {
		return files.Listing{}, nil
	}
	if err != nil {
		return files.Listing{}, err
	}
	defer f.Close()
	return f.List(q)
}

// OpenFile opens a file of a session's workspace for reading. The caller closes it.
func (m *Manager) OpenFile(ctx context.Context, o Owner, id, path string) (*os.File, files.Entry, error) {
	f, err := m.folder(ctx, m.use, o, id)
	if err != nil {
		return nil, files.Entry{}, err
	}
	defer f.Close()
	return f.OpenFile(path)
}

// WriteFile puts a file into a session's workspace, which it makes if need be: files may be there before the first cell. It
// tells whether nothing was there under that name.
func (m *Manager) WriteFile(ctx context.Context, o Owner, id, path string, content []byte) (e files.Entry, created bool, err error) {
	if err := m.reachable(ctx, id); err != nil {
		return e, false, err
	}
	if err := checkSize(content); err != nil {
		return e, false, err
	}
	e, created, err = m.write(key{o, id}, len(content), func(f *files.Folder) (files.Entry, bool, error) { return f.Write(path, content) })
	return e, created, err
}

// AddToFile adds a part to a file that comes under a sender's word, and returns how large that is by now. The part begins at
// an offset, in bytes: the error is Conflict when the part before it is missing. One that comes again changes nothing. The
// file appears when FinishFile is called.
func (m *Manager) AddToFile(ctx context.Context, o Owner, id, path, word string, offset int64, part []byte) (size int64, err error) {
	if err := m.reachable(ctx, id); err != nil {
		return 0, err
	}
	if err := checkSize(part); err != nil {
		return 0, err
	}
	_, _, err = m.write(key{o, id}, len(part), func(f *files.Folder) (e files.Entry, created bool, err error) {
		size, err = f.Add(path, word, offset, part)
		return e, false, err
	})
	return size, err
}

// FinishFile is WriteFile with what has come under a sender's word: all of the size that he says.
func (m *Manager) FinishFile(ctx context.Context, o Owner, id, path, word string, size int64) (e files.Entry, created bool, err error) {
	if err := m.reachable(ctx, id); err != nil {
		return e, false, err
	}
	return m.write(key{o, id}, 0, func(f *files.Folder) (files.Entry, bool, error) { return f.Finish(path, word, size) })
}

func checkSize(content []byte) error {
	if len(content) <= MaxFile {
		return nil
	}
	return fault.New(fault.Invalid, "content: %s, at most %s in one call", words.Bytes(int64(len(content))), words.Bytes(MaxFile)).
		WithHint("send it in parts, by upload, or let code make it")
}

// fileWriter writes a file into an open workspace, and tells which it was, if that is whole.
type fileWriter func(*files.Folder) (e files.Entry, created bool, err error)

// maxMade is how often a workspace is made that is taken away again before a file is in it: by a session that ends, or by
// others whose files could not be written.
const maxMade = 8

// write writes a file, with room for so many bytes more.
func (m *Manager) write(k key, more int, do fileWriter) (e files.Entry, created bool, err error) {
	var stamp files.Stamp
	for range maxMade {
		if e, created, stamp, err = m.writeOnce(k, int64(more), do); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err == nil {
		m.wrote(k, e.Path, stamp)
	}
	return e, created, err
}

// writeOnce writes a file while its folder is kept from who would move or take it away, in this process and in others.
func (m *Manager) writeOnce(k key, more int64, do fileWriter) (e files.Entry, created bool, stamp files.Stamp, err error) {
	if _, _, err := m.workspaces.Acquire(k.workspace(), ""); err != nil {
		return e, false, stamp, err
	}
	defer m.letGo(k)
	f, err := m.workspaces.Open(k.workspace())
	if err != nil {
		return e, false, stamp, err
	}
	defer f.Close()
	if err := m.room(k, f.Folder, more); err != nil {
		return e, false, stamp, err
	}
	if e, created, err = do(f.Folder); err == nil && e.Path != "" {
		stamp, _ = f.Stamp(e.Path)
	}
	return e, created, stamp, err
}

// wrote tells the session, if it runs, that it is used, and which file no cell of it has written.
func (m *Manager) wrote(k key, path string, stamp files.Stamp) {
	m.mu.Lock()
	s := m.sessions[k]
	m.mu.Unlock()
	if s == nil || s.ended() {
		return
	}
	s.used()
	if path != "" {
		s.written.know(path, stamp)
		s.filesChanged()
	}
}

// letGo gives back a workspace that no session has.
func (m *Manager) letGo(k key) {
	m.workspaces.GiveBack(k.workspace(), func() bool {
		m.mu.Lock()
		s := m.sessions[k]
		m.mu.Unlock()
		return s == nil || s.gaveBack() // or it gives it back
	})
}

// DeleteFile deletes a file of a session's workspace, or an empty folder; with recursive, a folder with all that is in it.
func (m *Manager) DeleteFile(ctx context.Context, o Owner, id, path string, recursive bool) (files.Entry, error) {
	f, err := m.folder(ctx, m.use, o, id)
	if err != nil {
		return files.Entry{}, err
	}
	defer f.Close()
	e, err := f.Delete(path, recursive)
	if err == nil {
		m.deleted(key{o, id}, e.Path)
	}
	return e, err
}

// deleted tells the session, if it runs, which file or folder no cell of it has deleted.
func (m *Manager) deleted(k key, path string) {
	m.mu.Lock()
	s := m.sessions[k]
	m.mu.Unlock()
	if s != nil {
		s.written.forget(path)
		s.filesChanged()
	}
}

// filesChanged tells those who look at the session that its files have changed, of which no cell's end tells.
func (s *session) filesChanged() {
	s.mu.Lock()
	s.filed++
	s.mu.Unlock()
	s.changed()
}

// PathInside returns where the session's kernel sees a file of its workspace.
func (m *Manager) PathInside(o Owner, id, path string) string {
	if dir, ok := m.workspaces.Find(key{o, id}.workspace()); ok && m.bare {
		return filepath.Join(dir, path)
	}
	return files.Inside + "/" + path
}

// folder opens the workspace of an owner's session. The error wraps errNoFiles when there is a session and no workspace.
func (m *Manager) folder(ctx context.Context, find finder, o Owner, id string) (*workspaces.Held, error) {
	if err := m.reachable(ctx, id); err != nil {
		return nil, err
	}
	_, err := find(ctx, o, id)
	f, openErr := m.workspaces.Open(key{o, id}.workspace())
	switch {
	case openErr == nil:
		return f, nil
	case fault.KindOf(openErr) == fault.Busy:
		return nil, openErr
	case !errors.Is(openErr, fs.ErrNotExist):
		m.cfg.Logger.Error("workspace cannot be opened", "error", openErr)
		return nil, fault.New(fault.Unavailable, "the session's workspace cannot be opened: %w", files.Pathless(openErr)).
			WithHint("the operator must check the data folder")
	case err == nil || m.recorded(ctx, o, id):
		return nil, fault.New(fault.NotFound, "session %q %w", id, errNoFiles).WithHint("write_file makes one, and so does code")
	}
	return nil, fault.New(fault.NotFound, "there is no session %q", id).
		WithHint("list_sessions names the ones there are; write_file, or executing code with a session_id, makes it")
}

// reachable checks an id, and that workspaces are where this server can reach them.
func (m *Manager) reachable(ctx context.Context, id string) error {
	if err := sessionid.Validate(id); err != nil {
		return err
	}
	return m.workspaces.Reachable(ctx)
}
