package sessions

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"cellblock/internal/words"
	"cellblock/kernels"
)

// Prompt is a line of input that a running cell asks for.
type Prompt struct {
	// ID is no other prompt's, and nobody can guess it.
	ID string
	// Text is what the code asks, as it wrote it.
	Text string
	// Password tells that what is typed is not to be shown (getpass). Only a person is asked for one.
	Password bool

	since  time.Time
	expiry *time.Timer
	closed chan struct{}
}

// Closed is closed when the prompt has its answer, or the cell has gone on without.
func (p *Prompt) Closed() <-chan struct{} { return p.closed }

// input is what one cell asks, and whether anybody is there to be asked. A prompt is open or it is refused at once: no
// cell waits for somebody who may come.
type input struct {
	mu       sync.Mutex
	attended bool
	orphan   bool   // who would have been asked has called an earlier server
	name     string // begins the ids of the cell's prompts
	prompts  int
	prompt   *Prompt // the open one
	reply    func(line string)
	waited   time.Duration // in prompts that are closed
}

const (
	// noInput begins an answer that is none. Kernels make an EOFError of it, and ours (python_input.py) one that says what
	// comes behind it.
	noInput = "\x04"
	// maxLine bounds an answer, in bytes.
	maxLine = 64 << 10
	// maxPrompts is how often one cell may ask: code in a loop does not pester its user for ever.
	maxPrompts = 100
	// inCode is what a model can do about input that nobody gives.
	inCode = ": put the value into the code instead of calling input()"
	// notSecret is what it can do about getpass.
	notSecret = "secrets are not asked for here: let the code read them from a file in its working directory, or do without"
)

// Prompt returns what the cell waits for, nil when it waits for no input.
func (e *Execution) Prompt() *Prompt {
	e.input.mu.Lock()
	defer e.input.mu.Unlock()
	return e.input.prompt
}

// Asked tells whether it was this cell that asked a prompt, now or earlier.
func (e *Execution) Asked(id string) bool {
	e.input.mu.Lock()
	defer e.input.mu.Unlock()
	return e.input.prompts > 0 && strings.HasPrefix(id, e.input.name+"-")
}

// Answer gives the cell a line that it asked for. It does nothing when that prompt is not open (any more).
func (e *Execution) Answer(id, line string) {
	if len(line) > maxLine {
		line = noInput + fmt.Sprintf("the answer is longer than %d bytes", maxLine) + inCode
	}
	if reply := e.input.take(id, func(p *Prompt) { e.keepAnswer(p, line) }); reply != nil {
		reply(line)
		e.session.changed()
	}
}

// keepAnswer puts an answer into the record, where it was asked for. Of a password it is only kept that there was one.
func (e *Execution) keepAnswer(p *Prompt, line string) {
	if strings.HasPrefix(line, noInput) {
		return
	}
	out := kernels.Output{Kind: kernels.OutputAnswer, Time: time.Now(), Password: p.Password}
	if !p.Password {
		out.Text = line
	}
	e.record.append(out)
}

// Refuse makes the input() of an open prompt fail with a reason; the advice what to do instead is added. Whoever gave no
// answer is not asked again.
func (e *Execution) Refuse(id, why string) {
	if reply := e.input.take(id, func(*Prompt) {}); reply != nil {
		e.Unattend()
		reply(noInput + why + inCode)
	}
}

// Unattend says that nobody answers the cell's prompts from here on: the open one is refused, and so is any other.
func (e *Execution) Unattend() {
	e.input.mu.Lock()
	e.input.attended = false
	p := e.input.prompt
	e.input.mu.Unlock()
	if p != nil {
		e.Refuse(p.ID, "nobody is there to answer")
	}
}

// take closes a prompt, if it is open, and returns how to answer it. What keep puts into the record is there before
// anybody hears that the prompt is closed, and before the cell's end, which waits for the same lock (dropPrompt).
func (in *input) take(id string, keep func(*Prompt)) (reply func(line string)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.prompt
	if p == nil || p.ID != id {
		return nil
	}
	keep(p)
	in.close()
	return in.reply
}

// close closes the open prompt, if there is one. in.mu is held.
func (in *input) close() {
	if p := in.prompt; p != nil {
		in.prompt = nil
		in.waited += time.Since(p.since)
		p.expiry.Stop()
		close(p.closed)
	}
}

// ask deals with a cell that wants a line of input: it waits for whoever attends it, for a while, or is refused. One that
// asks again has given up what it asked before. The prompt is open before readers get to see it, and nobody answers it before it is in
// the record, where the answer comes behind it.
func (r *run) ask(out kernels.Output) {
	if out.Password && r.e.caller != Person {
		r.e.record.append(out)
		r.reply(noInput + notSecret)
		return
	}
	in, most := &r.e.input, r.s.manager.cfg.PromptTimeout
	in.mu.Lock()
	in.close()
	in.attended = in.attended && in.prompts < maxPrompts
	attended := in.attended
	if attended {
		in.open(Prompt{Text: out.Text, Password: out.Password}, r.reply, most, func(id string) { r.e.Refuse(id, "nobody answered within "+words.Length(most)) })
	}
	r.e.record.append(out)
	in.mu.Unlock()
	r.s.changed()
	if !attended {
		r.replyNothing()
	}
}

// open opens a prompt. in.mu is held.
func (in *input) open(p Prompt, reply func(string), most time.Duration, expire func(id string)) {
	if in.name == "" {
		in.name = rand.Text()
	}
	in.prompts++
	in.reply = reply
	p.ID = fmt.Sprintf("%s-%d", in.name, in.prompts)
	p.since, p.closed = time.Now(), make(chan struct{})
	p.expiry = time.AfterFunc(most, func() { expire(p.ID) })
	in.prompt = &p
}

// reply sends the kernel a line of input. When that cannot be done the connection is lost for good, and the cell ends.
func (r *run) reply(line string) {
	if err := r.running.Reply(r.s.ctx, line); err != nil {
		r.s.log.Warn("the kernel did not get its line of input", "error", err)
	}
}

// replyNothing tells code that nobody answers it, and why.
func (r *run) replyNothing() {
	why := "nobody can be asked for input here"
	if r.e.input.orphan {
		why = "nobody can be asked any more, because the server restarted"
	}
	r.reply(noInput + why + inCode)
}

// dropPrompt closes what the cell asked when it has ended: there is nobody left to be told an answer.
func (e *Execution) dropPrompt() {
	e.input.mu.Lock()
	defer e.input.mu.Unlock()
	e.input.close()
}

// isAttended tells whether somebody would answer the cell's prompts.
func (e *Execution) isAttended() bool {
	e.input.mu.Lock()
	defer e.input.mu.Unlock()
	return e.input.attended
}

// timeLeft is how much of its timeout a running cell still has: the time in which it waited for its user does not count.
// While it waits that is never less than a second, so that who looks again after that time does not look too often.
func (e *Execution) timeLeft(now time.Time) time.Duration {
	_, started := e.Phase()
	e.input.mu.Lock()
	defer e.input.mu.Unlock()
	waited, least := e.input.waited, time.Duration(0)
	if p := e.input.prompt; p != nil {
		waited, least = waited+now.Sub(p.since), time.Second
	}
	return max(e.timeout-now.Sub(started)+waited, least)
}
