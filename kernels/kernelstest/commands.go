package kernelstest

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

func init() {
	commands = map[string]func(*cell, string) error{
		"print":  func(c *cell, arg string) error { c.print("stdout", arg+"\n"); return nil },
		"stderr": func(c *cell, arg string) error { c.print("stderr", arg+"\n"); return nil },
		"result": func(c *cell, arg string) error { c.result(arg); return nil },
		"clear":  func(c *cell, _ string) error { c.send("clear_output", map[string]any{"wait": true}); return nil },
		"png":    (*cell).png, "update": (*cell).update, "comm": (*cell).comm, "manykeys": (*cell).manyKeys,
		"count": (*cell).countTo, "flood": (*cell).flood, "huge": (*cell).huge,
		"set": (*cell).set, "get": (*cell).get,
		"incarnation": func(c *cell, _ string) error { c.result(strconv.Itoa(c.p.incarnation)); return nil },
		"error":       (*cell).fail,
		"sleep":       func(c *cell, arg string) error { return c.p.sleep(duration(arg)) },
		"wait":        func(c *cell, _ string) error { return c.p.sleep(24 * time.Hour) },
		"stubborn":    (*cell).stubborn, "child": (*cell).child,
		"input":    func(c *cell, arg string) error { return c.input(arg, false) },
		"password": func(c *cell, arg string) error { return c.input(arg, true) },
		"late":     (*cell).late, "slowly": (*cell).slowly,
		"die": (*cell).die, "exit": (*cell).exit, "oom": (*cell).oom, "crash": (*cell).crash, "terminated": (*cell).terminated,
		"abort":     func(c *cell, _ string) error { c.status = "abort"; return nil },
		"aborted":   func(c *cell, _ string) error { c.status = "aborted"; return nil },
		"oddstatus": func(c *cell, _ string) error { c.status = "odd"; return nil },
		"badjson":   (*cell).badJSON, "badheader": (*cell).badHeader, "notype": (*cell).noType,
		"foreign": func(c *cell, arg string) error { c.elsewhere("somebody-else", arg); return nil },
		"orphan":  func(c *cell, arg string) error { c.elsewhere("", arg); return nil },
		"dropped": (*cell).dropped, "elided": (*cell).elided, "used": (*cell).used,
	}
}

func number(arg string) int {
	n, err := strconv.Atoi(arg)
	if err != nil {
		panic("kernelstest: script: " + err.Error())
	}
	return n
}

func duration(arg string) time.Duration {
	d, err := time.ParseDuration(arg)
	if err != nil {
		panic("kernelstest: script: " + err.Error())
	}
	return d
}

// png shows a picture, which is another one for each argument.
func (c *cell) png(arg string) error {
	picture := base64.StdEncoding.EncodeToString([]byte(rawPixel + arg)) // nobody reads what is behind its end
	c.send("display_data", map[string]any{"data": map[string]any{"image/png": picture, "text/plain": "Figure"}, "metadata": map[string]any{}, "transient": map[string]any{"display_id": "fig"}})
	return nil
}

func (c *cell) update(arg string) error {
	id, text, _ := strings.Cut(arg, " ")
	c.send("update_display_data", map[string]any{"data": map[string]any{"text/plain": text}, "metadata": map[string]any{}, "transient": map[string]any{"display_id": id}})
	return nil
}

func (c *cell) comm(string) error {
	c.send("comm_open", map[string]any{"comm_id": "1", "target_name": "widget", "data": map[string]any{}})
	return nil
}

func (c *cell) manyKeys(arg string) error {
	data := map[string]any{}
	for i := range number(arg) {
		data[strconv.Itoa(i)] = 0
	}
	c.send("display_data", map[string]any{"data": data, "metadata": map[string]any{}})
	return nil
}

func (c *cell) countTo(arg string) error {
	for i := range number(arg) {
		if c.p.ctx.Err() != nil {
			return errDead
		}
		c.print("stdout", strconv.Itoa(i)+"\n")
	}
	return nil
}

func (c *cell) flood(arg string) error {
	const piece = 16 << 10
	line := strings.Repeat("x", piece-1) + "\n"
	for n := number(arg); n > 0; n -= piece {
		if c.p.ctx.Err() != nil {
			return errDead
		}
		c.print("stdout", line)
	}
	return nil
}

func (c *cell) huge(arg string) error {
	c.print("stdout", strings.Repeat("x", number(arg)))
	return nil
}

func (c *cell) slowly(arg string) error {
	wait, text, _ := strings.Cut(arg, " ")
	c.slow, c.slowText = duration(wait), text
	return nil
}

func (c *cell) set(arg string) error {
	name, value, _ := strings.Cut(arg, " ")
	c.p.vars[name] = value
	return nil
}

func (c *cell) get(arg string) error {
	value, ok := c.p.vars[arg]
	if !ok {
		return &scriptError{"NameError", "name '" + arg + "' is not defined"}
	}
	c.result(value)
	return nil
}

func (c *cell) fail(arg string) error {
	name, value, _ := strings.Cut(arg, " ")
	if name == "" {
		name = "Error"
	}
	return &scriptError{name, value}
}

