package kernels

import (
	"bytes"
	"encoding/json"
	"time"

	"cellblock/internal/jsontext"
)

// Status says how an execution ended.
type Status string

// The statuses of an execution. The first three are the kernel's own word, from execute_reply.
const (
	StatusOK    Status = "ok"
	StatusError Status = "error"
	// StatusAborted: an earlier cell's error kept it from running.
	StatusAborted Status = "aborted"
	// StatusDied: the kernel ended first; see Result.Death.
	StatusDied Status = "died"
	// StatusIncomplete: the reply was never seen; see Result.Reason.
	StatusIncomplete Status = "incomplete"
)

// Result is how an execution ended.
type Result struct {
	Status         Status
	ExecutionCount int
	// Error is set for StatusError.
	Error *ExecError
	// Death is set when the kernel ended during the execution, also if its reply came before.
	Death *Death
	// Reason says what of the end was not seen, in a sentence; empty when all was.
	Reason string
	// Started is when the kernel began, Ended when it had ended, as far as known.
	Started, Ended time.Time
	// CPU is the processor time that all processes of the kernel's container or sandbox used meanwhile, and PeakMemory the
	// most that they held, in bytes; 0 where that is not known.
	CPU        time.Duration
	PeakMemory int64
	// OOMKills is how many of those processes were killed meanwhile because their memory limit was reached, as far as that is counted.
	OOMKills int64
	// UserExpressions and Payload are the reply's, as the kernel sent them.
	UserExpressions json.RawMessage
	Payload         json.RawMessage
}

// replyContent is the content of execute_reply.
type replyContent struct {
	Status          string
	ExecutionCount  int
	UserExpressions json.RawMessage
	Payload         json.RawMessage
	errorContent
}

// member takes one member of a reply's content.
func (c *replyContent) member(name []byte, value json.RawMessage) (err error) {
	switch string(name) {
	case "status":
		c.Status, err = decodeText(value)
	case "execution_count":
		c.ExecutionCount, err = decodeInt(value)
	case "user_expressions":
		c.UserExpressions = value
	case "payload":
		c.Payload = value
	default:
		err = c.errorContent.member(name, value)
	}
	return err
}

// result builds the result of a call that is over. Kernels that put nothing about an error into the reply have sent it as
// an output.
func (k *call) result(lastError *ExecError) Result {
	r := Result{
		Status: StatusIncomplete, Started: k.started, Ended: k.endedAt(), Death: k.death,
		CPU: max(0, k.used.CPU), PeakMemory: max(0, k.used.Memory), OOMKills: max(0, k.used.OOMKills),
	}
	switch {
	case k.replied:
		r.fromReply(k.reply, lastError)
		if !k.idle && k.death == nil && !k.closed {
			r.Reason = "the kernel did not say that it had finished: output may be missing"
		}
	case k.death != nil:
		r.Status = StatusDied
	case k.closed:
		r.Reason = ErrClosed.Error()
	case k.unsent:
		r.Reason = "the code could not be given to the kernel: it did not run"
	case k.lost && !k.seen && !k.adopted:
		r.Reason = "the connection to the kernel broke while the code was sent: it did not run"
	default:
		r.Reason = "the kernel's reply never came: whether the code succeeded is not known"
	}
	return r
}

func (r *Result) fromReply(content json.RawMessage, lastError *ExecError) {
	var c replyContent
	if err := jsontext.KnownMembers(content, c.member); err != nil {
		r.Reason = "the kernel's reply could not be read: whether the code succeeded is not known"
		return
	}
	r.ExecutionCount, r.UserExpressions, r.Payload = c.ExecutionCount, bytes.Clone(c.UserExpressions), bytes.Clone(c.Payload)
	switch c.Status {
	case "ok":
		r.Status = StatusOK
	case "error":
		r.Status = StatusError
		if r.Error, _ = c.execError(); r.Error == nil {
			r.Error = lastError
		}
		if r.Error == nil {
			r.Error = &ExecError{}
		}
	case "aborted", "abort": // tslab says abort
		r.Status = StatusAborted
	default:
		r.Reason = "the kernel's reply has an unknown status: whether the code succeeded is not known"
	}
}
