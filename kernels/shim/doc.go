// Package shim is the process beside each kernel: pid 1 of its container or sandbox, which holds what must outlive the
// server. It starts the kernel, speaks to it over ZMQ (package channels), and offers one framed, resumable stream
// (package stream) to whichever server comes.
//
// What the kernel says runs one way:
//
//	channels → gate → journal → connection → server
//
// The channels are read at once, whatever the server does, because a kernel throws away what nobody reads. The gate
// takes the flood: of an execution that prints without end it keeps head and tail and counts the rest. The journal
// numbers what passes and keeps it until the server has acknowledged it, within a bound. A connection replays from there.
//
// The kernel runs users' code, with the shim's own uid and often in its pid namespace. So the shim makes itself
// undumpable (nobody may look into it, or at its files under /proc), talks only to servers outside the namespace where it
// is told to, and believes nothing it is sent. What user code can still do is end its own session.
//
// # Exit codes
//
//	 0  SIGTERM asked for it, or no server was heard from for too long
//	64  the command line is wrong
//	71  the stream could not be offered, or the host refused something else that the shim needs
//	78  the configuration is missing or wrong
//
// The shim never ends because the kernel did: the server must be able to fetch what the kernel last said.
package shim
