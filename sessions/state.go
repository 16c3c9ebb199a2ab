package sessions

import "slices"

// State is where a session is in its life.
type State string

// The states of a session. Within one generation a session moves only forward (idle and busy take turns); a new
// generation begins with Starting. Closed is final.
const (
	// Starting: a kernel is being launched.
	Starting State = "starting"
	// Idle: the kernel waits for a cell.
	Idle State = "idle"
	// Busy: a cell runs.
	Busy State = "busy"
	// Restarting: the kernel process is being replaced.
	Restarting State = "restarting"
	// Died: there is no kernel; the next cell starts the next generation.
	Died State = "died"
	// Culled: the kernel was stopped because nobody used it, or because it was old; the next cell starts the next generation.
	Culled State = "culled"
	// Closed: the session has ended and its id is free.
	Closed State = "closed"
)

// successors says which states may follow a state. Starting as a successor is the next generation.
var successors = map[State][]State{
	"":         {Starting, Died, Culled, Closed},
	Starting:   {Idle, Died, Closed},
	Idle:       {Busy, Restarting, Died, Culled, Closed},
	Busy:       {Idle, Restarting, Died, Closed},
	Restarting: {Starting, Died, Closed},
	Died:       {Starting, Closed},
	Culled:     {Starting, Closed},
	Closed:     {},
}

// Plain is the state in a word for those who have not read what the states are called.
func (s State) Plain() string {
	if s == Culled {
		return "stopped"
	}
	return string(s)
}

// works tells whether a session in this state keeps the host's processors busy.
func (s State) works() bool { return s == Starting || s == Busy || s == Restarting }

// setState is the only place where a session's state changes. A step that is not in the table is a defect: it is logged
// and not taken. The caller holds s.mu.
func (s *session) setState(to State) {
	if !slices.Contains(successors[s.state], to) {
		s.log.Error("session state does not follow", "from", s.state, "to", to, "generation", s.generation)
		return
	}
	if to == Starting {
		s.generation++
	}
	if was, is := s.state.works(), to.works(); is && !was {
		s.manager.pool.activity(+1)
	} else if was && !is {
		s.manager.pool.activity(-1)
	}
	s.state = to
	s.changed()
}
