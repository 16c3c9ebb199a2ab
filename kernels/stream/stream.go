// Package stream defines the one framed, resumable stream between the server and the shim beside a kernel.
//
// The carrier is any reliable byte stream (a Unix socket, a container's attached stdio). Each frame is
//
//	uint32 length of what follows, big-endian | uint8 type | payload
//
// The server speaks first with Hello, the shim answers with Welcome. From then on the shim sends every message of the
// kernel and every event about it as a numbered frame, in one sequence that starts at 1 when the shim starts and has no
// holes; it keeps each in its journal until the server has acknowledged it. A server that comes back says in Hello the
// last number that it has dealt with and receives what follows. Numbers that the journal had to give up are reported by
// an EventGap frame in their place.
//
// Both sides treat what they read as hostile: a frame longer than the limit given to NewReader, an unknown type in the
// wrong direction or a malformed payload is an error, and the connection is of no further use.
package stream

import (
	"encoding/json"
	"time"
)

// Version is the version of the protocol, exchanged in Hello and Welcome. They must be equal.
const Version = 1

// Channel names one of a kernel's channels (Jupyter messaging, "Introduction").
type Channel uint8

// The channels that carry messages. Nobody uses the heartbeat channel.
const (
	Shell Channel = iota + 1
	Control
	Stdin
	IOPub
)

// String returns the channel's name as Jupyter writes it.
func (c Channel) String() string {
	switch c {
	case Shell:
		return "shell"
	case Control:
		return "control"
	case Stdin:
		return "stdin"
	case IOPub:
		return "iopub"
	}
	return "unknown"
}

// FrameType says what a frame's payload is.
type FrameType uint8

// Frames from the server to the shim.
const (
	// FrameHello carries a Hello as JSON; it must be the first frame.
	FrameHello FrameType = iota + 1
	// FrameSend carries one message for the kernel: see Message, without Seq.
	FrameSend
	// FrameAck carries a uint64: everything up to this number has been dealt with and may be forgotten.
	FrameAck
	// FrameRequest carries a Request as JSON.
	FrameRequest
)

// Frames from the shim to the server.
const (
	// FrameWelcome carries a Welcome as JSON; it is the first frame.
	FrameWelcome FrameType = iota + 65
	// FrameMessage carries one message from the kernel: see Message.
	FrameMessage
	// FrameEvent carries a uint64 sequence number and an Event as JSON.
	FrameEvent
	// FrameReply carries a Reply as JSON. Replies are not numbered and not kept.
	FrameReply
)

// Frames of tunnels, in both directions, once Hello has said that the server takes them. Each begins with the tunnel's number,
// a uint32. They are neither numbered nor kept: a tunnel ends with its connection. See Tunnels.
const (
	// FrameTunnelOpen carries a uint16 behind it: the port of the sandbox's loopback that was connected to. Only the shim opens.
	FrameTunnelOpen FrameType = iota + 129
	// FrameTunnelData carries at most MaxTunnelData bytes of what goes through.
	FrameTunnelData
	// FrameTunnelCredit carries a uint32: so many more bytes may be sent.
	FrameTunnelCredit
	// FrameTunnelEnd says that no more data comes from this side.
	FrameTunnelEnd
	// FrameTunnelReset says that this side neither sends nor reads any more.
	FrameTunnelReset
)

// Message is one Jupyter message on its way between server and kernel. Identities, delimiter and signature stay with the
// shim, which signs what it sends and verifies what it receives.
type Message struct {
	// Seq is the number in the shim's sequence; 0 on the way to the kernel.
	Seq     uint64
	Channel Channel
	// Parts are header, parent header, metadata, content (JSON texts) and then any number of raw buffers.
	Parts [][]byte
}

// Hello opens a connection.
type Hello struct {
	Version int `json:"version"`
	// After is the last sequence number that this server has dealt with. Nil asks for everything that was never
	// acknowledged.
	After *uint64 `json:"after,omitempty"`
	// Tunnels tells that this server takes frames of tunnels. Earlier ones do not know them, and earlier shims send none.
	Tunnels bool `json:"tunnels,omitempty"`
}

