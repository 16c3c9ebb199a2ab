package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/sessions/history"
)

func newBackup() *cobra.Command {
	var b backup
	cmd := &cobra.Command{
		Use:   "backup DEST",
		Short: "Copy the data folder while a server runs",
		Long: `Writes a backup of the data folder: the history with all outputs, as it is at one moment, and the files of all
workspaces, of those too that a container engine keeps in volumes. Servers may run meanwhile. DEST is a new folder, or a new
tar archive when its name ends in .tar, or - for such an archive on standard output. To restore: cellblock restore; a server can also be started with that folder as --data-dir.

Keys and tokens are not in it unless --with-secrets is given: without them a server makes new ones, and clients need a new
token. What runs meanwhile is in it as far as it has got; a file that is written meanwhile may be half of the old and half
of the new.`,
		Example: `  cellblock backup /backups/cellblock-2026-01-31
  cellblock backup --no-files history.tar
  docker compose exec -T cellblock /cellblock backup - > cellblock.tar
  cellblock restore --data-dir /srv/cellblock /backups/cellblock-2026-01-31`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			outliveReaders() // what is half done is taken away
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			b.data, b.dest, b.report, b.stdout = cfg.DataDir, args[0], cmd.ErrOrStderr(), cmd.OutOrStdout()
			b.openVolumes = func(ctx context.Context) (volumes, error) {
				return openVolumes(ctx, cfg, slog.New(slog.DiscardHandler))
			}
			return b.run(ctx)
		},
	}
	cmd.Flags().BoolVar(&b.withSecrets, "with-secrets", false, "take keys and tokens along: guard the backup like them")
	cmd.Flags().BoolVar(&b.noFiles, "no-files", false, "leave out the workspaces' files")
	return cmd
}

// secretFiles are those of the data folder that let who has them act as somebody else. The file "installation" is in no
// backup: it names the kernels of a server, and a restored one must not end those of another.
var secretFiles = []string{"dev_private_key.pem", "dev_public_key.pem", "dev_token.txt", "mcp_session_key"}

// backup is one copy of a data folder.
type backup struct {
	data, dest           string
	withSecrets, noFiles bool
	report, stdout       io.Writer
	// openVolumes returns what an engine keeps of workspaces, nil if that is nothing.
	openVolumes func(context.Context) (volumes, error)

	out   archive
	stage string          // the folder in which the copy is made; dest, which is beside it, appears when that is whole
	made  map[string]bool // the folders that are in it

	files    int   // copied so far
	bytes    int64 // of them
	told     time.Time
	troubles troubles
}

// troubles count what a backup could not copy as it should.
type troubles struct {
	unreadable, changed, special, lost int
	// empty counts workspaces that have no files here, when no engine can be asked; engine is why one could not be read.
	empty  int
	engine error
}

// toStdout as a destination has the archive written as it is made. Of one that has failed there is a part.
const toStdout = "-"

// run makes the backup, whole or not at all.
func (b *backup) run(ctx context.Context) (err error) {
	if err := b.prepare(); err != nil {
		return err
	}
	defer func() { _ = removeStage(b.stage) }()
	b.told, b.made = time.Now(), map[string]bool{}
	if err = b.copyAll(ctx); err != nil {
		b.out.abandon()
	} else if err = b.out.close(); err == nil && b.dest != toStdout {
		err = b.publish()
	}
	if err != nil {
		return b.explain(ctx, err)
	}
	b.sayEnd()
	return nil
}

// explain says what there is of a backup that has failed.
func (b *backup) explain(ctx context.Context, err error) error {
	left, hint := "no backup was written", "Look at the disk and the permissions of "+filepath.Dir(b.dest)+"."
	if b.dest == toStdout {
		left, hint = "what was written is only a part of a backup", "Look at who reads it."
	}
	var known *fault.Error
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Cancelled, "stopped; %s", left)
	case errors.As(err, &known):
		return known
	}
	return fault.New(fault.Unavailable, "%s: %w", left, err).WithHint("%s", hint)
}

// prepare checks where the backup is to be and opens it there under another name.
func (b *backup) prepare() (err error) {
	if b.dest == toStdout {
		return b.prepareStdout()
	}
	if b.dest, err = filepath.Abs(b.dest); err != nil {
		return err
	}
	if ending := filepath.Ext(b.dest); slices.Contains(otherArchives, strings.ToLower(ending)) {
		return fault.New(fault.Invalid, "a backup is a folder or a .tar archive, and no %s", ending).
			WithHint("Name it %s.tar, and compress that, or let it be a folder.", strings.TrimSuffix(strings.TrimSuffix(b.dest, ending), ".tar"))
	}
	if _, err := os.Lstat(b.dest); !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Conflict, "%s is there already", b.dest).WithHint("Choose a new name; nothing is overwritten.")
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(b.dest))
	if err != nil {
		return fault.New(fault.NotFound, "the folder for the backup: %w", err).WithHint("Make it first.")
	}
	if data, err := filepath.EvalSymlinks(b.data); err == nil && within(data, parent) {
		return fault.New(fault.Invalid, "the backup would be inside of the data folder %s", b.data).WithHint("Choose a place outside, best on another disk.")
	}
	if b.stage, err = os.MkdirTemp(parent, stagePrefix); err != nil {
		return fault.New(fault.Unavailable, "the backup cannot be written: %w", err).WithHint("Choose a folder that this user may write.")
	}
	if strings.HasSuffix(b.dest, ".tar") {
		b.out, err = newFileArchive(b.stage)
	} else {
		b.out, err = newFolderArchive(b.stage)
	}
	if err != nil {
		return errors.Join(err, removeStage(b.stage))
	}
	return nil
}

