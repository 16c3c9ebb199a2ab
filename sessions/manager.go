package sessions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellblock/egress"
	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
	"cellblock/kernels"
	"cellblock/sessions/workspaces"
)

// Manager keeps the sessions of all owners. Its methods may be called concurrently.
type Manager struct {
	cfg        Config
	rules      map[string]*egress.Rules // by profile
	workspaces *workspaces.Folders
	connect    connectFunc
	pool       *pool
	bare       bool // kernels see the host's paths

	spoken        spoken
	watchers      watchers
	memory        *hostMemory
	rooms         rooms
	usage         usageSeen
	waiting       atomic.Int64  // cells
	culls, deaths atomic.Int64  // of kernels
	turns         chan struct{} // holds one for each cell that runs; nil: no limit

	mu        sync.Mutex
	sessions  map[key]*session
	past      *past
	closed    bool
	cells     int
	leaving   *ending       // why sessions end that leave their kernels running
	left      int           // how many have
	owed      []kernels.Ref // kernels to be stopped that could not be reached
	restoring map[key]RestoreProgress
	running   sync.WaitGroup // sessions' goroutines
	hands     *hands
}

// Request is one cell.
type Request struct {
	// SessionID names the session; empty asks for a new one with a minted id.
	SessionID string
	// Language is a name of Config.Runtimes; empty means the only one.
	Language string
	// Profile is a name of Config.Profiles, Image what the kernel runs in (Config.Image). Empty: what the session has, and for
	// a new one the default profile and the language's own image.
	Profile, Image string
	// Permit tells whether the caller may run cells under a profile: the one that is named, or that the session has. Nil: he
	// may under any.
	Permit func(profile string) error
	Code   string
	// File is the path of the script in the workspace that Code runs, for those who read the history; empty for a cell of its own.
	File string
	// Args are the script's arguments for them, as a shell's words.
	Args string
	// Timeout is how long the cell may run, in whole or broken seconds; 0 means the default.
	Timeout time.Duration
	// Caller says who asks, for the history: a name for people, not an identity. It may be empty.
	Caller string
	// Attended tells that somebody answers what the cell asks by input(), until Execution.Unattend: see Execution.Prompt. In
	// a cell that nobody attends input() fails.
	Attended bool
	// restores is the number of the cell that this one runs again, 0 if none.
	restores int
	// restored is how far that restoration is when this cell has succeeded.
	restored RestoreProgress
}

// Stats counts what a Manager holds.
type Stats struct {
	// Sessions is how many there are, by state.
	Sessions map[State]int
	// Queued is how many cells wait, Executions how many were ever accepted.
	Queued, Executions int
	// Culls and Deaths count the kernels that were culled, and those that died, since the Manager was made.
	Culls, Deaths int64
	// Pool is what is ready for sessions to come.
	Pool PoolStats
}

