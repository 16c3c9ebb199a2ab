package kernels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"cellblock/internal/jsontext"
	"cellblock/kernels/wire"
)

// OutputKind says what an Output is. Most kinds are the msg_type of the message (Jupyter messaging, "Messages on the
// IOPub channel").
type OutputKind string

// The kinds of output.
const (
	OutputStream  OutputKind = "stream"
	OutputResult  OutputKind = "execute_result"
	OutputDisplay OutputKind = "display_data"
	OutputUpdate  OutputKind = "update_display_data"
	OutputClear   OutputKind = "clear_output"
	OutputError   OutputKind = "error"
	// OutputInput: the code waits for a line of input; see Execution.Reply.
	OutputInput OutputKind = "input_request"
	// OutputAnswer: what the last OutputInput was answered, which no kernel says: who answered it does.
	OutputAnswer OutputKind = "input_reply"
	// OutputNotice: something about the output is to be told at this place; see Notice.
	OutputNotice OutputKind = "notice"
	// OutputOther: any other message, comm_open, comm_msg and comm_close for example; see Output.Type and Content.
	OutputOther OutputKind = "other"
)

// Output is one thing that an execution produced. Its texts are as the kernel sent them, and not to be trusted.
type Output struct {
	Kind OutputKind
	// Seq is the number in the shim's sequence; 0 for a notice that the Client made itself. After a new connection the
	// same output may come again with the same number, when it had not been acknowledged.
	Seq uint64
	// Time is when the kernel sent it.
	Time time.Time

	// Stream is "stdout" or "stderr". Text is the stream's text, an input request's prompt, or what was answered.
	Stream string
	Text   string

	// Data is a MIME bundle: text types and base64 of images are JSON strings. Metadata belongs to it.
	Data     map[string]json.RawMessage
	Metadata json.RawMessage
	// DisplayID names a display that a later OutputUpdate replaces.
	DisplayID string
	// ExecutionCount numbers a result.
	ExecutionCount int

	// Error is set for OutputError.
	Error *ExecError
	// Wait delays an OutputClear until the next output.
	Wait bool
	// Password tells that what is typed for an OutputInput must not be shown. An OutputAnswer to it has no text.
	Password bool
	// Notice is set for OutputNotice.
	Notice *Notice

	// Type and Content are the message's own, for OutputOther.
	Type    string
	Content json.RawMessage
}

// ExecError is an error of the user's code, as the kernel sent it, ANSI sequences and all.
type ExecError struct {
	Name      string
	Value     string
	Traceback []string
}

// Bounds on what one message may make us allocate beyond its own size.
const (
	maxMIMETypes = 1024
	maxTraceback = 64 << 10
)

var errTooMany = errors.New("too many entries")

// outputContent is the content of all messages that become outputs. It is not left to encoding/json, which looked at each byte of
// a picture six times, and copied it twice.
type outputContent struct {
	Name           string
	Text           string
	Data           json.RawMessage
	Metadata       json.RawMessage
	ExecutionCount int
	Wait           bool
	Prompt         string
	Password       bool
	Transient      transient
	errorContent
}

// transient is what belongs to a display and is not kept in notebooks.
type transient struct {
	DisplayID string `json:"display_id"`
}

// errorContent is the part of an error message and of an error reply that describes the error.
type errorContent struct {
	EName     string
	EValue    string
	Traceback json.RawMessage
}

// member takes one member of a content, if it describes an error.
func (c *errorContent) member(name []byte, value json.RawMessage) (err error) {
	switch string(name) {
	case "ename":
		c.EName, err = decodeText(value)
	case "evalue":
		c.EValue, err = decodeText(value)
	case "traceback":
		c.Traceback = value
	}
	return err
}