// Welcome answers Hello.
type Welcome struct {
	Version int `json:"version"`
	// KernelID is the id that the shim was launched with, so that a server notices a mix-up.
	KernelID string `json:"kernel_id"`
	// Next is the number that the next new frame will get; everything from the asked place up to Next-1 is replayed.
	Next uint64 `json:"next"`
	// After is the number before the first that is replayed: Next-1 when nothing is.
	After uint64 `json:"after"`
	// Incarnation counts the kernel processes that this shim has started, from 1.
	Incarnation int `json:"incarnation"`
	// Alive tells whether the kernel process runs.
	Alive bool `json:"alive"`
	// PatienceMS is how long the shim goes on without hearing from a server, in milliseconds (Config.PatienceMS); 0: for ever.
	PatienceMS int64 `json:"patience_ms,omitempty"`
	// Request is the msg_id of the last execute_request that came from a server, and RequestMS how long ago that came, in
	// milliseconds, by a clock that nobody sets. Empty before the first, and from shims of earlier versions.
	Request   string `json:"request,omitempty"`
	RequestMS int64  `json:"request_ms,omitempty"`
	// Error is set when the shim refuses the connection; it closes after Welcome.
	Error string `json:"error,omitempty"`
}

// EventKind names what an Event reports.
type EventKind string

const (
	// EventStarted: a kernel process was started (PID, Incarnation).
	EventStarted EventKind = "started"
	// EventConnected: the channels to the kernel are connected; messages sent from now on reach it.
	EventConnected EventKind = "connected"
	// EventExited: the kernel process ended (Exit, Incarnation).
	EventExited EventKind = "exited"
	// EventElided: output was left out at this place, because an execution produced too much (Elided).
	EventElided EventKind = "elided"
	// EventDropped: messages from the kernel were thrown away because they were broken: wrong signature, not Jupyter,
	// too large (Dropped).
	EventDropped EventKind = "dropped"
	// EventUsed: what an execution has used (Used). It comes before the later of the execution's reply and idle, or before
	// EventExited.
	EventUsed EventKind = "used"
	// EventGap: frames were given up because nobody fetched them in time (Gap). Its own number is the gap's last.
	EventGap EventKind = "gap"
)

// Event is something that the shim reports about the kernel. Exactly the field that Kind names is set.
type Event struct {
	Kind        EventKind `json:"kind"`
	Time        time.Time `json:"time"`
	Incarnation int       `json:"incarnation,omitempty"`
	PID         int       `json:"pid,omitempty"`
	Exit        *Exit     `json:"exit,omitempty"`
	Elided      *Elided   `json:"elided,omitempty"`
	Dropped     *Dropped  `json:"dropped,omitempty"`
	Used        *Used     `json:"used,omitempty"`
	Gap         *Gap      `json:"gap,omitempty"`
}

// Exit says how a kernel process ended.
type Exit struct {
	// Code is the exit code, or -1 when a signal ended the process.
	Code int `json:"code"`
	// Signal is the signal's name ("SIGKILL"), or empty.
	Signal string `json:"signal,omitempty"`
	// OOM is true when the memory limit's OOM killer ended it.
	OOM bool `json:"oom,omitempty"`
	// Asked is true when the shim ended it on request (restart, shutdown).
	Asked bool `json:"asked,omitempty"`
	// Output is the end of what the process wrote to its own stdout and stderr, at most 8 KB: the reason of a kernel
	// that does not come up.
	Output string `json:"output,omitempty"`
	// Failed is set when the process could not be started at all.
	Failed string `json:"failed,omitempty"`
}

// Elided counts output that was left out.
type Elided struct {
	// Parent is the msg_id of the request that produced it.
	Parent string `json:"parent"`
	// Stream is "stdout" or "stderr"; empty when whole messages of other types were left out.
	Stream string `json:"stream,omitempty"`
	// Bytes and Lines count text (UTF-8 bytes, newlines) for a stream.
	Bytes int64 `json:"bytes,omitempty"`
	Lines int64 `json:"lines,omitempty"`
	// Messages counts whole messages of other types, with Bytes their size.
	Messages int64 `json:"messages,omitempty"`
}