// stubborn sleeps through interrupts.
func (c *cell) stubborn(arg string) error {
	timer := time.NewTimer(duration(arg))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.p.ctx.Done():
		return errDead
	}
}

// child waits for a child process, which does not care for the kernel's interrupts.
func (c *cell) child(string) error {
	c.p.mu.Lock()
	c.p.children++
	c.p.mu.Unlock()
	c.print("stdout", "child\n")
	for {
		if err := c.p.sleep(24 * time.Hour); err != errInterrupted {
			return err
		}
		c.p.mu.Lock()
		alive := c.p.children > 0
		c.p.mu.Unlock()
		if !alive {
			c.print("stdout", "the child was killed\n")
			return nil
		}
	}
}

func (c *cell) input(prompt string, password bool) error {
	if !c.request.AllowStdin {
		return &scriptError{"StdinNotImplementedError", "nobody can answer input() here: put the value into the code"}
	}
	c.p.send(stream.Stdin, c.parent, "input_request", map[string]any{"prompt": prompt, "password": password})
	select {
	case value := <-c.p.input:
		if why, none := strings.CutPrefix(value, "\x04"); none {
			return &scriptError{"EOFError", why}
		}
		c.print("stdout", value+"\n")
		return nil
	case <-c.p.interrupts:
		return errInterrupted
	case <-c.p.ctx.Done():
		return errDead
	}
}

// late prints from a background thread, but not before those that began earlier.
func (c *cell) late(arg string) error {
	after, text, _ := strings.Cut(arg, " ")
	timer, before, printed := time.NewTimer(duration(after)), c.printed, make(chan struct{})
	c.printed = printed
	c.p.k.wg.Go(func() {
		defer close(printed)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.p.ctx.Done():
			return
		}
		if before != nil {
			<-before
		}
		c.p.send(stream.IOPub, c.threadParent(), "stream", map[string]any{"name": "stdout", "text": text + "\n"})
	})
	return nil
}

// threadParent returns what a thread of the cell tags its output with.
func (c *cell) threadParent() wire.Header {
	if !c.p.k.opts.OneParent {
		return c.parent
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.p.last
}

func (c *cell) die(arg string) error {
	signal, output, _ := strings.Cut(cmp.Or(arg, "SIGKILL"), " ")
	c.p.die(stream.Exit{Code: -1, Signal: signal, Output: output})
	return errDead
}

func (c *cell) exit(arg string) error {
	code, output, _ := strings.Cut(arg, " ")
	c.p.die(stream.Exit{Code: number(code), Output: output})
	return errDead
}

func (c *cell) oom(string) error {
	c.p.die(stream.Exit{Code: -1, Signal: "SIGKILL", OOM: true})
	return errDead
}

func (c *cell) terminated(string) error {
	c.p.die(stream.Exit{Code: -1, Signal: "SIGTERM", Asked: true})
	c.p.k.Crash(kernels.ExitStatus{})
	return errDead
}

func (c *cell) crash(arg string) error {
	c.p.k.Crash(kernels.ExitStatus{Code: number(arg)})
	return errDead
}

func (c *cell) badJSON(string) error {
	c.p.sendRaw(stream.IOPub, c.parent, "stream", []byte(`{"name": "stdout", "text": `), c.stream)
	return nil
}

func (c *cell) badHeader(string) error {
	c.p.k.message(stream.Message{Channel: stream.IOPub, Parts: [][]byte{[]byte("\xff\x00"), []byte("[]"), nil, []byte("{}")}}, c.stream)
	return nil
}

func (c *cell) noType(string) error { c.send("", map[string]any{}); return nil }

// elsewhere prints for another parent.
func (c *cell) elsewhere(parent, text string) {
	c.p.send(stream.IOPub, wire.Header{MsgID: parent}, "stream", map[string]any{"name": "stdout", "text": text})
}

func (c *cell) dropped(string) error {
	c.event(stream.Event{Kind: stream.EventDropped, Dropped: &stream.Dropped{Channel: "iopub", Reason: "wrong signature", Count: 1}})
	return nil
}

func (c *cell) elided(arg string) error {
	n := int64(number(arg))
	c.event(stream.Event{Kind: stream.EventElided, Elided: &stream.Elided{Parent: c.parent.MsgID, Stream: "stdout", Bytes: 10 * n, Lines: n}})
	return nil
}

// used has the shim say what the cell has used: a time and a number of bytes.
func (c *cell) used(arg string) error {
	cpu, memory, _ := strings.Cut(arg, " ")
	memory, kills, _ := strings.Cut(memory, " ")
	used := &stream.Used{Parent: c.parent.MsgID, CPU: duration(cpu), Memory: int64(number(memory)), OOMKills: int64(number(cmp.Or(kills, "0")))}
	c.p.mu.Lock()
	c.p.oomKills = used.OOMKills
	c.p.mu.Unlock()
	c.event(stream.Event{Kind: stream.EventUsed, Used: used})
	return nil
}

func (c *cell) event(e stream.Event) {
	c.p.k.mu.Lock()
	defer c.p.k.mu.Unlock()
	c.p.k.event(e)
}
