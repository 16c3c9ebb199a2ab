//go:build linux && (amd64 || arm64)

package quota

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellblock/sessions/quota/quotatest"
)

// user is who fills folders. For root the limits of ext4 do not hold.
const user = 59437

// onEach runs a test on each kind of file system, with a folder that other users may pass.
func onEach(t *testing.T, test func(t *testing.T, root string)) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) { test(t, quotatest.Mount(t, kind)) })
	}
}

// folder makes a folder of the user's.
func folder(t *testing.T, root, name string) string {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, user, user)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func bounded(t *testing.T, root, name string, limit int64) string {
	t.Helper()
	dir := folder(t, root, name)
	if err := Bound(dir, limit); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a shell command in a folder as the user.
func run(dir, command string) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %.300s", err, out)
	}
	return nil
}

// fill writes n MiB into a new file of the folder's.
func fill(dir, name string, n int) error {
	return run(dir, fmt.Sprintf("head -c %dM /dev/zero > %s", n, name))
}

// exceeded tells whether a limit was met: XFS calls it a full disk.
func exceeded(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Disk quota exceeded") || strings.Contains(err.Error(), "No space left"))
}

func TestBytesAreLimited(t *testing.T) {
	onEach(t, func(t *testing.T, root string) {
		if err := Check(root); err != nil {
			t.Fatal(err)
		}
		dir, other := bounded(t, root, "a", 8<<20), bounded(t, root, "b", 8<<20)
		if err := fill(dir, "small", 4); err != nil {
			t.Fatal(err)
		}
		if err := run(dir, "mkdir -p deep/er"); err != nil {
			t.Fatal(err)
		}
		if err := fill(dir, "deep/er/big", 20); !exceeded(err) {
			t.Errorf("beyond the limit: %v", err)
		}
		info, err := os.Stat(filepath.Join(dir, "deep", "er", "big"))
		if err != nil || info.Size() == 0 || info.Size() > 4<<20 {
			t.Errorf("%v, %v", info, err)
		}
		if err := fill(other, "mine", 6); err != nil {
			t.Errorf("the neighbour: %v", err)
		}
		if err := run(dir, "rm deep/er/big && mv small deep/er/"); err != nil {
			t.Error(err)
		}
		if err := fill(dir, "again", 3); err != nil {
			t.Errorf("there is room again: %v", err)
		}
		if err := Bound(dir, 32<<20); err != nil { // the operator gives more
			t.Fatal(err)
		}
		if err := fill(dir, "more", 16); err != nil {
			t.Errorf("with another limit: %v", err)
		}
	})
}

func TestFilesAreLimited(t *testing.T) {
	onEach(t, func(t *testing.T, root string) {
		dir := bounded(t, root, "a", 1<<20)
		if err := run(dir, "seq 900 | xargs touch"); err != nil {
			t.Fatal(err)
		}
		if err := run(dir, "seq 901 1100 | xargs touch"); !exceeded(err) {
			t.Error(err)
		}
	})
}

// What was there before quotas were cannot be bounded: its files could not be moved within it any more.
func TestFolderWithFilesStaysAsItIs(t *testing.T) {
	onEach(t, func(t *testing.T, root string) {
		dir := folder(t, root, "a")
		if err := fill(dir, "old", 1); err != nil {
			t.Fatal(err)
		}
		if err := Bound(dir, 2<<20); err != nil {
			t.Fatal(err)
		}
		if err := fill(dir, "new", 4); err != nil {
			t.Error(err)
		}
	})
}

func TestFilesMoveWithinAProject(t *testing.T) {
	onEach(t, func(t *testing.T, root string) {
		from, to := bounded(t, root, "from", 8<<20), bounded(t, root, "to", 8<<20)
		old := folder(t, root, "unbound")
		if err := errors.Join(fill(from, "data", 6), fill(old, "data", 1)); err != nil {
			t.Fatal(err)
		}
		move := func(from, to string) error {
			return os.Rename(filepath.Join(from, "data"), filepath.Join(to, "data"))
		}
		if err := move(from, to); !errors.Is(err, syscall.EXDEV) {
			t.Fatalf("another project: %v", err)
		}
		if err := Join(from, to); err != nil {
			t.Fatal(err)
		}
		if err := move(from, to); err != nil {
			t.Fatal(err)
		}
		if err := Join(from, to); err != nil { // who was killed in between does it again
			t.Fatal(err)
		}
		if err := fill(to, "more", 4); !exceeded(err) {
			t.Errorf("what came along counts: %v", err)
		}
		third := bounded(t, root, "third", 8<<20)
		if err := Join(old, third); err != nil {
			t.Fatal(err)
		}
		if err := move(old, third); err != nil {
			t.Errorf("from a folder without: %v", err)
		}
		if err := fill(third, "big", 20); err != nil {
			t.Errorf("it is bounded now: %v", err)
		}
	})
}

func TestLiftedLimit(t *testing.T) {
	onEach(t, func(t *testing.T, root string) {
		dir := bounded(t, root, "a", 1<<20)
		if err := Lift(dir); err != nil {
			t.Fatal(err)
		}
		if err := fill(dir, "big", 4); err != nil {
			t.Error(err)
		}
	})
}

func TestCheckSaysWhatIsMissing(t *testing.T) {
	err := Check("/proc")
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "prjquota") {
		t.Errorf("%v", err)
	}
	if err := Check("/nowhere"); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("%v", err)
	}
}
