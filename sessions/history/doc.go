// Package history is the sessions.Store on disk: an SQLite database, and files beside it for what is large.
//
//	<folder>/cellblock.db        sessions, generations, executions, outputs up to 64 KiB
//	<folder>/blobs/ab/cd/abcd…   larger outputs, each in a file that is named by the SHA-256 of what is in it
//
// # What "committed" means
//
// The database runs in WAL mode with synchronous=NORMAL: a commit is a write to the log, which the kernel of the host
// holds from then on, so that a process that is killed at any instant has lost nothing that it was told is committed. The
// log is forced to the disk when it is folded into the database, every few hundred kilobytes, behind a commit (checkpoint.go). A host that loses its power may
// therefore lose the last moments, in whole commits, from the end; it never finds a damaged database. FULL would force
// the log at every commit, which costs a cell between one and twenty milliseconds more, depending on the disk, to keep
// the history of kernels whose variables the same loss of power has taken.
//
// A large output's file is written aside, forced to the disk, renamed into place, and its folder forced, before the row
// that names it is committed. So a row never names a file that is not there, even after a loss of power. The other way
// round it can happen: files that no row names are removed when the last row that named them goes, when their commit is
// refused, and, for a process that was killed in between, when the store is opened (sweep.go). While somebody copies the
// history (snapshot.go) no file goes: he holds a lock on the folder, and what is left so is swept later (hold.go).
//
// # Who writes
//
// One writes at a time (writer.go): whoever comes first, in his own goroutine. What is handed in while he commits waits and
// goes into the next transaction together, so that many small commits cost as much as a few; one alone is written at once.
// Each batch has a savepoint of its own, or a transaction: one that contradicts what is there fails alone. Readers have connections of their own and see the last commit; none
// keeps a transaction open between pages, so the log can always be folded.
//
// Several processes may use one folder. SQLite lets one write at a time and the others wait (busy_timeout). A session is
// worked on by one of them, the one whose name stands in sessions.holder: its slot, and a word that it made up when it
// started, so that a later process in the same slot is not taken for it.
//
// # How long
//
// The store keeps itself within Options.MaxAge and MaxBytes (retention.go), from the start on and every few minutes: the
// outputs of the executions that ended first go, of whatever session, then executions, then sessions that nobody has
// claimed. An execution says what was dropped of it, and in the place of its outputs stands a notice (dropped.go). What
// has not ended in a session that somebody works on is left alone. Each transaction deletes little, so that commits pass
// between; so it is with giving the disk back.
//
// # Versions
//
// The table schema_version says which migrations have run (schema.go); the missing ones run in one transaction when the
// store is opened. A database from a newer program is refused. SQL is kept plain: what PostgreSQL would not understand is
// in schema.go and open.go only.
package history
