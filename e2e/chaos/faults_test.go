//go:build linux

package chaos

import "time"

// fault is one kind of harm.
type fault struct {
	name string
	// deeds are what the sessions do meanwhile.
	deeds func(w *world) []deed
	// strike does the harm, once cells run; nil where the cells do it themselves. After undoes what must not stay.
	strike func(w *world, deeds []deed)
	after  func(w *world)
}

// bySignal is how the end of a kernel process is told.
const bySignal = `killed by SIGKILL`

// faults are those that befall any server.
var faults = []fault{
	{"server killed", restarting, func(w *world, _ []deed) { w.server.Kill(w.t); w.pause(); w.serve() }, nil},
	{"server stopped", restarting, func(w *world, _ []deed) { w.server.Stop(w.t); w.pause(); w.serve() }, nil},
	{"kernels die", dying, nil, nil},
	{"kernels killed", beingKilled, killKernels, nil},
	{"disk full", fullDisk, func(w *world, _ []deed) { w.disk.fill(w.t) }, func(w *world) { w.disk.free(w.t) }},
	{"clock stepped", unharmed, func(w *world, _ []deed) { w.stepClock() }, nil},
	{"clock stepped and server killed", restarting, func(w *world, _ []deed) { w.server.Kill(w.t); w.stepClock(); w.serve() }, nil},
}

// engineFaults are those that befall containers besides.
var engineFaults = []fault{
	{"container killed", containerKilled, killContainer, nil},
	{"engine stopped", engineStopped, func(w *world, _ []deed) { w.restartEngine(false) }, nil},
	{"engine stopped, with live-restore", unharmed, func(w *world, _ []deed) { w.restartEngine(true) }, nil},
}

// pause is for what happens while no server is there.
func (w *world) pause() { time.Sleep(time.Duration(w.random.IntN(600)) * time.Millisecond) }

// stepClock sets the server's clock an hour ahead, or back.
func (w *world) stepClock() {
	by := []time.Duration{-time.Hour, 0, time.Hour}
	for next := by[w.random.IntN(len(by))]; ; next = by[w.random.IntN(len(by))] {
		if next != w.clock.by {
			w.note("the clock steps by %v", next-w.clock.by)
			w.clock.step(w.t, next)
			return
		}
	}
}

// work is a cell that runs when the fault strikes, for each session.
func (w *world) work(f fate) []deed {
	deeds := make([]deed, len(w.sessions))
	for i := range deeds {
		deeds[i] = deed{[]body{quiet, steps, many, steps}[w.random.IntN(4)], f}
	}
	return deeds
}

func unharmed(w *world) []deed { return w.work(fate{}) }

// restarting are sessions whose server ends. The kernel of one dies about then.
func restarting(w *world) []deed {
	deeds := w.work(fate{restarts: true})
	some := w.random.Perm(len(deeds))
	deeds[some[0]].body = many
	deeds[some[1]] = deed{dieSoon, fate{restarts: true, dies: bySignal}}
	return deeds
}

// dying are sessions of which one half ends its own kernels.
func dying(w *world) []deed {
	deeds := w.work(fate{})
	causes := []deed{{killed, fate{dies: bySignal}}, {greedy, fate{dies: "out of memory"}}, {dieSoon, fate{dies: bySignal}}}
	for i, at := range w.random.Perm(len(deeds))[:len(deeds)/2] {
		deeds[at] = causes[i%len(causes)]
	}
	return deeds
}

// beingKilled are sessions of which two lose their kernels, one by the end of its sandbox or container.
func beingKilled(w *world) []deed {
	deeds := w.work(fate{})
	for _, at := range w.random.Perm(len(deeds))[:2] {
		deeds[at].fate.dies = `SIGKILL|(sandbox|container).* ended`
	}
	return deeds
}

func fullDisk(w *world) []deed { return w.work(fate{full: true}) }

// containerKilled is one session that loses its container by the engine's command for it.
func containerKilled(w *world) []deed {
	deeds := w.work(fate{})
	deeds[w.random.IntN(len(deeds))].fate.dies = `SIGKILL|container.* ended`
	return deeds
}

// engineStopped are sessions that lose their containers with their engine. One that takes long to stop says nothing of their
// end meanwhile.
func engineStopped(w *world) []deed {
	return w.work(fate{dies: `engine|container.* ended|SIGKILL|SIGTERM|cannot be reached any more`, away: true})
}
