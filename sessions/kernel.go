package sessions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// client is what a session needs of a *kernels.Client.
type client interface {
	Ready(ctx context.Context) error
	Info() kernels.KernelInfo
	Execute(ctx context.Context, r kernels.ExecuteRequest) (cell, error)
	Complete(ctx context.Context, code string, cursor int) (kernels.Completion, error)
	Inspect(ctx context.Context, code string, cursor, detail int) (kernels.Inspection, error)
	Interrupt(ctx context.Context) error
	KillChildren(ctx context.Context) (int, error)
	Restart(ctx context.Context, grace time.Duration) error
	Stats(ctx context.Context) (kernels.Stats, error)
	Ping(ctx context.Context) error
	Done() <-chan struct{}
	Err() error
	Close() error
	// Adopted, Since, CaughtUp and ReleaseLate are for a kernel that an earlier process launched.
	Adopted(msgID string) (cell, bool)
	Since(msgID string) (time.Duration, bool)
	CaughtUp() <-chan struct{}
	ReleaseLate(msgID string, seq uint64)
	// ServeEgress has the connections served that lead out of the sandbox.
	ServeEgress(serve kernels.ServeTunnel)
}

// cell is what a session needs of a *kernels.Execution.
type cell interface {
	Next(ctx context.Context) (kernels.Output, error)
	Hold()
	Release(seq uint64)
	Reply(ctx context.Context, line string) error
	Begun() <-chan struct{}
	Unsent() bool
	Done() <-chan struct{}
	Result() kernels.Result
}

type connectFunc func(ctx context.Context, d kernels.Dialer, o kernels.Options) (client, error)

func connectKernel(ctx context.Context, d kernels.Dialer, o kernels.Options) (client, error) {
	c, err := kernels.Connect(ctx, d, o)
	if err != nil {
		return nil, err
	}
	return liveClient{c}, nil
}

// liveClient is a *kernels.Client whose Execute returns the interface.
type liveClient struct{ *kernels.Client }

func (c liveClient) Execute(ctx context.Context, r kernels.ExecuteRequest) (cell, error) {
	e, err := c.Client.Execute(ctx, r)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (c liveClient) Adopted(msgID string) (cell, bool) {
	e, ok := c.Execution(msgID)
	return e, ok
}

// kernel is one launched kernel with the connection to it.
type kernel struct {
	handle kernels.Handle
	client client
	// used tells that a cell has been sent to the kernel process that runs now, or variables are loaded into it, busy that a cell may
	// run on that nobody follows.
	used, busy bool
}

const (
	// startTimeout is how long a kernel may take to come up.
	startTimeout = 90 * time.Second
	// stopGrace is how long a kernel is asked politely to end, restartGrace likewise before it is replaced in place.
	stopGrace    = 2 * time.Second
	restartGrace = time.Second
	// disposeTimeout bounds the stopping of a kernel and all that belongs to it.
	disposeTimeout = 30 * time.Second
)

// dispose stops the kernel with its container or sandbox and releases what belongs to it here. The connection is kept
// until the kernel has stopped: its last words are recorded.
func (k *kernel) dispose(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), disposeTimeout)
	defer cancel()
	err := k.handle.Stop(ctx, grace)
	if k.client != nil {
		_ = k.client.Close() // it only releases a connection to what has been stopped
	}
	return errors.Join(err, k.handle.Close())
}

// death says why no kernel answers any more.
func (k *kernel) death() kernels.Death {
	err := k.client.Err()
	if d, ok := errors.AsType[*kernels.DeathError](err); ok {
		return d.Death
	}
	return kernels.Death{Cause: fmt.Sprintf("the connection to the kernel is lost: %v", err), Time: time.Now()}
}

// kernelDone is closed when the session's kernel answers no more; without a kernel it blocks for ever.
func (s *session) kernelDone() <-chan struct{} {
	if s.kernel == nil {
		return nil
	}
	return s.kernel.client.Done()
}

func (s *session) kernelGone() bool {
	select {
	case <-s.kernelDone():
		return true
	default:
		return false
	}
}

// start takes the next generation's kernel from the pool, or launches it and waits until it is ready. The error is a
// *fault.Error; the session is then in Died and the next call tries again.
func (s *session) start() error {
	s.later.finish()
	s.transition(Starting)
	ctx, cancel := context.WithTimeoutCause(s.ctx, startTimeout,
		fault.New(fault.Timeout, "it did not come up within %s", words.Length(startTimeout)))
	defer cancel()
	if s.adopt(ctx) {
		return nil
	}
	if err := s.launch(ctx); err != nil {
		s.transition(Died)
		return s.notUp(ctx, err, "")
	}
	err := s.ready(ctx)
	if err == nil {
		s.loadVariables()
	}
	return err
}

