package history

import (
	"encoding/json"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
	"cellblock/sessions"
	"cellblock/sessions/files"
)

// preparedEnd is the end of an execution as columns: status and summary for people who ask the database, result for us.
type preparedEnd struct {
	sessions.ExecutionEnded
	status, summary, result string
}

// failureStatus is the status of a cell that never ran.
const failureStatus = "not run"

// endDocument is the column result. Its names, and those of the documents in it, are on disk: they are only added to.
type endDocument struct {
	Result  *resultDocument  `json:"result,omitempty"`
	Failure *failureDocument `json:"failure,omitempty"`
}

type failureDocument struct {
	Kind    fault.Kind `json:"kind"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
}

type resultDocument struct {
	Status          kernels.Status     `json:"status"`
	ExecutionCount  int                `json:"execution_count,omitempty"`
	Error           *kernels.ExecError `json:"error,omitempty"`
	Death           *deathDocument     `json:"death,omitempty"`
	Reason          string             `json:"reason,omitempty"`
	Started         time.Time          `json:"started,omitzero"`
	Ended           time.Time          `json:"ended,omitzero"`
	UserExpressions json.RawMessage    `json:"user_expressions,omitempty"`
	Payload         json.RawMessage    `json:"payload,omitempty"`
	TimedOut        bool               `json:"timed_out,omitempty"`
	Cancelled       bool               `json:"cancelled,omitempty"`
	Restarted       bool               `json:"restarted,omitempty"`
	Interrupted     bool               `json:"interrupted,omitempty"`
	Rung            string             `json:"rung,omitempty"`
	VariablesKept   bool               `json:"variables_kept,omitempty"`
	InterruptedBy   string             `json:"interrupted_by,omitempty"`
	Duration        time.Duration      `json:"duration,omitempty"`
	Files           []files.Change     `json:"files,omitempty"`
	MoreFiles       int                `json:"more_files,omitempty"`
	Overrun         int64              `json:"overrun,omitempty"`
	CPU             time.Duration      `json:"cpu,omitempty"`
	PeakMemory      int64              `json:"peak_memory,omitempty"`
	OOMKills        int64              `json:"oom_kills,omitempty"`
}

type deathDocument struct {
	Cause     string              `json:"cause"`
	Exit      *stream.Exit        `json:"exit,omitempty"`
	Container *kernels.ExitStatus `json:"container,omitempty"`
	OOM       bool                `json:"oom,omitempty"`
	Asked     bool                `json:"asked,omitempty"`
	Time      time.Time           `json:"time,omitzero"`
}

func documentOf(r sessions.Result) *resultDocument {
	d := &resultDocument{
		Status: r.Status, ExecutionCount: r.ExecutionCount, Error: r.Error, Reason: r.Reason, Started: r.Started, Ended: r.Ended,
		UserExpressions: r.UserExpressions, Payload: r.Payload, TimedOut: r.TimedOut, Cancelled: r.Cancelled, Restarted: r.Restarted,
		Interrupted: r.Interrupt.Ran, Rung: r.Interrupt.Rung, VariablesKept: r.Interrupt.VariablesKept, InterruptedBy: r.Interrupt.Caller, Duration: r.Duration,
		Files: r.Files, MoreFiles: r.MoreFiles, Overrun: r.Overrun, CPU: r.CPU, PeakMemory: r.PeakMemory, OOMKills: r.OOMKills,
	}
	if r.Death != nil {
		d.Death = (*deathDocument)(r.Death)
	}
	return d
}

func (d *resultDocument) result() sessions.Result {
	r := sessions.Result{
		Result: kernels.Result{
			Status: d.Status, ExecutionCount: d.ExecutionCount, Error: d.Error, Reason: d.Reason, Started: d.Started, Ended: d.Ended,
			UserExpressions: d.UserExpressions, Payload: d.Payload, CPU: d.CPU, PeakMemory: d.PeakMemory, OOMKills: d.OOMKills,
		},
		TimedOut: d.TimedOut, Cancelled: d.Cancelled, Duration: d.Duration, Files: d.Files, MoreFiles: d.MoreFiles,
		Overrun: d.Overrun, Restarted: d.Restarted,
		Interrupt: sessions.InterruptReport{Ran: d.Interrupted, Rung: d.Rung, VariablesKept: d.VariablesKept, Caller: d.InterruptedBy},
	}
	if d.Death != nil {
		r.Death = (*kernels.Death)(d.Death)
	}
	return r
}

func prepareEnd(change sessions.ExecutionEnded) (any, error) {
	p := preparedEnd{ExecutionEnded: change, status: failureStatus}
	var doc endDocument
	if f := change.Failure; f != nil {
		p.summary = summarize(f.Message)
		doc.Failure = &failureDocument{Kind: f.Kind, Message: f.Message, Hint: f.Hint}
	} else {
		p.status, p.summary = string(change.Result.Status), errorSummary(change.Result)
		doc.Result = documentOf(change.Result)
	}
	text, err := json.Marshal(doc)
	p.result = string(text)
	return p, err
}

// errorSummary is what went wrong in a cell, in a line.
func errorSummary(r sessions.Result) string {
	switch {
	case r.Death != nil:
		return summarize(r.Death.Cause)
	case r.Error != nil && r.Error.Value != "":
		return summarize(r.Error.Name + ": " + r.Error.Value)
	case r.Error != nil:
		return summarize(r.Error.Name)
	}
	return summarize(r.Reason)
}

func summarize(text string) string {
	const most = 300
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// readEnd fills in an execution's end from the column result.
func readEnd(e *sessions.StoredExecution, text string) error {
	if text == "" {
		return nil
	}
	var doc endDocument
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return err
	}
	if doc.Result != nil {
		e.Result = doc.Result.result()
	}
	if f := doc.Failure; f != nil {
		e.Failure = &fault.Error{Kind: f.Kind, Message: f.Message, Hint: f.Hint}
	}
	return nil
}
