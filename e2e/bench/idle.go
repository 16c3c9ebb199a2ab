package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cellsBefore is how many cells a session has run before it rests: more than it remembers.
const cellsBefore = 70

// kernelMemory is what a kernel takes that has done little, in bytes, and what is left of the host's memory to others.
const kernelMemory, reserve = 80 << 20, 2 << 30

// calm is how long a server must rest until Go's runtime has thrown away what calls have left: it does so every two minutes
// at least.
const calm = 150 * time.Second

// measureIdle tells what sessions cost that nobody uses any more: memory and goroutines of the server, and processor time.
// Two servers rest side by side that have run as many cells: one in sessions that stay, one in a session that it has closed.
func measureIdle(ctx context.Context, o options, dir string) (report, error) {
	n := min(o.sessions, room())
	without, err := startResting(ctx, o, filepath.Join(dir, "rest0"), 0, n+1)
	if err != nil {
		return report{}, err
	}
	defer without.stop()
	with, err := startResting(ctx, o, filepath.Join(dir, "rest"), n, 1)
	if err != nil {
		return report{}, err
	}
	defer with.stop()
	if err := wait(ctx, min(calm, 3*o.idle)); err != nil {
		return report{}, err
	}
	without.look()
	with.look()
	if err := wait(ctx, o.idle); err != nil {
		return report{}, err
	}
	a, b := without.seen(), with.seen()
	r := report{costs: []cost{
		{what: fmt.Sprintf("memory of the server, per session at rest, of %d", n), value: (b.memory - a.memory) / float64(n) / 1000, unit: "KB", goal: 100},
		{what: "goroutines of the server, per session at rest", value: float64(b.goroutines-a.goroutines) / float64(n), goal: 8},
	}}
	for _, part := range []struct {
		what string
		used usage
	}{{"the server", b.server.minus(a.server)}, {"shims", b.shims}, {"kernels", b.kernels}} {
		r.costs = append(r.costs,
			cost{what: fmt.Sprintf("processor time of %s in a minute, %d sessions at rest", part.what, n), value: part.used.cpu.Seconds() * 1000 / o.idle.Minutes(), unit: "ms"},
			cost{what: "and how often they wake up", value: float64(part.used.wakes) / o.idle.Minutes()})
	}
	if n < o.sessions {
		r.notes = append(r.notes, fmt.Sprintf("memory is short here: %d sessions instead of %d", n, o.sessions))
	}
	return r, nil
}

// room is how many kernels this machine's memory has room for.
func room() int {
	return max(1, int((numberIn("/proc/meminfo", "MemAvailable:")*1024-reserve)/kernelMemory))
}

// code is a cell of a kilobyte.
var code = "1+1" + strings.Repeat(" # more of the same", 55)

// resting is a server with sessions that nobody uses any more.
type resting struct {
	*server
	again  func() (*server, error) // starts the next one on its folder
	family family
	before rest
}

// rest is what was seen of it.
type rest struct {
	memory                 float64
	goroutines             int
	server, shims, kernels usage
}

// startResting starts a server and n sessions, and one more, which works so many times as much and is closed again.
func startResting(ctx context.Context, o options, dir string, n, times int) (*resting, error) {
	o.env = []string{"GODEBUG=gctrace=1"}
	start := func() (*server, error) { // also when all is broken off: for the end
		return startServer(context.WithoutCancel(ctx), o, dir, "--provisioner", "local")
	}
	srv, err := start()
	if err != nil {
		return nil, err
	}
	for i := range n + 1 {
		cells := cellsBefore
		if i == 0 {
			cells *= times
		}
		for range cells {
			if err := srv.execute(ctx, fmt.Sprintf("rest-%d", i), code); err != nil {
				srv.stop()
				return nil, err
			}
		}
	}
	if _, err := srv.call(ctx, "close_session", map[string]any{"session_id": "rest-0"}); err != nil {
		srv.stop()
		return nil, err
	}
	return &resting{server: srv, again: start, family: familyOf(srv.cmd.Process.Pid)}, nil
}

// look notes what the processes have used so far.
func (r *resting) look() { r.before = r.used() }

func (r *resting) used() rest {
	return rest{server: usageOf([]int{r.cmd.Process.Pid}), shims: usageOf(r.family.shims), kernels: usageOf(r.family.kernels)}
}

// seen returns what the processes have used since look, and what the server holds. It kills the server, which tells its
// goroutines by that.
func (r *resting) seen() rest {
	now := r.used()
	said := r.end(syscall.SIGQUIT)
	return rest{
		server: now.server.minus(r.before.server), shims: now.shims.minus(r.before.shims), kernels: now.kernels.minus(r.before.kernels),
		memory: live(said), goroutines: strings.Count("\n"+said, "\ngoroutine "),
	}
}

// collected is what Go's runtime says of a collection: what was in use in the end, and the stacks, in MiB.
var collected = regexp.MustCompile(`(?m)^gc \d+ .*->(\d+) MB, .* (\d+) MB stacks`)

// live returns what was in use at the last collection, which was made at rest, in bytes. What a process holds beyond that is
// the garbage that its runtime lets it have, and says nothing of its sessions.
func live(log string) (bytes float64) {
	all := collected.FindAllStringSubmatch(log, -1)
	if len(all) == 0 {
		return 0
	}
	for _, part := range all[len(all)-1][1:] {
		n, _ := strconv.ParseFloat(part, 64)
		bytes += n * (1 << 20)
	}
	return bytes
}

// stop ends all of it. A server that was killed has left its kernels to the next one, which stops them with itself.
func (r *resting) stop() {
	r.server.stop()
	if next, err := r.again(); err == nil {
		next.stop()
	}
}

// wait waits while nothing is done.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