// prepareStdout has the copy of the database made in the data folder: where standard output is all that there is, as in a container
// whose root cannot be written, there is no other place for it.
func (b *backup) prepareStdout() (err error) {
	if f, ok := b.stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return fault.New(fault.Invalid, "an archive is nothing for a terminal").WithHint("Redirect it: cellblock backup - > cellblock.tar")
	}
	if err := history.Exists(b.data); err != nil {
		return err
	}
	removeStages(b.data)
	if b.stage, err = os.MkdirTemp(b.data, stagePrefix); err != nil {
		return fault.New(fault.Unavailable, "the history cannot be copied: %w", err).WithHint("Run this as the server's user.")
	}
	lock := stageLock(b.stage)
	if err := lock.RLock(); err != nil {
		return errors.Join(err, removeStage(b.stage))
	}
	b.out = &pipeArchive{tarArchive{b.stage, tar.NewWriter(b.stdout)}, lock}
	return nil
}

// stagePrefix begins the names of folders in which copies are made.
const stagePrefix = ".cellblock-backup-"

// stageLock is held by who makes a copy in a folder.
func stageLock(stage string) *flock.Flock { return flock.New(stage, flock.SetFlag(os.O_RDONLY)) }

// removeStage removes a copy, also one with folders in it in which nothing may be written.
func removeStage(stage string) error {
	if os.RemoveAll(stage) == nil {
		return nil
	}
	_ = filepath.WalkDir(stage, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(stage)
}

// removeStages removes the copies in a data folder that backups and restores have left which were killed: all of a history is in them.
func removeStages(data string) {
	left, _ := filepath.Glob(filepath.Join(data, stagePrefix+"*")) // its pattern is right
	for _, stage := range left {
		lock := stageLock(stage)
		if free, err := lock.TryLock(); free && err == nil {
			_ = removeStage(stage) // or the next one does
		}
		_ = lock.Close()
	}
}

// otherArchives are endings of what somebody may expect, and does not get.
var otherArchives = []string{".zip", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".7z", ".rar"}

// within tells whether a path is a folder or below it.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func (b *backup) copyAll(ctx context.Context) error {
	if err := b.copyHistory(ctx); err != nil {
		return err
	}
	if err := b.copyImageNames(); err != nil {
		return err
	}
	if b.withSecrets {
		for _, name := range secretFiles {
			if _, err := b.copyOwn(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if b.noFiles {
		return nil
	}
	empty, err := b.copyWorkspaces(ctx)
	if err != nil {
		return err
	}
	return b.copyVolumes(ctx, empty)
}

// copyHistory copies the database and the files of outputs that it names.
func (b *backup) copyHistory(ctx context.Context) (err error) {
	b.say("copying the history of %s", b.data)
	snap, err := history.TakeSnapshot(ctx, b.data, b.out.place(history.FileName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	usage, err := snap.Usage(ctx)
	if err != nil {
		return err
	}
	if err := b.addDatabase(); err != nil {
		return err
	}
	for file, err := range snap.Files(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		whole, err := b.copyOwn(filepath.FromSlash(file.Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !whole { // it was so before
			b.troubles.lost++
		}
	}
	b.say("history: %s, %s, %s of outputs (%s)", words.Count(int64(usage.Sessions), "session"), words.Count(int64(usage.Executions), "cell"),
		words.Count(int64(b.files), "file"), words.Bytes(b.bytes))
	return nil
}

// publish gives the backup its name, if nobody else has taken it meanwhile.
func (b *backup) publish() error {
	if _, err := os.Lstat(b.dest); !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Conflict, "%s has appeared meanwhile", b.dest).WithHint("Choose another name.")
	}
	return os.Rename(b.out.path(), b.dest)
}

func (b *backup) say(format string, args ...any) {
	fmt.Fprintf(b.report, format+"\n", args...)
	b.told = time.Now()
}

// tellPause is how long a backup is silent.
const tellPause = 5 * time.Second

// count notes that a file was copied, and now and then says how far the backup is.
func (b *backup) count(bytes int64) {
	b.files, b.bytes = b.files+1, b.bytes+bytes
	if time.Since(b.told) > tellPause {
		b.say("… %d files, %s so far", b.files, words.Bytes(b.bytes))
	}
}

// sayEnd says what is in the backup, what is not, and how it is used.
func (b *backup) sayEnd() {
	for _, trouble := range []struct {
		n          int
		noun, what string
	}{
		{b.troubles.lost, "output", "not whole in it: files are missing or damaged"},
		{b.troubles.unreadable, "path", "not in it, because unreadable (files or folders)"},
		{b.troubles.changed, "file", "written while copied, maybe half old, half new"},
		{b.troubles.special, "special file", "not in it (sockets, pipes and the like)"},
	} {
		if trouble.n > 0 {
			b.say("note: %s %s", words.Count(int64(trouble.n), trouble.noun), trouble.what)
		}
	}
	if n := b.troubles.empty; n > 0 {
		b.say("note: %s without files here; what a container engine keeps in volumes is not in it", words.Count(int64(n), "workspace"))
	}
	if err := b.troubles.engine; err != nil {
		b.say("note: workspaces that the container engine keeps in volumes are not in it, or not whole: %v", err)
	}
	if b.noFiles {
		b.say("not in it: the workspaces' files (--no-files)")
	}
	if b.withSecrets {
		b.say("in it: keys and tokens; whoever can read the backup can use them")
	} else {
		b.say("not in it: keys and tokens (--with-secrets takes them along); a server makes new ones")
	}
	if b.dest == toStdout {
		b.say("the backup is whole; to restore: cellblock restore --data-dir FOLDER ARCHIVE")
		return
	}
	b.say("the backup is %s; to restore: cellblock restore --data-dir FOLDER %s", b.dest, b.dest)
}
