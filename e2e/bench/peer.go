package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// peer is another program that is measured beside ours: one request line in, one answer line out.
type peer struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
}

// startPeer starts a Python script and waits until it says "ready".
func startPeer(ctx context.Context, script string, args ...string) (*peer, error) {
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", append([]string{"-W", "ignore", script}, args...)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &peer{cmd: cmd, stdin: stdin, lines: bufio.NewReader(stdout)}
	if line, err := p.lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		p.stop()
		return nil, fmt.Errorf("%s did not come up: %q, %w", script, line, err)
	}
	return p, nil
}

// ask sends a line and decodes the answer.
func (p *peer) ask(line string, answer any) error {
	if _, err := fmt.Fprintln(p.stdin, line); err != nil {
		return err
	}
	text, err := p.lines.ReadString('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), answer)
}

// run has a cell executed so many times, one after the other, and returns the milliseconds that each took. The peer speaks
// peers/lines.py.
func (p *peer) run(code string, times int) (each []float64, err error) {
	return p.task(map[string]any{"code": code, "times": times})
}

func (p *peer) task(what map[string]any) (each []float64, err error) {
	line, err := json.Marshal(what)
	if err == nil {
		err = p.ask(string(line), &each)
	}
	return each, err
}

func (p *peer) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}
