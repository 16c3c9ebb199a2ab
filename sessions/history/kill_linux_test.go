package history

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

func init() { childJob = child }

// child writes into the folder that is its argument. It says on stdout what was committed, line by line, as the last
// thing before it goes on.
func child(job string) {
	what, dir, _ := strings.Cut(job, ":")
	if what == "small" {
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fail(err)
		}
	}
	s, err := Open(context.Background(), Options{Folder: dir, Slot: "child", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fail(err)
	}
	found, err := s.Open(context.Background(), sessions.StoredSession{ID: "s", Language: "python", Created: time.Now()})
	if err != nil {
		fail(err)
	}
	number := found.Executions + 1
	if err := s.Commit(context.Background(), found.Ref, sessions.ExecutionQueued{Number: number, Queued: time.Now()}); err != nil {
		fail(err)
	}
	for next := 0; ; {
		batch := childBatch(number, next)
		err := s.Commit(context.Background(), found.Ref, sessions.OutputsKept{Number: number, First: next, Outputs: batch})
		if err != nil {
			fail(err)
		}
		next += len(batch)
		fmt.Println(number, next)
	}
}

func fail(err error) {
	fmt.Println("failed", fault.KindOf(err), fault.Text(err))
	os.Exit(1)
}

// childBatch is what the child writes at a time: some lines, and now and then something large enough for a file.
func childBatch(number, next int) (batch []kernels.Output) {
	for i := range 1 + next%7 {
		batch = append(batch, childOutput(number, next+i))
	}
	return batch
}

func childOutput(number, index int) kernels.Output {
	text := fmt.Sprintf("%d.%d\n", number, index)
	if index%50 == 49 {
		text += strings.Repeat("large ", 20_000)
	}
	return kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: text, Seq: uint64(index + 1)}
}

func startChild(t *testing.T, job string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+job)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// A process is killed again and again while it writes. Whatever it said was committed is there afterwards, in order and
// whole, and the next one goes on behind it.
func TestKilledWriterLosesNothingCommitted(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 3
	}
	f := newFolder(t)
	committed := map[int]int{} // outputs by execution
	for round := range rounds {
		cmd, lines := startChild(t, "write:"+f.path)
		stop := 1 + round*13%97
		for said := 0; said < stop && lines.Scan(); said++ {
			number, next := parseCommitted(t, lines.Text())
			committed[number] = next
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it said before it died counts too
			number, next := parseCommitted(t, lines.Text())
			committed[number] = next
		}
		_ = cmd.Wait()
		checkCommitted(t, f, committed)
	}
	t.Logf("%d kills, %d executions, nothing lost", rounds, len(committed))
}

func parseCommitted(t *testing.T, line string) (number, next int) {
	t.Helper()
	if _, err := fmt.Sscan(line, &number, &next); err != nil {
		t.Fatalf("the child said %q", line)
	}
	return number, next
}

func checkCommitted(t *testing.T, f *folder, committed map[int]int) {
	t.Helper()
	s, err := Open(t.Context(), Options{Folder: f.path, Slot: "reader", Alive: f.alive, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("after the kill: %v", err)
	}
	defer s.Close()
	session, err := s.Session(t.Context(), sessions.Owner{}, "s")
	if err != nil || session.Held {
		t.Fatalf("after the kill the session is %+v, %v", session, err)
	}
	for number, want := range committed {
		next := 0
		for out, err := range s.Outputs(t.Context(), session.Ref, number, 0) {
			if err != nil || out.Index != next || out.Output.Text != childOutput(number, next).Text {
				t.Fatalf("output %d of %d is %d: %.40q, %v", next, number, out.Index, out.Output.Text, err)
			}
			next++
		}
		if next < want {
			t.Errorf("execution %d has %d outputs, and %d were committed", number, next, want)
		}
	}
	settled(t, s)
	wantNamedFilesOnly(t, s)
	var result string
	if err := s.read.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("integrity: %s, %v", result, err)
	}
}

// A disk that gives no more room, from the first write that does not fit.
func TestFilesThatMayNotGrow(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := startChild(t, "small:"+dir)
	next := 0
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "failed") {
		_, next = parseCommitted(t, lines.Text())
	}
	last := lines.Text()
	for lines.Scan() {
		last += "\n" + lines.Text()
	}
	_ = cmd.Wait()
	if !strings.HasPrefix(last, "failed "+fmt.Sprint(fault.Unavailable)) || !strings.Contains(last, "Hint:") || next == 0 {
		t.Fatalf("the child ended with %q after %d outputs", last, next)
	}
	t.Log(last)
	f := &folder{path: dir, slots: map[string]*Store{}}
	checkCommitted(t, f, map[int]int{1: next})
}

// mountSmall mounts a disk of a few megabytes, which is full soon.
func mountSmall(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=4m"); err != nil {
		needDisk(t, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	dir := mountSmall(t)
	f := &folder{path: dir, slots: map[string]*Store{}}
	s := f.start(t)
	ref := claimed(t, s)
	next := 0
	fill := func() error {
		for next < 1<<20 {
			batch := []kernels.Output{childOutput(1, next), childOutput(1, next+1)}
			if err := s.Commit(t.Context(), ref, sessions.OutputsKept{Number: 1, First: next, Outputs: batch}); err != nil {
				return err
			}
			next += len(batch)
		}
		return nil
	}
	// Something takes the rest of the disk.
	ballast := dir + "/ballast"
	if err := takeAll(ballast); err != nil {
		t.Fatal(err)
	}
	err := fill()
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "full") || !strings.Contains(fault.Hint(err), "space") {
		t.Fatalf("on a full disk: %v (%s)", err, fault.Hint(err))
	}
	if health := s.Health(); fault.KindOf(health) != fault.Unavailable {
		t.Errorf("Health: %v", health)
	}
	checkOutputs(t, s, ref, next) // reading goes on
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), ref, sessions.OutputsKept{Number: 1, First: next, Outputs: []kernels.Output{childOutput(1, next)}}); err != nil {
		t.Fatalf("after there was room again: %v", err)
	}
	next++
	if health := s.Health(); health != nil {
		t.Errorf("Health after that: %v", health)
	}
	checkOutputs(t, s, ref, next)
}

// takeAll fills a disk with a file.
func takeAll(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for size := 1 << 16; size > 0; size /= 2 {
		for err == nil {
			_, err = file.Write(make([]byte, size))
		}
		err = nil
	}
	return nil
}

func checkOutputs(t *testing.T, s *Store, ref sessions.SessionRef, want int) {
	t.Helper()
	n := 0
	for out, err := range s.Outputs(t.Context(), ref, 1, 0) {
		if err != nil || out.Output.Text != childOutput(1, n).Text {
			t.Fatalf("output %d is %.40q, %v", n, out.Output.Text, err)
		}
		n++
	}
	if n != want {
		t.Errorf("%d outputs are there, want %d", n, want)
	}
}
