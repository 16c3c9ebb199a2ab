//go:build linux

// Package chaos harms a running installation in every way that an operator has seen, again and again, while sessions work
// on it, and holds what they are and what they are told against a model of what they must be.
package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

// size is the variable that asks for this test: "short", or "full".
const size = "CELLBLOCK_CHAOS"

func TestMain(m *testing.M) {
	if os.Getenv(size) == "" {
		os.Exit(m.Run()) // nothing is to be built for it
	}
	os.Exit(withClock(m))
}

// withClock runs the tests with servers that go by the clock of the test.
func withClock(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cb-clock")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	path, err := overlay(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return rig.Run(m, "-overlay", path)
}

// faultVariable is a pattern for the names of the faults that are to strike, where not all are, and timesVariable how often
// each is to, where that is not what the size says.
const (
	faultVariable = "CELLBLOCK_CHAOS_FAULT"
	timesVariable = "CELLBLOCK_CHAOS_TIMES"
)

// need skips where this test was not asked for: it takes its time, and stops an engine. It returns how often each fault is to
// strike, and how many sessions.
func need(t *testing.T) (seed uint64, times, sessions int) {
	asked := os.Getenv(size)
	if asked == "" {
		t.Skip("SKIPPED: it has a step of its own, make chaos")
	}
	kernelstest.Need(t, os.Geteuid() == 0, "root")
	t.Parallel() // the two have nothing in common
	times, sessions = 2, 6
	if asked == "full" {
		times, sessions = 15, 8
	}
	return number(t, "CELLBLOCK_CHAOS_SEED", uint64(time.Now().UnixNano())), int(number(t, timesVariable, uint64(times))), sessions
}

// number is the one that a variable has, or the one to take without.
func number(t *testing.T, variable string, without uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return without
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// asked are those of some faults that are to strike.
func asked(t *testing.T, all []fault) []fault {
	t.Helper()
	pattern, err := regexp.Compile(os.Getenv(faultVariable))
	if err != nil {
		t.Fatalf("%s: %v", faultVariable, err)
	}
	some := slices.DeleteFunc(slices.Clone(all), func(f fault) bool { return !pattern.MatchString(f.name) })
	if len(some) == 0 {
		t.Fatalf("%s: no fault is called %s", faultVariable, pattern)
	}
	return some
}

func TestSandbox(t *testing.T) {
	seed, times, sessions := need(t)
	_, err := exec.LookPath("bwrap")
	kernelstest.Need(t, err == nil, "bubblewrap")
	kernelstest.NeedPython(t)
	run(t, seed, times, sessions, nil, faults)
}

func TestDocker(t *testing.T) {
	seed, times, sessions := need(t)
	times = (times + 1) / 2 // an engine takes its time
	run(t, seed, times, sessions, needEngine(t), append(slices.Clone(faults), engineFaults...))
}

func run(t *testing.T, seed uint64, times, sessions int, e *engine, faults []fault) {
	w := newWorld(t, seed, e, sessions)
	defer w.report()
	t.Logf("seed %d", seed)
	faults = asked(t, faults)
	order := rand.New(rand.NewPCG(seed, 0))
	w.begin()
	for range times {
		for _, i := range order.Perm(len(faults)) {
			w.round(faults[i])
		}
	}
	w.finish()
}
