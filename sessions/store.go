package sessions

import (
	"context"
	"iter"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// Store keeps what sessions did, for longer than their kernels and this process live: sessions, the generations of their
// kernels, executions, and everything that these produced.
//
// A session in the store is one (owner, id) from its first cell until Delete, over any number of kernels, closings and
// restarts of the server: its execution and generation numbers go on counting. One process at a time works on it, the one
// that claimed it with Open; anybody reads.
//
// Whatever a method returned without an error is on disk, and survives a kill of this process (what a loss of power may
// take is the implementation's to say). A store that cannot work (no space, no permission, a lock that is not given back,
// a damaged file) returns *fault.Error of kind Unavailable with a hint for the operator. That is nothing to stop for: the
// caller goes on in memory and tries again later. Methods may be called concurrently.
type Store interface {
	// Open claims a session for this process and makes it if it is not there. Owner, ID, Language, Profile, Image and
	// Created are the caller's; of a session that is there, Created stays. It returns the session as it was before, with its Ref,
	// so that the caller knows where to go on and what an earlier process left unfinished. Opening again what this process
	// has claimed is allowed. The error is Conflict when another process that is alive has the session.
	Open(ctx context.Context, s StoredSession) (StoredSession, error)

	// Commit makes changes to a claimed session, all or none, in their order. When it returns nil they are on disk. The
	// error is Conflict when a change contradicts what is there (a number that is taken, a session that was deleted or
	// claimed by somebody else); doing it again will not help. Unavailable means that nothing was changed, and that the
	// same changes may be committed later. ctx bounds waiting, not the commit itself: when it ends first, it is not known
	// whether the changes were made.
	//
	// Many small commits at the same time cost about as much as one.
	Commit(ctx context.Context, session SessionRef, changes ...Change) error

	// Session describes one session, NotFound if the owner has none of that id.
	Session(ctx context.Context, o Owner, id string) (StoredSession, error)

	// Sessions describes all sessions of an owner, with the last cell of each, the last used first.
	Sessions(ctx context.Context, o Owner) ([]StoredSession, error)

	// Unclosed describes those sessions of an owner that are not closed, the last used first. It takes no longer for those that are.
	Unclosed(ctx context.Context, o Owner) ([]StoredSession, error)

	// Closed counts those sessions of an owner that are closed and have had a cell, and names the last used of them, at most limit.
	// Those of some ids and of some profiles are not among them.
	Closed(ctx context.Context, o Owner, without Exclusion, limit int) (n int, last []StoredName, err error)

	// Running returns the kernels, of all owners, whose end nobody has written down: they run, or a process that was killed
	// has left them.
	Running(ctx context.Context) ([]StoredKernel, error)

	// Images returns the images other than their languages' own that sessions of all owners are made of which are not closed, with
	// when one of them was last used.
	Images(ctx context.Context) (map[string]time.Time, error)

	// Generations returns those of a session, oldest first.
	Generations(ctx context.Context, session SessionRef) ([]StoredGeneration, error)

	// Executions returns at most limit executions of a session, from a number on, oldest first, and none behind those whose code has so
	// many bytes together; 0: however many. The newest page begins at StoredSession.Executions - limit + 1.
	Executions(ctx context.Context, session SessionRef, from, limit int, code int64) ([]StoredExecution, error)

	// Unended returns the executions of a session whose end nobody has written down, oldest first.
	Unended(ctx context.Context, session SessionRef) ([]StoredExecution, error)

	// Execution returns one execution, NotFound if there is none of that number.
	Execution(ctx context.Context, session SessionRef, number int) (StoredExecution, error)

	// Outputs yields the outputs of an execution, from an index on, in order; what was left out of the middle, and what
	// was dropped (StoredExecution.Dropped), is told by notices in its place, and leaves a hole in the indices. It holds a
	// page of them in memory, not all, and sees what is committed while it runs. An output that cannot be read (its file is missing or damaged) is yielded with its index
	// and an error, and the next ones follow if the caller goes on; any other error ends it.
	Outputs(ctx context.Context, session SessionRef, number, from int) iter.Seq2[StoredOutput, error]

	// FindOutputs yields the outputs of a session that a query asks for, the last first. One that cannot be read is yielded with its
	// place and an error, and the next ones follow if the caller goes on.
	FindOutputs(ctx context.Context, session SessionRef, q OutputQuery) iter.Seq2[FoundOutput, error]

	// Delete removes a session with all that belongs to it. A later one of the same id starts from nothing. Deleting what
	// is not there is no error; Conflict means that another process that is alive has it claimed.
	Delete(ctx context.Context, o Owner, id string) error

	// Usage counts everything that is kept, of all owners.
	Usage(ctx context.Context) (Usage, error)

	// Health returns nil while the store works, else why the last attempt to write failed. It does no work itself.
	Health() error

	// Close ends the store's work in this process, after what is being written. Claims are given back.
	Close() error
}

// SessionRef is the store's own name for a session, from its first Open until it is deleted. It is never used again.
type SessionRef int64

// StoredSession is a session as the store knows it.
type StoredSession struct {
	Ref   SessionRef
	Owner Owner
	ID    string
	// Workspace is the opaque name of its folder, empty while it has none.
	Workspace string
	Language  string
	// Profile and Image are those of Choice. No profile is the default one, of a session from before there were any.
	Profile, Image string
	Created        time.Time
	// Used is when a kernel or a cell of it last began, or a cell last produced something or ended.
	Used time.Time
	// Closed is when it was closed, zero while it is not. Why says why, in the words of a sentence's end.
	Closed time.Time
	Why    string
	// Held tells that a process that is alive has claimed it. Without that, what is not closed or ended was left so by a
	// process that was killed.
	Held bool
	// Generations and Executions are the highest numbers given so far, 0 before the first.
	Generations, Executions int
	// Bytes is the size of its outputs.
	Bytes int64
	// Last is its last cell, told by Store.Sessions only; zero where nothing of that is kept.
	Last StoredCell
}

// StoredCell is what a list of sessions tells of a cell; see StoredExecution.
type StoredCell struct{ Code, File, Args, Caller string }

// Title is what people are told that the cell does; see ExecutionInfo.Title.
func (c StoredCell) Title() string {
	return ExecutionInfo{Code: c.Code, File: c.File, Args: c.Args}.Title()
}

// Exclusion says which sessions are not meant.
type Exclusion struct{ IDs, Profiles []string }

// StoredName is a session's id, with when it was used.
type StoredName struct {
	ID   string
	Used time.Time
}

// StoredGeneration is one kernel of a session.
type StoredGeneration struct {
	Number int
	// Ref names the kernel to its provisioner, for a later Attach.
	Ref kernels.Ref
	// Seq is the highest number in the shim's sequence of an output that a running cell produced and that is committed;
	// 0 before the first. What the shim sends again up to it is there already.
	Seq     uint64
	Started time.Time
	// Ended is zero while it runs, or when nobody lived to write it down. Why says why it ended.
	Ended time.Time
	Why   string
}

// StoredKernel is the newest kernel of a session, with the session.
type StoredKernel struct {
	Session    StoredSession
	Generation StoredGeneration
}

// StoredExecution is one cell as the store knows it.
type StoredExecution struct {
	Number int
	// Generation is that of the kernel that ran it; 0 while it was only queued.
	Generation int
	// MsgID is the id of its request to the kernel.
	MsgID string
	Code  string
	// File is the path of the script in the workspace that Code runs; empty for a cell of its own.
	File string
	// Args are the script's arguments, as a shell's words, shortened if they are long.
	Args string
	// Caller says who asked, where that is known: a name for people, not an identity.
	Caller  string
	Timeout time.Duration
	// Restores is the number of the cell that this one ran again; 0 for a cell of its own.
	Restores int
	// Preamble is what its caller was to be told first; see Execution.Preamble.
	Preamble string
	// Queued, Started and Ended are zero for what has not happened, or what nobody lived to write down.
	Queued, Started, Ended time.Time
	// Result is how it ended; valid once Ended is set and Failure is nil.
	Result Result
	// Failure is set when the cell never ran.
	Failure *fault.Error
	// Outputs is the index after its last output; Own is the index after the last that came before its end, valid once
	// Ended is set. What is between is late output of background work.
	Outputs, Own int
	// Bytes is the size of its outputs.
	Bytes int64
	// Dropped says what the store has given up of its outputs because they were old, or took too much room.
	Dropped Dropped
}

// Dropped counts outputs that a store has given up; the zero value is none.
type Dropped struct {
	Outputs int
	Bytes   int64
	// At is when the last of them went.
	At time.Time
}

// StoredOutput is one output at its place in an execution.
type StoredOutput struct {
	Index  int
	Output kernels.Output
}

// Usage counts what a store keeps. Bytes are those of the outputs, as if equal ones did not share a file; Disk is what all of it takes
// on the disk, which is what a store bounds, where it says so.
type Usage struct {
	Sessions, Executions int
	Bytes, Disk          int64
}

// Change is one step in the life of a session, for Store.Commit. It is one of the types that follow.
type Change interface{ change() }

// GenerationBegan: a kernel was launched, or restarted in place.
type GenerationBegan struct {
	Number  int
	Ref     kernels.Ref
	Started time.Time
}

// GenerationEnded: the kernel is no more. A generation that is not there or has ended is left as it is.
type GenerationEnded struct {
	Number int
	Ended  time.Time
	Why    string
}

// ExecutionQueued: a cell was accepted. Its number must be free.
type ExecutionQueued struct {
	Number  int
	MsgID   string
	Code    string
	File    string
	Args    string
	Caller  string
	Timeout time.Duration
	// Restores is the number of the earlier cell that this one runs again; 0 for a cell of its own.
	Restores int
	Queued   time.Time
}

// ExecutionBegan: the kernel got the cell.
type ExecutionBegan struct {
	Number     int
	Generation int
	Started    time.Time
	Preamble   string
}

// OutputsKept: a cell produced outputs, the first of which has the index First.
type OutputsKept struct {
	Number  int
	First   int
	Outputs []kernels.Output
	// Hole is set when outputs were given up since the last time.
	Hole *Hole
}

// Hole says that the outputs with indices from From up to but not including To are given up, those that were committed
// among them, and what is to be told in their place. There are never more notices than outputs given up. A later Hole of
// the same execution has the same From and takes the earlier one's place.
type Hole struct {
	From, To int
	Notices  []kernels.Output
}

// ExecutionEnded: the cell has ended, or will never run when Failure is set. Own is the number of outputs produced until
// then.
type ExecutionEnded struct {
	Number  int
	Ended   time.Time
	Result  Result
	Failure *fault.Error
	Own     int
}

// WorkspaceGiven: the session has got a folder.
type WorkspaceGiven struct{ Name string }

// SessionClosed: the session takes no more cells, and the claim on it is given back.
type SessionClosed struct {
	Closed time.Time
	Why    string
}

func (GenerationBegan) change() {}
func (GenerationEnded) change() {}
func (ExecutionQueued) change() {}
func (ExecutionBegan) change()  {}
func (OutputsKept) change()     {}
func (ExecutionEnded) change()  {}
func (WorkspaceGiven) change()  {}
func (SessionClosed) change()   {}
