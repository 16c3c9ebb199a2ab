package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/sessions/history"
)

func newRestore() *cobra.Command {
	var r restore
	return &cobra.Command{
		Use:   "restore SOURCE",
		Short: "Make a data folder from a backup",
		Long: `Makes the data folder (--data-dir) from a backup: a folder, a tar archive, or - for such an archive on standard input. It is
restored whole or not at all, and nothing is overwritten: the data folder is new, or has nothing in it that the backup has. Run this
as the server's user, or as root, who gives the files back to their owners, where kernels run as another user.`,
		Example: `  cellblock restore --data-dir /srv/cellblock /backups/cells-2026-01-31.tar
  docker compose run --rm -T cellblock restore - < cells.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			r.source, r.data, r.report, r.stdin = args[0], cfg.DataDir, cmd.ErrOrStderr(), cmd.InOrStdin()
			return r.run(ctx)
		},
	}
}

// restore is the way back of a backup.
type restore struct {
	source, data string
	report       io.Writer
	stdin        io.Reader

	stage   string
	out     *folderArchive
	files   int
	bytes   int64
	foreign int // files of others, which are of who restores them
	links   map[string]bool
}

// fromStdin as a source is an archive on standard input.
const fromStdin = "-"

// endOfArchive is how many zeros an archive ends with (POSIX pax, "ustar Interchange Format").
const endOfArchive = 1024

// run restores the backup into a folder within the data folder, which may be all that can be written, looks at it, and then moves it out.
func (r *restore) run(ctx context.Context) (err error) {
	if err := r.prepare(); err != nil {
		return err
	}
	defer func() { _ = removeStage(r.stage) }()
	lock := stageLock(r.stage)
	if err := lock.RLock(); err != nil {
		return err
	}
	defer lock.Close()
	if r.out, err = newFolderArchive(r.stage); err != nil {
		return err
	}
	if err := errors.Join(r.copyAll(ctx), r.out.close()); err != nil {
		return r.explain(ctx, err)
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.publish(); err != nil {
		return err
	}
	r.sayEnd()
	return nil
}

// prepare checks the source as far as can be done before it is read, and makes the data folder.
func (r *restore) prepare() error {
	switch info, err := os.Stat(r.source); {
	case r.source == fromStdin:
		if f, ok := r.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return fault.New(fault.Invalid, "a terminal has no archive to give").WithHint("Redirect one: cellblock restore - < cellblock.tar")
		}
	case err != nil:
		return fault.New(fault.NotFound, "the backup: %w", err).WithHint("Name the folder or the .tar archive that cellblock backup has made.")
	case info.IsDir():
		if err := history.Exists(r.source); err != nil {
			return fault.New(fault.Invalid, "%s is no backup: there is no %s in it", r.source, history.FileName).WithHint("Name the folder that cellblock backup has made.")
		}
	}
	if history.Exists(r.data) == nil {
		return r.taken(history.FileName)
	}
	if err := os.MkdirAll(r.data, 0o711); err != nil {
		return fault.New(fault.Unavailable, "%w", err).WithHint("Choose a folder that this user may write: --data-dir.")
	}
	removeStages(r.data)
	stage, err := os.MkdirTemp(r.data, stagePrefix)
	if err != nil {
		return fault.New(fault.Unavailable, "the data folder cannot be written: %w", err).WithHint("Run this as the server's user, or as root.")
	}
	r.stage = stage
	return nil
}

// taken is the error of a data folder that has what the backup has.
func (r *restore) taken(name string) error {
	return fault.New(fault.Conflict, "%s has %s already, and nothing is overwritten", r.data, name).
		WithHint("Stop the server, put that folder aside (mv), and run this again; or choose another one with --data-dir.")
}

func (r *restore) copyAll(ctx context.Context) error {
	switch info, err := os.Stat(r.source); {
	case r.source == fromStdin:
		return r.unpack(ctx, r.stdin)
	case err != nil:
		return err
	case info.IsDir():
		if err := r.checkLinks(); err != nil {
			return err
		}
		b := backup{data: r.source, withSecrets: true, report: io.Discard, told: time.Now(), made: map[string]bool{}, out: r.out}
		err := b.copyAll(ctx)
		r.files, r.bytes = b.files, b.bytes
		if n := b.troubles.unreadable; err == nil && n > 0 {
			return fault.New(fault.Unavailable, "nothing was restored: %s of %s cannot be read", words.Count(int64(n), "path"), r.source).
				WithHint("Run this as root, or as the user whose backup it is.")
		}
		return err
	}
	f, err := os.Open(r.source)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.unpack(ctx, f)
}

// unpack reads an archive to its end.
func (r *restore) unpack(ctx context.Context, from io.Reader) error {
	r.links = map[string]bool{}
	end := &zeros{from: from}
	entries := tar.NewReader(end)
	for {
		end.n = 0 // what a file ends with does not count
		h, err := entries.Next()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return end.rest()
		case err != nil:
			return unreadable(err)
		}
		if err := r.add(h, entries); err != nil {
			return err
		}
	}
}

func unreadable(err error) error {
	return fault.New(fault.Invalid, "the archive cannot be read to its end: %w", err).
		WithHint("It must be a whole .tar of cellblock backup, and not compressed: gunzip -c FILE | cellblock restore -. Else take another one.")
}

// add restores one entry.
func (r *restore) add(h *tar.Header, content io.Reader) error {
	switch {
	case h.Name == incomplete:
		return fault.New(fault.Invalid, "the archive is a part of a backup: what made it has failed").WithHint("Take another one.")
	case !filepath.IsLocal(filepath.FromSlash(h.Name)) || !slices.Contains([]byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink}, h.Typeflag),
		h.Typeflag == tar.TypeSymlink && !mayLink(path.Clean(h.Name), h.Linkname), r.throughLink(path.Clean(h.Name)), isSparse(h):
		return noBackups("the archive", h.Name)
	}
	if h.Typeflag == tar.TypeSymlink {
		r.links[path.Clean(h.Name)] = true
	}
	if h.Typeflag == tar.TypeReg {
		r.files, r.bytes = r.files+1, r.bytes+h.Size
		if euid := os.Geteuid(); euid > 0 && h.Uid != euid {
			r.foreign++
		}
	}
	read := &failing{from: content}
	err := r.out.add(h, read)
	if read.err != nil {
		return unreadable(read.err)
	}
	return err
}

// noBackups is the error of what is in a backup that none has.
func noBackups(backup, name string) error {
	return fault.New(fault.Invalid, "%s has %.200q in it, which no backup has", backup, name).WithHint("Take one of cellblock backup.")
}

// checkLinks refuses a folder with links that no backup has: what is copied of the server's own files is read through them. What is in
// the workspaces is read without following any.
func (r *restore) checkLinks() error {
	return fs.WalkDir(os.DirFS(r.source), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path.Dir(name) == "workspaces":
			return fs.SkipDir
		case e.Type()&fs.ModeSymlink == 0:
			return nil
		}
		to, err := os.Readlink(filepath.Join(r.source, filepath.FromSlash(name)))
		if err == nil && !mayLink(name, to) {
			err = noBackups(r.source, name)
		}
		return err
	})
}

// mayLink tells whether a backup has such a link. Those in a workspace are users', lead anywhere and are followed by nobody but their
// kernels; the server's own lead from one workspace to another. The server would follow all others: out of the data folder.
func mayLink(name, to string) bool {
	workspace, inside, isInside := strings.Cut(strings.TrimPrefix(name, "workspaces/"), "/")
	switch {
	case !strings.HasPrefix(name, "workspaces/"):
		return false
	case isInside:
		return inside != ""
	}
	return strings.HasSuffix(workspace, ".from") && filepath.IsLocal(to) && !strings.Contains(to, "/")
}

// throughLink tells whether an entry lies behind a link that came before it.
func (r *restore) throughLink(name string) bool {
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if r.links[at] {
			return true
		}
	}
	return false
}

// isSparse tells whether an entry has holes, of which an archive of some bytes has as many as fill a disk. Package tar fills them.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// failing keeps the error of what it reads from.
type failing struct {
	from io.Reader
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// zeros counts how many zeros what was read ends with: package tar takes an archive that was cut off between two entries for whole.
type zeros struct {
	from io.Reader
	n    int
}

func (z *zeros) Read(p []byte) (int, error) {
	n, err := z.from.Read(p)
	kept := len(bytes.TrimRight(p[:n], "\x00"))
	if kept > 0 {
		z.n = 0
	}
	z.n += n - kept
	return n, err
}

// rest reads what is behind the archive's end, so that who writes it is not told that nobody wants it.
func (z *zeros) rest() error {
	if _, err := io.Copy(io.Discard, z); err != nil {
		return unreadable(err)
	}
	if z.n < endOfArchive {
		return unreadable(io.ErrUnexpectedEOF)
	}
	return nil
}

// explain says why nothing was restored.
func (r *restore) explain(ctx context.Context, err error) error {
	var known *fault.Error
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Cancelled, "stopped; nothing was restored")
	case errors.As(err, &known):
		return known
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Unavailable, "nothing was restored: %w", err).WithHint("Run this as root, who may give files to their owners.")
	}
	return fault.New(fault.Unavailable, "nothing was restored: %w", err).WithHint("Look at the disk of %s.", r.data)
}

// check tells whether a server of this version can use what was restored.
func (r *restore) check(ctx context.Context) error {
	if history.Exists(r.out.path()) != nil {
		return fault.New(fault.Invalid, "the backup has no %s in it: it is none of cellblock's", history.FileName).
			WithHint("Take one of cellblock backup.")
	}
	return history.Check(ctx, r.out.path())
}

// publish moves everything into the data folder, the history last: without it the folder is no server's.
func (r *restore) publish() error {
	restored := r.out.path()
	entries, err := os.ReadDir(restored)
	if err != nil {
		return err
	}
	there, err := os.ReadDir(r.data)
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(last(a), last(b)) })
	for _, e := range entries {
		if slices.ContainsFunc(there, func(t fs.DirEntry) bool { return t.Name() == e.Name() }) {
			return r.taken(e.Name())
		}
	}
	if len(there) == 1 { // the stage
		if err := likeIn(r.data, restored); err != nil {
			return r.stuck(err)
		}
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(restored, e.Name()), filepath.Join(r.data, e.Name())); err != nil {
			return r.stuck(err)
		}
	}
	return nil
}

func (r *restore) stuck(err error) error {
	return fault.New(fault.Unavailable, "what was restored cannot be moved into the data folder: %w", err).WithHint("Empty %s, and run this again.", r.data)
}

// last is 1 for what comes behind all others.
func last(e fs.DirEntry) int {
	if e.Name() == history.FileName {
		return 1
	}
	return 0
}

// likeIn gives a folder the mode of another one, and its owner where that can be done.
func likeIn(folder, other string) error {
	info, err := os.Stat(other)
	if err != nil {
		return err
	}
	h, err := headerOf(info, ".", "")
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		err = os.Chown(folder, h.Uid, h.Gid)
	}
	return errors.Join(err, os.Chmod(folder, info.Mode().Perm()))
}

func (r *restore) sayEnd() {
	say := func(format string, args ...any) { fmt.Fprintf(r.report, format+"\n", args...) }
	if r.foreign > 0 {
		say("note: %s had other owners, and are this user's now; root keeps them", words.Count(int64(r.foreign), "file"))
	}
	if _, err := os.Stat(filepath.Join(r.data, secretFiles[0])); err != nil {
		say("keys and tokens were not in the backup: a server makes new ones, and clients need a new token")
	}
	say("restored: %s (%s) in %s; start a server with --data-dir %s", words.Count(int64(r.files), "file"), words.Bytes(r.bytes), r.data, r.data)
}
