//go:build linux

package shim

import (
	"strings"
	"testing"

	"cellblock/kernels/stream"
)

func validConfig() stream.Config {
	return stream.Config{KernelID: "x", Listen: "unix:/run/s", Argv: []string{"k"}, Dir: "/", RunDir: "/run"}
}

func TestParseConfig(t *testing.T) {
	got, err := ParseConfig(string(encode(validConfig())))
	if err != nil {
		t.Fatal(err)
	}
	if got.JournalBytes != stream.DefaultJournalBytes || got.MaxMessage != stream.DefaultMaxMessage || got.OutputBytes != stream.DefaultOutputBytes ||
		got.TailBytes != stream.DefaultTailBytes || got.Transport != "ipc" || got.InterruptMode != "signal" {
		t.Fatalf("defaults %+v", got)
	}
	tests := map[string]func(*stream.Config){
		"kernel_id is empty":      func(c *stream.Config) { c.KernelID = "" },
		"argv is empty":           func(c *stream.Config) { c.Argv = nil },
		"NUL":                     func(c *stream.Config) { c.Argv = []string{"a\x00b"} },
		"must be KEY=VALUE":       func(c *stream.Config) { c.Env = []string{"=x"} },
		"dir is":                  func(c *stream.Config) { c.Dir = "here" },
		"run_dir is":              func(c *stream.Config) { c.RunDir = "" },
		"transport is":            func(c *stream.Config) { c.Transport = "udp" },
		"interrupt_mode is":       func(c *stream.Config) { c.InterruptMode = "shout" },
		"tail_bytes is -1":        func(c *stream.Config) { c.TailBytes = -1 },
		"rlimits.data is -5":      func(c *stream.Config) { c.Rlimits.Data = -5 },
		"must be unix:PATH":       func(c *stream.Config) { c.Listen = "tcp:1" },
		"at most 107 bytes":       func(c *stream.Config) { c.Listen = "unix:/" + strings.Repeat("x", 107) },
		"a number from 3":         func(c *stream.Config) { c.Listen = "fd:2" },
		"attach key must be":      func(c *stream.Config) { c.Listen = "stdio" },
		"32 hexadecimal digits, ": func(c *stream.Config) { c.Listen, c.AttachKey = "stdio", strings.Repeat("0", 32) },
	}
	for want, change := range tests {
		c := validConfig()
		change(&c)
		if _, err := ParseConfig(string(encode(c))); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), stream.ConfigEnv) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := ParseConfig(`{"peer_outsid": true}`); err == nil || !strings.Contains(err.Error(), "peer_outsid") {
		t.Errorf("unknown field: %v", err)
	}
}

// What a copy of the kernel holds that saves its variables is held once.
func TestResidentWithoutCopies(t *testing.T) {
	if n := resident([]process{{name: "python3", resident: 7}, {name: savesVariables, resident: 7}, {name: "sh", resident: 1}}); n != 8 {
		t.Errorf("%d bytes", n)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (a) b) c) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 12345 67 18446744073709551615"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, text []byte) { _, _ = parseStat(text) })
}

func TestParseStat(t *testing.T) {
	p, err := parseStat([]byte("42 (a) b) S 7 1 1 0 -1 4194560 1 2 3 4 150 50 300 8 20 0 1 0 99 12345 67 18446744073709551615 1"))
	if err != nil || p.pid != 42 || p.ppid != 7 || p.name != "a) b" || p.state != 'S' || p.cpu.Seconds() != 2 || p.waited.Seconds() != 3.08 || p.start != 99 || p.resident == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, text := range []string{"", "1", "1 (x", ") 1 (", "1 (x) S", "z (x) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 1 2 3"} {
		if _, err := parseStat([]byte(text)); err == nil {
			t.Errorf("accepts %q", text)
		}
	}
}
