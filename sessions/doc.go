// Package sessions keeps one kernel for every (owner, session id) and runs cells in it, one at a time and in the order in
// which they came.
//
// The Manager finds or makes a session by its owner and id. Each session is one goroutine (runner.go) that alone starts,
// interrupts, restarts and ends its kernel; callers talk to it through its queue and through orders, so no two of them
// can act on one kernel at once, and no session ever waits for another.
//
//	   ┌──────────── next generation ───────────┐
//	   ▼                                        │
//	starting ──► idle ⇄ busy ──► restarting ────┤
//	   │           │      │           │         │
//	   └───────────┼──────┴───────────┴──► died ┤
//	               └───────────────────► culled ┘        closed: from anywhere, for good
//
// A session outlives its kernel: when the kernel dies, is culled (cull.go), restarted or does not come up, the next cell runs
// on the next generation, in the same workspace folder, and is told first what was lost (news.go). And a kernel outlives its
// server: one that was killed, or left its kernels running (leave.go), is followed by the next, which goes on with them
// (recover.go, reattach.go).
//
// What a cell produced is recorded as it comes (record.go), whether or not anybody reads it, so a slow or absent reader
// never holds up a kernel. With a Store (store.go) all of it is committed before a result is handed out (saver.go), leaves
// memory, is read back when somebody asks for it (shelf.go), and goes on counting when the server starts again
// (history.go). Workspace folders stay on disk and are found again
// (package workspaces).
package sessions
