//go:build linux

package timerslack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain is also the program that widens its slack and tells that of each of its threads.
func TestMain(m *testing.M) {
	if os.Getenv("TIMERSLACK_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	Widen()
	threads, _ := filepath.Glob("/proc/self/task/*")
	for _, thread := range threads {
		slack, err := os.ReadFile("/proc/" + filepath.Base(thread) + "/timerslack_ns")
		fmt.Println(strings.TrimSpace(string(slack)), err)
	}
	fmt.Println(os.Args[1:], os.Getpid())
}

// All threads have it, the monitor too, and the program is the same process with the same arguments.
func TestWiden(t *testing.T) {
	cmd := exec.Command(os.Args[0], "one", "two")
	cmd.Env = append(os.Environ(), "TIMERSLACK_PROGRAM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	threads, last := lines[:len(lines)-1], lines[len(lines)-1]
	if len(threads) < 2 || last != fmt.Sprint([]string{"one", "two"}, cmd.Process.Pid) {
		t.Errorf("%q", lines)
	}
	for _, line := range threads {
		if line != "2000000 <nil>" {
			t.Errorf("a thread's slack: %s", line)
		}
	}
}

// A program whose slack cannot be set runs all the same, and is not executed again and again.
func TestWidenRealTime(t *testing.T) {
	out, err := exec.Command("chrt", "--fifo", "1", "true").CombinedOutput()
	if err != nil {
		t.Skipf("no real-time scheduling here: %v %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "chrt", "--fifo", "1", os.Args[0], "one")
	cmd.Env = append(os.Environ(), "TIMERSLACK_PROGRAM=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "[one]") {
		t.Errorf("%v\n%s", err, out)
	}
}