// Dropped counts messages that were thrown away.
type Dropped struct {
	Channel string `json:"channel"`
	// Reason is for people, and DroppedTooLarge for a whole message that is larger than Config.MaxMessage.
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
	// Parent and MsgType are what the header claimed, when it could be read.
	Parent  string `json:"parent,omitempty"`
	MsgType string `json:"msg_type,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
}

// DroppedTooLarge is the Reason for dropping what was not broken.
const DroppedTooLarge = "too large"

// Used is what all processes of the container or sandbox used while an execution ran.
type Used struct {
	// Parent is the msg_id of the execution's request.
	Parent string `json:"parent"`
	// CPU is the processor time, in nanoseconds.
	CPU time.Duration `json:"cpu_ns,omitempty"`
	// Memory is the most that counted against the limit, in bytes, as far as was seen.
	Memory int64 `json:"memory,omitempty"`
	// OOMKills is how many of them were killed meanwhile because the memory limit was reached, as far as their control group counts it.
	OOMKills int64 `json:"oom_kills,omitempty"`
}

// Gap names numbers that the journal gave up.
type Gap struct {
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Bytes int64  `json:"bytes"`
}

// Op names what a Request asks of the shim.
type Op string

const (
	// OpInterrupt interrupts the running cell, by signal to the kernel's process group or by interrupt_request, as the
	// kernelspec says.
	OpInterrupt Op = "interrupt"
	// OpKillChildren kills every descendant of the kernel process, not the kernel.
	OpKillChildren Op = "kill_children"
	// OpRestart ends the kernel process and starts a new one in place. The reply comes when the new process runs.
	OpRestart Op = "restart"
	// OpPing asks for a reply, and for nothing else.
	OpPing Op = "ping"
	// OpStats asks for Stats.
	OpStats Op = "stats"
)

// Request is a call to the shim itself.
type Request struct {
	ID uint64 `json:"id"`
	Op Op     `json:"op"`
	// GraceMS is how long OpRestart waits before it forces, in milliseconds; 0 forces at once.
	GraceMS int64 `json:"grace_ms,omitempty"`
}

// Reply answers the Request with the same ID.
type Reply struct {
	ID    uint64 `json:"id"`
	Error string `json:"error,omitempty"`
	Stats *Stats `json:"stats,omitempty"`
	// Killed is how many processes OpKillChildren ended.
	Killed int `json:"killed,omitempty"`
}

// Stats is a sample of what the kernel and its shim use.
type Stats struct {
	// CPU is processor time used since the kernel started, in nanoseconds; all processes of the container or sandbox.
	CPU time.Duration `json:"cpu_ns"`
	// Starved is how long the kernel's main thread has been ready to run since it started, but had no processor because
	// others had them or its limit was reached, in nanoseconds; 0 where the host does not tell (proc(5), "schedstat").
	Starved time.Duration `json:"starved_ns,omitempty"`
	// Memory is what counts against the limit now, in bytes; MemoryLimit is 0 when unlimited.
	Memory      int64 `json:"memory"`
	MemoryLimit int64 `json:"memory_limit,omitempty"`
	// OOMKills is how many of those processes were killed because the memory limit was reached, since the execution began that runs; see
	// Used.
	OOMKills int64 `json:"oom_kills,omitempty"`
	// ShimMemory is the shim's own resident set, in bytes.
	ShimMemory int64 `json:"shim_memory"`
}

// Config is what a provisioner tells the shim at launch, as JSON in the environment variable ConfigEnv.
type Config struct {
	KernelID string `json:"kernel_id"`
	// Listen is where the stream is offered: "unix:PATH" (the shim makes the socket, mode 0600), "take:PATH" (a listening
	// socket that who listens there hands over: see GiveListener), "fd:N" (an inherited listening socket) or "stdio" (one
	// connection, on the shim's own stdin and stdout, again and again: see AttachServer).
	Listen string `json:"listen"`
	// AttachKey is what NewAttachKey returned, for the carrier "stdio" and only there.
	AttachKey string `json:"attach_key,omitempty"`
	// Argv is the kernelspec's argv; "{connection_file}" is replaced. Argv[0] may be looked up in Env's PATH.
	Argv []string `json:"argv"`
	// Env is the kernel's whole environment, as KEY=VALUE. Nothing is inherited.
	Env []string `json:"env"`
	// Dir is the kernel's working directory.
	Dir string `json:"dir"`
	// RunDir is a private, writable folder inside the sandbox for the connection file and the ipc sockets. The shim
	// makes it if it is missing (mode 0700). Short: a socket's path is at most 107 bytes.
	RunDir string `json:"run_dir"`
	// Transport is "ipc" or "tcp" (loopback).
	Transport string `json:"transport"`
	// InterruptMode is "signal" or "message" (kernelspec interrupt_mode).
	InterruptMode string `json:"interrupt_mode"`
	// Waits tells that the kernel waits while its IOPub is not read: the shim may let it wait for who reads the journal.
	Waits bool `json:"waits,omitempty"`
	// Rlimits are set on the kernel process, not on the shim.
	Rlimits Rlimits `json:"rlimits"`
	// Seccomp puts the kernel process under the filter of package seccomp. A shim that runs under it needs that not.
	Seccomp bool `json:"seccomp,omitempty"`
	// CgroupDir is a folder that holds the sandbox's memory cgroup files (v1 or v2); empty: look in /sys/fs/cgroup.
	CgroupDir string `json:"cgroup_dir,omitempty"`
	// PeerOutside refuses connections from processes of the shim's own pid namespace, that is, from users' code.
	PeerOutside bool `json:"peer_outside,omitempty"`
	// PatienceMS is how long the shim goes on without hearing from a server, in milliseconds: then it ends the kernel and
	// itself. 0: for ever.
	PatienceMS int64 `json:"patience_ms,omitempty"`
	// Egress has the shim lead connections out of the sandbox; nil: none.
	Egress *Egress `json:"egress,omitempty"`
	// JournalBytes caps the journal (default 32 MiB). MaxMessage caps one message of the kernel (default 64 MiB).
	JournalBytes int64 `json:"journal_bytes,omitempty"`
	MaxMessage   int64 `json:"max_message,omitempty"`
	// OutputBytes is how much output one execution may stream before only its end is kept (default 256 MiB); TailBytes is
	// that end, per stream (default 1 MiB).
	OutputBytes int64 `json:"output_bytes,omitempty"`
	TailBytes   int64 `json:"tail_bytes,omitempty"`
}

// Egress is the way out of a sandbox: each connection to one of these ports becomes a tunnel.
type Egress struct {
	// Proxy is the port of 127.0.0.1 at which the server speaks HTTP and SOCKS5 through the tunnel. The kernel's environment
	// names it (HTTP_PROXY and the like).
	Proxy int `json:"proxy"`
	// Authorities are certificates (PEM) that the kernel's programs trust besides those of the image.
	Authorities string `json:"authorities,omitempty"`
}

// DefaultProxyPort is the port that Egress.Proxy has where nothing speaks against it.
const DefaultProxyPort = 3128

// Rlimits are limits of a process; 0 leaves one as it is.
type Rlimits struct {
	// Data is RLIMIT_DATA in bytes, for hosts where no memory cgroup can be had.
	Data int64 `json:"data,omitempty"`
	// FileSize is RLIMIT_FSIZE in bytes.
	FileSize int64 `json:"file_size,omitempty"`
	// Files is RLIMIT_NOFILE; PIDs is RLIMIT_NPROC, which counts all processes of the same uid.
	Files int64 `json:"files,omitempty"`
	PIDs  int64 `json:"pids,omitempty"`
}

// ConfigEnv is the environment variable that holds Config.
const ConfigEnv = "CELLBLOCK_SHIM"

// Defaults and bounds.
const (
	DefaultJournalBytes = 32 << 20
	DefaultMaxMessage   = 64 << 20
	DefaultOutputBytes  = 256 << 20
	DefaultTailBytes    = 1 << 20
	// MaxParts bounds the parts of one message.
	MaxParts = 1024
	// MaxSend bounds one message for the kernel, all parts together, in bytes.
	MaxSend = 64 << 20
	// MaxJSON bounds the payload of every frame but messages, in bytes. The largest that an honest peer sends tells of a
	// kernel's end, with the last 8 KB that it printed.
	MaxJSON = 256 << 10
	// MaxTunnels bounds the tunnels of a connection that are open, MaxTunnelData the bytes of one of their frames, and
	// TunnelWindow what either side of a tunnel sends before the other has read it, in bytes.
	MaxTunnels    = 64
	MaxTunnelData = 16 << 10
	TunnelWindow  = 64 << 10
	// FrameOverhead is what a message frame may need beside its parts.
	FrameOverhead = 16 + 4*MaxParts
)

// marshal is json.Marshal for values of this package, which cannot fail.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("stream: " + err.Error())
	}
	return b
}
