package kernelstest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// A script is what a fake kernel runs instead of code: one command a line, unknown ones are a NameError.
//
//	1+1                result 2; any sum of two numbers
//	print TEXT         stdout, with a newline; also: stderr TEXT
//	result TEXT        execute_result
//	png [MARK]         display_data with an image of one pixel, another one for each mark
//	update ID TEXT     update_display_data; clear: clear_output
//	count N            stdout "0\n" … "N-1\n", one message each
//	flood BYTES        stdout, in messages of 16 KiB
//	huge BYTES         one stdout message
//	set NAME VALUE     keeps a value; get NAME: result VALUE, or a NameError
//	incarnation        result: how many kernel processes there have been
//	error [NAME [VALUE]]
//	sleep DURATION     can be interrupted, as can: wait, which waits for just that
//	stubborn DURATION  cannot be interrupted
//	child              prints child and waits for a child process that only kill_children ends
//	input PROMPT       asks, and prints the answer; password PROMPT
//	late DURATION TEXT prints when the cell has ended
//	slowly DURATION TEXT prints, and is idle, so long after the reply
//	comm               comm_open
//
// Faults of the kernel:
//
//	die [SIGNAL], exit CODE [OUTPUT], oom
//	noidle, noreply, idlefirst, silent (neither, and no busy)
//	bareerror (error reply without a name), abort, aborted, oddstatus, oddreply
//	badjson (a message with broken content), badheader, notype
//	foreign TEXT (unknown parent), orphan TEXT (no parent)
//	manykeys N (a MIME bundle of N types)
//	dropped, elided N (events of the shim)
//
// Faults of the stream, at the next message: twice, skip, cut, garbage, claim (3 GiB), hangup, nonsense (for ever),
// wrongtype. And: crash CODE ends the container; terminated ends it as an engine does that is stopped.
type script []string

// Errors that end a script.
var (
	errInterrupted = errors.New("interrupted")
	errDead        = errors.New("the process has ended")
)

// scriptError is an error of the script's own.
type scriptError struct{ name, value string }

func (e *scriptError) Error() string { return e.name + ": " + e.value }

// cell is one execution.
type cell struct {
	p       *process
	parent  wire.Header
	request struct {
		Code       string
		Silent     bool
		AllowStdin bool `json:"allow_stdin"`
	}
	faults []string
	stream streamFault // for the next message
	status string
	// slow delays what follows the reply on IOPub: slowText, then idle.
	slow     time.Duration
	slowText string
	printed  chan struct{} // closed when the last of what prints late has printed
}

// execute runs one execute_request, with the faults that it names itself.
func (p *process) execute(msg wire.Message) {
	c := &cell{p: p, parent: msg.Header}
	_ = json.Unmarshal(msg.Content, &c.request)
	lines := script(strings.Split(strings.TrimSpace(c.request.Code), "\n"))
	if slices.Contains(lines, "silent") {
		return
	}
	select {
	case <-p.interrupts: // one that came too late for the cell before
	default:
	}
	if !c.request.Silent {
		p.count++
	}
	p.status(msg.Header, "busy")
	if !c.request.Silent {
		p.send(stream.IOPub, msg.Header, "execute_input", map[string]any{"code": c.request.Code, "execution_count": p.count})
	}
	err := c.run(lines)
	if errors.Is(err, errDead) {
		return
	}
	c.finish(err)
}

func (c *cell) run(lines script) error {
	for _, line := range lines {
		if err := c.command(strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	return nil
}

// finish sends reply and idle, in the order and number that the faults leave.
func (c *cell) finish(err error) {
	content := c.reply(err)
	idle := func() {
		if !slices.Contains(c.faults, "noidle") {
			c.p.status(c.parent, "idle")
		}
	}
	reply := func() {
		switch {
		case slices.Contains(c.faults, "noreply"):
		case slices.Contains(c.faults, "oddreply"):
			c.p.send(stream.Shell, c.parent, "execute_reply", map[string]any{"status": 1})
		default:
			c.p.sendFaulty(stream.Shell, c.parent, "execute_reply", content, c.stream)
		}
	}
	if slices.Contains(c.faults, "idlefirst") {
		idle()
		reply()
		return
	}
	reply()
	if c.slow > 0 && c.p.sleep(c.slow) == nil {
		c.print("stdout", c.slowText+"\n")
	}
	idle()
}

// reply returns the content of execute_reply, and sends the error output that belongs to it.
func (c *cell) reply(err error) map[string]any {
	content := map[string]any{"status": "ok", "execution_count": c.p.count, "user_expressions": map[string]any{}, "payload": []any{}}
	if c.status != "" {
		content["status"] = c.status
	}
	var failed *scriptError
	switch {
	case errors.Is(err, errInterrupted):
		failed = &scriptError{"KeyboardInterrupt", ""}
	case !errors.As(err, &failed):
		return content
	}
	text := map[string]any{"ename": failed.name, "evalue": failed.value, "traceback": []string{"Traceback", failed.Error()}}
	c.send("error", text)
	if slices.Contains(c.faults, "bareerror") {
		return map[string]any{"status": "error"}
	}
	text["status"], text["execution_count"] = "error", c.p.count
	return text
}

func (c *cell) send(msgType string, content any) {
	c.p.sendFaulty(stream.IOPub, c.parent, msgType, content, c.stream)
	c.stream = faultNone
}

func (c *cell) print(name, text string) {
	c.send("stream", map[string]any{"name": name, "text": text})
}

func (c *cell) result(text string) {
	c.send("execute_result", map[string]any{"data": map[string]any{"text/plain": text}, "metadata": map[string]any{}, "execution_count": c.p.count})
}

// commands are what a script may say.
var commands map[string]func(c *cell, arg string) error

var streamFaults = map[string]streamFault{
	"twice": faultTwice, "skip": faultSkip, "cut": faultCut, "garbage": faultGarbage, "claim": faultHuge,
	"hangup": faultHangup, "nonsense": faultNonsense, "wrongtype": faultWrongType,
}

var kernelFaults = []string{"noidle", "noreply", "idlefirst", "bareerror", "oddreply"}

func (c *cell) command(line string) error {
	name, arg, _ := strings.Cut(line, " ")
	if name == "" {
		return nil
	}
	if a, b, ok := strings.Cut(line, "+"); ok {
		x, err1 := strconv.Atoi(strings.TrimSpace(a))
		y, err2 := strconv.Atoi(strings.TrimSpace(b))
		if err1 == nil && err2 == nil {
			c.result(strconv.Itoa(x + y))
			return nil
		}
	}
	if f := streamFaults[name]; f != faultNone {
		c.stream = f
		return nil
	}
	if slices.Contains(kernelFaults, name) {
		c.faults = append(c.faults, name)
		return nil
	}
	if f := commands[name]; f != nil {
		return f(c, arg)
	}
	return &scriptError{"NameError", fmt.Sprintf("name %q is not defined", name)}
}

// sleep waits; it ends early with an error when the process is interrupted or ends.
func (p *process) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.interrupts:
		return errInterrupted
	case <-p.ctx.Done():
		return errDead
	}
}

// rawPixel is a PNG, onePixel as kernels send it.
const rawPixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

var onePixel = base64.StdEncoding.EncodeToString([]byte(rawPixel))