// launch starts a kernel in the session's workspace and connects to it.
func (s *session) launch(ctx context.Context) error {
	dir, used, err := s.manager.workspaces.Acquire(s.key.workspace(), s.choice.Language)
	if err != nil {
		s.notLaunched()
		return err
	}
	s.filesWritten() // from here on it is this kernel that writes
	s.folderGiven(dir, used, s.manager.workspaces.Ran(s.key.workspace()))
	spec := s.manager.spec(s.choice)
	spec.ID, spec.Workspace = newKernelID(), dir
	spec.Labels = map[string]string{"session": s.key.id, "generation": strconv.Itoa(s.info().Generation)}
	handle, err := s.manager.cfg.Provisioner.Launch(ctx, spec)
	if err != nil {
		s.notLaunched()
		return err
	}
	s.kernel = &kernel{handle: handle}
	s.keepHandle(handle)
	s.generationBegan()
	s.saveNow()
	s.kernel.client, err = s.manager.connect(ctx, handle, kernels.Options{Late: s.addLate, Logger: s.log})
	if err != nil {
		return s.giveUp(ctx, err)
	}
	s.leadOut(s.kernel.client)
	return nil
}

// notLaunched takes back the number of a generation that had no kernel at all: the next attempt has it again.
func (s *session) notLaunched() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation--
}

// folderGiven notes in which folder the next kernel works: whether files are there, and whether cells have run there before.
func (s *session) folderGiven(dir string, used, ran bool) {
	s.welcomeBack(used, ran)
	s.untold = !ran
	s.save(WorkspaceGiven{Name: filepath.Base(dir)})
}

// tellRan has the workspace's label tell that cells have run there, afterwards: before the session starts another kernel, or ends,
// that is done.
func (s *session) tellRan() {
	if s.untold {
		s.untold = false
		s.later.add(func() { s.manager.workspaces.NoteRan(s.key.workspace(), s.choice.Language) })
	}
}

// comeUp waits until a kernel that was restarted in place is ready.
func (s *session) comeUp() error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, startTimeout,
		fault.New(fault.Timeout, "it did not come up within %s", words.Length(startTimeout)))
	defer cancel()
	err := s.ready(ctx)
	if err == nil {
		s.loadVariables()
	}
	return err
}

func (s *session) ready(ctx context.Context) error {
	if err := s.kernel.client.Ready(ctx); err != nil {
		err = s.giveUp(ctx, err)
		s.lost(Died)
		return err
	}
	s.manager.spoken.note(s.choice.Language, s.kernel.client.Info())
	s.cameUp()
	return nil
}

// cameUp notes that the kernel waits for its first cell.
func (s *session) cameUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.born = time.Now()
	s.active = s.born
	s.live = s.kernel.client
	s.setState(Idle)
}

// giveUp throws away a kernel that does not come up and returns why.
func (s *session) giveUp(ctx context.Context, err error) error {
	logs := s.kernel.handle.Logs(context.WithoutCancel(ctx))
	if stopErr := s.kernel.dispose(0); stopErr != nil {
		s.log.Error("kernel that did not come up could not be stopped", "error", stopErr)
	}
	s.kernel = nil
	s.generationEnded("it did not come up")
	return s.notUp(ctx, err, logs)
}

// notUp is the error of a kernel that did not come up: the reason, the end of what it logged, and what to do.
func (s *session) notUp(ctx context.Context, err error, logs string) error {
	if _, told := errors.AsType[*notUpError](err); told {
		return err
	}
	if why, ok := errors.AsType[*ending](context.Cause(ctx)); ok {
		return fault.New(why.kind, "%s while its kernel was starting", why.cause)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	told := fault.WithoutPlaces(err)
	f := fault.New(startKind(err), "the %s kernel of session %q did not start: %s", s.choice.Language, s.key.id, told)
	f.Err = &notUpError{err}
	if logs = lastLines(logs, 12); logs != "" {
		f.Message += "\nIts last log lines:\n" + logs
	}
	f.Hint = "call again to try once more; if it fails again, the health tool says what is wrong"
	if hint := fault.Hint(told); hint != "" {
		f.Hint = hint
	}
	s.log.Warn("kernel did not start", "error", err, "logs", logs)
	return f
}

// notUpError marks an error that already says that a kernel did not come up.
type notUpError struct{ error }

func (e *notUpError) Unwrap() error { return e.error }

// startKind keeps the kinds that say whose turn it is; whatever else goes wrong at a start is Unavailable.
func startKind(err error) fault.Kind {
	switch kind := fault.KindOf(err); kind {
	case fault.Invalid, fault.Busy, fault.Unavailable, fault.Timeout, fault.Died:
		return kind
	}
	return fault.Unavailable
}

// lastLines returns the last n lines of a log, each at most 300 bytes.
func lastLines(log string, n int) string {
	log = strings.ToValidUTF8(strings.TrimSpace(log), "�")
	if log == "" {
		return ""
	}
	lines := strings.Split(log, "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		lines[i] = "  " + clip(strings.TrimRight(line, "\r"), 300)
	}
	return strings.Join(lines, "\n")
}

// newKernelID returns a random id for one launched kernel: 16 of a-z and 2-7, 80 bits.
func newKernelID() string { return strings.ToLower(rand.Text()[:16]) }
