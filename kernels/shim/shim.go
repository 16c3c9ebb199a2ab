//go:build linux

package shim

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"cellblock/kernels/stream"
)

// Exit codes of the shim; see the package's documentation.
const (
	ExitUsage  = 64
	ExitSystem = 71
	ExitConfig = 78
)

// termGrace is the grace of a shutdown by SIGTERM.
const termGrace = 5 * time.Second

// Shim owns one kernel at a time and everything about it.
type Shim struct {
	config  stream.Config
	log     *slog.Logger
	dial    dialFunc
	journal *journal
	gate    *gate
	drops   *drops
	outbox  *outbox
	reaper  *reaper
	cgroup  *cgroup
	used    *consumptions
	trimmer trimmer
	vigil   *vigil
	egress  *egress // nil where nothing leads out
	wg      sync.WaitGroup

	life  sync.Mutex    // held while the kernel is started or ended
	ended bool          // no kernel shall run any more; guarded by life
	rush  chan struct{} // a token cuts one wait of a politeness short

	mu          sync.Mutex
	kernel      *kernel
	incarnation int
	cpuBefore   time.Duration // used before the present kernel started
	asked       asking
}

func newShim(c stream.Config, log *slog.Logger, dial dialFunc) *Shim {
	j := newJournal(c.JournalBytes)
	d := newDrops(j)
	s := &Shim{
		config: c, log: log, dial: dial, journal: j, drops: d,
		gate:   newGate(j, c.OutputBytes, c.TailBytes),
		reaper: startReaper(), cgroup: newCgroup(c.CgroupDir), rush: make(chan struct{}, rungs),
		vigil: keepVigil(time.Duration(c.PatienceMS) * time.Millisecond),
	}
	s.used = &consumptions{s: s}
	s.gate.meter, s.gate.replies.lossless = newMeter(s.used.sample), c.Waits
	s.outbox = newOutbox(d, s.gate.meter)
	return s
}

// Run is the shim: it starts the kernel, serves the stream, and returns when a signal from stop has ended that.
// The first one asks the kernel to end, and each further one takes the next rung at once: TERM, then KILL. The
// process must have nothing else to do: Run waits for all its children.
func Run(stop <-chan os.Signal, c stream.Config, log *slog.Logger) error {
	if err := harden(); err != nil {
		return err
	}
	tune(c)
	return run(stop, c, log, dialChannels)
}

func run(stop <-chan os.Signal, c stream.Config, log *slog.Logger, dial dialFunc) error {
	ln, err := listen(c)
	if err != nil {
		return fmt.Errorf("offering the stream: %w", err)
	}
	if err := writeAuthorities(c); err != nil {
		ln.Close()
		return err
	}
	s := newShim(c, log, dial)
	if s.egress, err = openEgress(c.Egress, log); err != nil { // before anybody's code could take the port
		ln.Close()
		return errors.Join(fmt.Errorf("opening the way out: %w", err), s.close())
	}
	srv := serve(s, ln)
	s.life.Lock()
	_ = s.start() // reported as an event: a server must be able to fetch it
	s.life.Unlock()
	runtime.GC() // now, while the kernel starts. The first cell would wait for it, 2 ms: the start leaves nearly as much as makes the collector run
	select {
	case <-s.vigil.over:
		log.Warn("no server has been heard from for too long: the kernel ends", "patience", s.vigil.patience.String())
		err = s.terminate(stop)
	case <-stop:
		err = s.terminate(stop)
	}
	srv.close()
	return errors.Join(err, s.close())
}

// terminate ends the kernel because of a signal, or because it is nobody's any more; faster with each further signal.
func (s *Shim) terminate(stop <-chan os.Signal) error {
	s.announceEnd(false)
	done := make(chan error, 1)
	s.wg.Go(func() { done <- s.shutdown() })
	for {
		select {
		case err := <-done:
			return err
		case <-stop:
			s.hurry()
		}
	}
}

// close stops what newShim started. The kernel has ended.
func (s *Shim) close() error {
	s.wg.Wait()
	s.egress.close()
	s.drops.flush()
	s.outbox.close()
	s.reaper.close()
	s.vigil.close()
	s.trimmer.close()
	s.used.closeAll()
	return nil
}