// execError returns the error that c describes, nil when it names none.
func (c errorContent) execError() (*ExecError, error) {
	if c.EName == "" && c.EValue == "" && len(c.Traceback) == 0 {
		return nil, nil
	}
	e := &ExecError{Name: c.EName, Value: c.EValue}
	if members(c.Traceback) > maxTraceback {
		return nil, fmt.Errorf("traceback: %w", errTooMany)
	}
	if len(c.Traceback) > 0 {
		if err := json.Unmarshal(c.Traceback, &e.Traceback); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// decodeOutput turns a message into an output.
func decodeOutput(msg wire.Message, seq uint64) (Output, error) {
	out := Output{Kind: OutputKind(msg.Header.MsgType), Seq: seq, Time: sentAt(msg.Header)}
	switch out.Kind {
	case OutputStream, OutputResult, OutputDisplay, OutputUpdate, OutputClear, OutputError, OutputInput:
	default:
		out.Kind, out.Type, out.Content = OutputOther, msg.Header.MsgType, msg.Content
		return out, nil
	}
	var c outputContent
	if err := jsontext.KnownMembers(msg.Content, c.member); err != nil {
		return Output{}, err
	}
	err := out.fill(c)
	return out, err
}

// detach copies what shares the memory of a message of so many bytes, if it is a small part of it: who keeps outputs counts what they
// have, and not what came with them.
func (o *Output) detach(message int64) {
	own := int64(len(o.Metadata) + len(o.Content))
	for _, value := range o.Data {
		own += int64(len(value))
	}
	if message <= 2*own+detached {
		return
	}
	o.Metadata, o.Content = bytes.Clone(o.Metadata), bytes.Clone(o.Content)
	for mime, value := range o.Data {
		o.Data[mime] = bytes.Clone(value)
	}
}

// detached is how many bytes of a message nobody minds who keeps its output: those around it.
const detached = 1 << 10

// member takes one member of a message's content. What is large shares the message's memory. Nothing here lets c escape: of the
// messages that it is for there are many.
func (c *outputContent) member(name []byte, value json.RawMessage) (err error) {
	switch string(name) {
	case "name":
		c.Name, err = decodeText(value)
	case "text":
		c.Text, err = decodeText(value)
	case "data":
		c.Data = value
	case "metadata":
		c.Metadata = value
	case "execution_count":
		c.ExecutionCount, err = decodeInt(value)
	case "wait":
		c.Wait, err = decode[bool](value)
	case "prompt":
		c.Prompt, err = decodeText(value)
	case "password":
		c.Password, err = decode[bool](value)
	case "transient":
		c.Transient, err = decode[transient](value)
	default:
		err = c.errorContent.member(name, value)
	}
	return err
}

// decode decodes a small JSON value; null is the zero value.
func decode[T any](value json.RawMessage) (v T, err error) {
	err = json.Unmarshal(value, &v)
	return v, err
}

// decodeInt decodes an integer, of what is known to be JSON; null is 0.
func decodeInt(value json.RawMessage) (int, error) {
	if n, err := strconv.Atoi(string(value)); err == nil {
		return n, nil
	}
	return decode[int](value)
}

// decodeText decodes a JSON string; null is an empty one. Of the name of a stream no copy is made.
func decodeText(value json.RawMessage) (string, error) {
	switch string(value) {
	case `"stdout"`:
		return "stdout", nil
	case `"stderr"`:
		return "stderr", nil
	}
	if text, ok := jsontext.KnownText(value); ok {
		return text, nil
	}
	return decode[string](value)
}

// fill takes from c what belongs to the output's kind.
func (o *Output) fill(c outputContent) (err error) {
	switch o.Kind {
	case OutputStream:
		o.Stream, o.Text = c.Name, c.Text
	case OutputResult, OutputDisplay, OutputUpdate:
		o.Metadata, o.DisplayID, o.ExecutionCount = c.Metadata, c.Transient.DisplayID, c.ExecutionCount
		o.Data, err = decodeBundle(c.Data)
	case OutputClear:
		o.Wait = c.Wait
	case OutputError:
		if o.Error, err = c.execError(); o.Error == nil {
			o.Error = &ExecError{}
		}
	case OutputInput:
		o.Text, o.Password = c.Prompt, c.Password
	}
	return err
}

// decodeBundle decodes a MIME bundle. Its values share the memory of text.
func decodeBundle(text json.RawMessage) (bundle map[string]json.RawMessage, err error) {
	if len(text) == 0 || jsontext.IsNull(text) {
		return nil, nil
	}
	bundle = map[string]json.RawMessage{}
	n := 0
	err = jsontext.KnownMembers(text, func(mime []byte, value json.RawMessage) error {
		if n++; n > maxMIMETypes {
			return fmt.Errorf("data: %w", errTooMany)
		}
		bundle[string(mime)] = value
		return nil
	})
	return bundle, err
}

// members returns an upper bound for the entries of a valid JSON object or array, without decoding it.
func members(text []byte) int {
	n, depth, quoted := 1, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			n++
		}
	}
	return n
}

// sentAt returns when a message was sent by its own word, or now where that cannot be.
func sentAt(h wire.Header) time.Time {
	now := time.Now()
	if t, err := time.Parse(time.RFC3339Nano, h.Date); err == nil && t.Before(now) && !t.IsZero() {
		return t
	}
	return now
}