// New returns a Manager and finds the workspaces that are in the data folder.
func New(cfg Config) (*Manager, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	rules, err := compileRules(cfg.Profiles)
	if err != nil {
		return nil, err
	}
	caps := cfg.Provisioner.Capabilities()
	keeper, _ := cfg.Provisioner.(kernels.WorkspaceKeeper)
	ws, err := workspaces.New(workspaces.Options{
		DataDir: cfg.DataDir, UID: caps.UID, GID: caps.GID, Keeper: keeper, Quota: cfg.WorkspaceBytes, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	m := &Manager{cfg: cfg, rules: rules, workspaces: ws, connect: connectKernel, sessions: map[key]*session{}, past: newPast(), restoring: map[key]RestoreProgress{}, hands: newHands(),
		usage: usageSeen{turn: make(chan struct{}, 1)}, bare: !caps.Images && caps.Filesystem == ""}
	m.memory = newHostMemory(caps.Images)
	if cfg.MaxRunning > 0 {
		m.turns = make(chan struct{}, cfg.MaxRunning)
	}
	m.pool = newPool(m)
	return m, nil
}

// Config returns how the Manager works, defaults filled in.
func (m *Manager) Config() Config { return m.cfg }

// Execute puts a cell into its session's queue and returns at once; the session and its kernel are made if they are not
// there. The error is Invalid for a request that breaks a rule, Conflict for another language, profile or image than the
// session's or when another process has the session, Busy for a full queue, Unavailable while the Manager shuts down. What happens later is
// told by the Execution; ctx does not bound it.
func (m *Manager) Execute(ctx context.Context, o Owner, r Request) (*Execution, error) {
	if err := m.check(&r); err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		choice, ahead, err := m.choose(ctx, o, r)
		if err != nil {
			return nil, err
		}
		timeout, err := m.cfg.Profiles[choice.Profile].timeout(r.Timeout)
		if err != nil {
			return nil, err
		}
		s, release, err := m.reserve(key{o, r.SessionID}, choice, ahead)
		if errors.Is(err, errChosen) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e, err := s.accept(ctx, r, timeout)
		release()
		if _, ended := errors.AsType[*ending](err); !ended {
			return e, err
		}
		if err := s.refusal(); err != nil {
			return nil, err // another attempt would meet the same process
		}
	}
	return nil, context.Cause(ctx)
}

// accept is enqueue, once it is known which number the cell has.
func (s *session) accept(ctx context.Context, r Request, timeout time.Duration) (*Execution, error) {
	select {
	case <-s.opened:
		return s.enqueue(r, timeout, r.SessionID == "")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (m *Manager) check(r *Request) (err error) {
	if r.SessionID != "" {
		if err := sessionid.Validate(r.SessionID); err != nil {
			return err
		}
	}
	if err := ValidateCode(r.Code); err != nil {
		return err
	}
	r.Language, err = m.cfg.language(r.Language)
	return err
}

// reserve returns the session of a key, whose id may be empty; it is made of the choice if it is not there. From then on its
// id is taken: whoever comes next shares its kernel, also while that is still starting. Its place among those that have a
// kernel is kept until release is called. One that is made goes on from what was found out ahead. The error is errChosen for one that
// is there and made of something else.
func (m *Manager) reserve(k key, choice Choice, a ahead) (s *session, release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserveLocked(k, choice, a)
}

var errShuttingDown error = fault.New(fault.Unavailable, "the server is shutting down").WithHint("try again in a minute")

// reserveLocked is reserve. The caller holds m.mu.
func (m *Manager) reserveLocked(k key, choice Choice, a ahead) (s *session, release func(), err error) {
	if m.closed {
		return nil, nil, errShuttingDown
	}
	minted := k.id == ""
	if minted {
		k.id = m.mint(k.owner)
	}
	if err := m.roomToWait(); err != nil {
		return nil, nil, err
	}
	s = m.sessions[k]
	if s == nil || s.ended() {
		if err := m.admit(k.owner); err != nil {
			return nil, nil, err
		}
		m.closeDormant(k.owner)
		s = m.add(k, choice, minted, a)
	}
	if s.choice != choice {
		return nil, nil, errChosen
	}
	release, err = m.seat(s)
	return s, release, err
}

// mint returns an id that the owner does not use. The caller holds m.mu.
func (m *Manager) mint(o Owner) string {
	for {
		k := key{o, sessionid.Mint()}
		if m.unused(k) {
			return k.id
		}
		k.id += "-" + newKernelID()[:4] // for owners with very many sessions
		if m.unused(k) {
			return k.id
		}
	}
}

func (m *Manager) unused(k key) bool {
	_, remembered := m.past.get(k)
	return m.sessions[k] == nil && !remembered && !m.workspaces.Known(k.workspace())
}

// add makes a session and starts its goroutine. An earlier one of the same id may still be ending: the new one waits for
// it. The caller holds m.mu.
func (m *Manager) add(k key, choice Choice, minted bool, a ahead) *session {
	if m.past.endedSince(k, a.asOf) {
		a = ahead{}
	}
	s := &session{
		manager: m, key: k, ahead: a, choice: choice, minted: minted, created: time.Now(), lastUsed: time.Now(),
		log:  m.cfg.Logger.With("session", k.id),
		wake: make(chan struct{}, 1), orders: make(chan order), gone: make(chan struct{}), opened: make(chan struct{}), settled: make(chan struct{}),
	}
	if m.cfg.Store != nil {
		s.saver = newSaver(m.cfg.Store, StoredSession{
			Owner: k.owner, ID: k.id, Language: choice.Language, Profile: choice.Profile, Image: choice.Image, Created: s.created,
		}, s.log, m.hands.run)
		s.saver.works = m.saveNow
	}
	if before := m.sessions[k]; before != nil {
		s.after, s.before = before.gone, before
		if before.info().Generation > 0 {
			s.news = []string{pastSentence(k.id, before.whyEnding().cause, time.Now())}
		}
	} else if end, _ := m.past.get(k); end.lost {
		s.news = []string{end.sentence}
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	m.sessions[k] = s
	m.running.Go(s.run)
	s.changed()
	return s
}

// saveNow has what all sessions could not save saved now: one of them has found that the store works again.
func (m *Manager) saveNow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions {
		if s.saver != nil {
			s.saver.retry()
		}
	}
}

// forget drops a session that has ended, and remembers why.
func (m *Manager) forget(s *session, why *ending) {
	defer s.changed()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cells += s.accepted()
	if m.sessions[s.key] == s {
		delete(m.sessions, s.key)
	}
	if !s.refused() {
		m.past.put(s.key, pastEnd{sentence: pastSentence(s.key.id, why.cause, time.Now()), lost: s.info().Generation > 0})
	}
}

// find returns the owner's running session.
func (m *Manager) find(ctx context.Context, o Owner, id string) (*session, error) {
	if err := sessionid.Validate(id); err != nil {
		return nil, err
	}
	k := key{o, id}
	m.mu.Lock()
	s := m.sessions[k]
	end, remembered := m.past.get(k)
	m.mu.Unlock()
	if s == nil {
		s = m.takeOver(ctx, k)
	}
	if s != nil && !s.ended() {
		if err := s.awaitSettled(ctx); err != nil {
			return nil, err
		}
		if err := s.refusal(); err != nil {
			return nil, err
		}
		return s, nil
	}
	err := fault.New(fault.NotFound, "there is no session %q", id).
		WithHint("list_sessions names the ones there are; executing code with a session_id starts it")
	if m.workspaces.Known(k.workspace()) {
		err.Message += " running now, but its files are kept"
	}
	if remembered {
		err.Message += ". " + strings.TrimSuffix(end.sentence, ".")
	}
	return nil, err
}

// Get describes one session of the owner; NotFound if it does not run.
func (m *Manager) Get(ctx context.Context, o Owner, id string) (Info, error) {
	s, err := m.find(ctx, o, id)
	if err != nil {
		return Info{}, err
	}
	return s.info(), nil
}

// List describes the owner's sessions, the last used first; also those that a process has left which lives no more, unless
// the manager is a guest.
func (m *Manager) List(ctx context.Context, o Owner) ([]Info, error) {
	if !m.cfg.Guest {
		m.takeOverAll(ctx, o)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var infos []Info
	for k, s := range m.sessions {
		if k.owner == o && !s.ended() {
			infos = append(infos, s.info())
		}
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(b.LastUsed.Compare(a.LastUsed), cmp.Compare(a.ID, b.ID))
	})
	return infos, nil
}

// Interrupt stops the session's running cell by the interrupt ladder and says what that took. With no cell running it
// does nothing and reports so. Waiting cells stay.
func (m *Manager) Interrupt(ctx context.Context, o Owner, id string) (InterruptReport, error) {
	return m.InterruptCell(ctx, o, id, 0, "")
}

// InterruptCell stops one cell, by its number, as Interrupt does, for a caller (Request.Caller), of whom the cell's result tells. While
// another one runs it leaves that alone; the error is then Conflict. So whoever saw a cell run that has ended meanwhile does not
// stop the next. The number 0 is any cell's.
func (m *Manager) InterruptCell(ctx context.Context, o Owner, id string, number int, caller string) (InterruptReport, error) {
	return m.interrupt(ctx, o, id, order{kind: orderInterrupt, cell: number, by: caller})
}

// TryInterrupt is InterruptCell for a person, who decides himself whether a cell is worth all variables: one that only a restart of its
// kernel would stop runs on.
func (m *Manager) TryInterrupt(ctx context.Context, o Owner, id string, number int) (InterruptReport, error) {
	return m.interrupt(ctx, o, id, order{kind: orderInterrupt, cell: number, by: Person, spare: true})
}

func (m *Manager) interrupt(ctx context.Context, o Owner, id string, asked order) (InterruptReport, error) {
	s, err := m.use(ctx, o, id)
	if err != nil {
		return InterruptReport{}, err
	}
	info := s.info()
	seen := info.Last != nil && info.Last.runs(asked.cell)
	if info.State != Busy && !seen {
		return InterruptReport{VariablesKept: info.State == Idle}, nil
	}
	if info.State == Busy { // or its kernel is being restarted under it
		a := s.send(ctx, asked)
		if a.err != nil || a.report.Ran || !seen {
			return a.report, s.orderError(a.err)
		}
	}
	return info.Last.stoppedBy(ctx)
}

// runs tells whether a cell runs, and is the one with this number, if that is not 0.
func (e *Execution) runs(number int) bool {
	phase, _ := e.Phase()
	return phase == PhaseRunning && (number == 0 || number == e.Number())
}

// stoppedBy says what stopped a cell that ran when somebody asked to stop it, and that ends by other means.
func (e *Execution) stoppedBy(ctx context.Context) (InterruptReport, error) {
	result, err := e.Wait(ctx)
	if ctx.Err() != nil {
		return InterruptReport{}, err
	}
	report := result.Interrupt
	report.Already = report.Ran
	return report, nil
}

// Restart gives the session a fresh kernel: variables are lost, files are kept, a running cell ends, waiting cells run
// on the new kernel. It returns when that is ready.
func (m *Manager) Restart(ctx context.Context, o Owner, id string) (Info, error) {
	return m.RestartBy(ctx, o, id, "")
}

// RestartBy is Restart for a caller (Request.Caller), of whom those are told who lose their variables. A client that has a name says so
// itself where it hears of success: its own next cell is not told once more.
func (m *Manager) RestartBy(ctx context.Context, o Owner, id, caller string) (Info, error) {
	s, err := m.use(ctx, o, id)
	if err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	release, err := m.seat(s)
	m.mu.Unlock()
	if err != nil {
		return Info{}, err
	}
	defer release()
	a := s.send(ctx, order{kind: orderRestart, by: caller})
	if a.err != nil {
		return Info{}, s.orderError(a.err)
	}
	if a.news != "" && caller != "" && caller != Person && ctx.Err() == nil {
		s.knows(caller, a.news)
	}
	return s.info(), nil
}

// orderError turns the end of a session into an error for whoever wanted something of it meanwhile.
func (s *session) orderError(err error) error {
	if why, ok := errors.AsType[*ending](err); ok {
		return fault.New(fault.Conflict, "session %q: %s", s.key.id, why.cause)
	}
	return err
}

// Stats counts sessions and cells, for health.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := Stats{Sessions: map[State]int{}, Culls: m.culls.Load(), Deaths: m.deaths.Load(), Executions: m.cells, Pool: m.pool.stats()}
	for _, s := range m.sessions {
		info := s.info()
		stats.Sessions[info.State]++
		stats.Queued += info.Queue
		stats.Executions += s.accepted()
	}
	return stats
}

// Shutdown ends all sessions at once, side by side, and keeps their files. Running cells end, waiting cells fail with
// Unavailable, new calls are refused. It returns when no kernel is left, or with ctx's error and how many are. It may be
// called again.
func (m *Manager) Shutdown(ctx context.Context) error {
	return m.endAll(ctx, &ending{kind: fault.Unavailable, cause: stopping, saves: true})
}
