// Package audit keeps the record of who had what done, in a file that shows when somebody has tampered with it.
//
// The log is lines of JSON, appended only. Each carries a number, the seal (HMAC-SHA-256) of the line before it, and, as its
// last member, its own seal over everything before that; the key lies in the data folder and in no line. So a line that was
// changed, taken out, put elsewhere or copied is found by Verify, and told by its number. That lines were cut off at the end
// is seen by the head, a small sealed file that says how many there are and which seal the last one has.
//
// The head is a file beside the log, and not only a row of the history's database, for three reasons: the log must work when
// the database does not; several processes write one log, and the head, written under the log's lock, is all that they must
// agree on; and whoever verifies an archived log needs two files and a key, and no database. The database has a copy
// (Copies), at most a second old: by it Verify, and whoever writes next, find out that log and head were put back to an
// earlier state, or taken away, together.
//
// Lines are written before the head. What a killed process leaves is therefore lines that the head does not count, whose
// seals hold, and they are taken over by whoever writes next; or the beginning of a line, which is cut off, and a line says
// so. Whatever else does not fit the head is set aside as it is, and a line tells of the gap. Nothing is mended silently.
//
// What this cannot show: that somebody who may write the data folder put back an older copy of log, head and database
// together. Who has such users sends the lines elsewhere as they are written.
package audit

import (
	"slices"
	"strings"
	"time"

	"cellblock/internal/fault"
)

// Event is what a line tells of.
type Event string

// The events. What follows Denied tells of the log itself.
const (
	// Started and Stopped frame the life of a process that writes the log.
	Started Event = "started"
	Stopped Event = "stopped"
	// Called is a call that may change something, written before anything of it is done.
	Called Event = "called"
	// Answered is how a call went.
	Answered Event = "answered"
	// Ended is how a cell went, which may be long after its call.
	Ended Event = "ended"
	// Connected is a connection out of a sandbox that has ended, or was refused.
	Connected Event = "connected"
	// Denied is a call that was refused because of who made it.
	Denied Event = "denied"
	// Repaired: a killed process has left the beginning of a line, which was cut off.
	Repaired Event = "repaired"
	// Gap: the log is not as it was left.
	Gap Event = "gap"
	// Lost: so many lines could not be written.
	Lost Event = "lost"
)

// Entry is what a line says. What is not known is left out.
type Entry struct {
	Time  time.Time `json:"time"`
	Event Event     `json:"event"`
	// Request is the id of the HTTP request, or of the call where there is none.
	Request string `json:"request,omitempty"`
	// Issuer and Subject are who calls, ClientID the OAuth client that the token was given to, Client what the program calls
	// itself, and Address where it is.
	Issuer   string `json:"issuer,omitempty"`
	Subject  string `json:"subject,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	Client   string `json:"client,omitempty"`
	Address  string `json:"address,omitempty"`
	// Tool is what is called, and Scope what the call needs.
	Tool  string `json:"tool,omitempty"`
	Scope string `json:"scope,omitempty"`
	// OfIssuer and OfSubject are whose session it is, where that is somebody else's than the caller's.
	OfIssuer  string `json:"of_issuer,omitempty"`
	OfSubject string `json:"of_subject,omitempty"`
	Session   string `json:"session,omitempty"`
	Execution int    `json:"execution,omitempty"`
	Language  string `json:"language,omitempty"`
	Profile   string `json:"profile,omitempty"`
	// Protocol is how a connection was asked for, Host what was asked for, with its port, and Target the address that it was
	// made to, or "proxy"; SentBytes and ReceivedBytes are what went through it, from the kernel and to it.
	Protocol      string `json:"protocol,omitempty"`
	Host          string `json:"host,omitempty"`
	Target        string `json:"target,omitempty"`
	SentBytes     int64  `json:"sent_bytes,omitempty"`
	ReceivedBytes int64  `json:"received_bytes,omitempty"`
	// CodeSHA256 and CodeBytes describe the code; Code is it, where the log is told to keep it.
	CodeSHA256 string `json:"code_sha256,omitempty"`
	CodeBytes  int    `json:"code_bytes,omitempty"`
	Code       string `json:"code,omitempty"`
	// Files are paths in the workspace, or addresses of resources, and MoreFiles counts those that are not named.
	Files     []string `json:"files,omitempty"`
	MoreFiles int      `json:"more_files,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds,omitempty"`
	// CPUMillis is the processor time that a cell used, in milliseconds, and PeakMemoryBytes the most memory that its kernel
	// and all processes beside it held meanwhile.
	CPUMillis       float64 `json:"cpu_ms,omitempty"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes,omitempty"`
	// Status is how it went: "ok", "error", or a kind of error; of a cell, what lists of cells say.
	Status string `json:"status,omitempty"`
	// Reason says why, in a sentence, and Count how many, where the event says of what.
	Reason string `json:"reason,omitempty"`
	Count  uint64 `json:"count,omitempty"`
}

// Went adds how something went that ended with err.
func (e *Entry) Went(err error) {
	if e.Status = "ok"; err != nil {
		e.Failed(fault.KindOf(err), err.Error())
	}
}

// Failed adds why something did not succeed. What was refused because of who asked for it was Denied.
func (e *Entry) Failed(kind fault.Kind, why string) {
	e.Status, e.Reason = kind.String(), why
	if kind == fault.Forbidden || kind == fault.Unauthenticated {
		e.Event = Denied
	}
}

// maxText bounds a text that a caller had a hand in, maxCode the code of a cell, beyond which no cell runs, and maxFiles how
// many files a line names.
const (
	maxText  = 1000
	maxCode  = 1 << 20
	maxFiles = 100
)

// bounded returns the entry with nothing in it that is longer than a line should be: calls are told of before anybody has
// judged what they say, and what waits to be written stays in memory.
func (e Entry) bounded() Entry {
	for _, text := range []*string{&e.Request, &e.Issuer, &e.Subject, &e.ClientID, &e.Client, &e.Address, &e.Tool, &e.Scope, &e.OfIssuer, &e.OfSubject,
		&e.Session, &e.Language, &e.Profile, &e.Protocol, &e.Host, &e.Target, &e.Status, &e.Reason} {
		*text = clip(*text, maxText)
	}
	e.Code = clip(e.Code, maxCode)
	if len(e.Files) > maxFiles {
		e.MoreFiles += len(e.Files) - maxFiles
		e.Files = e.Files[:maxFiles]
	}
	e.Files = slices.Clone(e.Files)
	for i, name := range e.Files {
		e.Files[i] = clip(name, maxText)
	}
	return e
}

// weight is about what an entry takes in memory, in bytes.
func (e Entry) weight() int {
	n := 1000 + len(e.Code) // all its other texts are short, mostly
	for _, name := range e.Files {
		n += len(name)
	}
	return n
}

// clip shortens a text, and holds on to nothing that it was cut from.
func clip(s string, most int) string {
	if len(s) <= most {
		return strings.Clone(s)
	}
	return s[:most] + "…"
}
