//go:build linux

package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cellblock/kernels/stream"
)

// Bounds and times that no Config changes.
const (
	// maxQueued bounds what waits to be sent to the kernel, in bytes.
	maxQueued = stream.MaxSend
	// maxSocketPath is what fits into a sockaddr_un, in bytes.
	maxSocketPath = 107
)

// ParseConfig reads a stream.Config from its JSON, sets defaults and checks it. Unknown fields are errors: a misspelt
// restriction would otherwise be none.
func ParseConfig(text string) (stream.Config, error) {
	var c stream.Config
	if text == "" {
		return c, fmt.Errorf("environment variable %s is empty", stream.ConfigEnv)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", stream.ConfigEnv, err)
	}
	setDefaults(&c)
	if err := checkConfig(c); err != nil {
		return c, fmt.Errorf("%s: %w", stream.ConfigEnv, err)
	}
	return c, nil
}

func setDefaults(c *stream.Config) {
	for _, d := range []struct {
		v *int64
		d int64
	}{
		{&c.JournalBytes, stream.DefaultJournalBytes},
		{&c.MaxMessage, stream.DefaultMaxMessage},
		{&c.OutputBytes, stream.DefaultOutputBytes},
		{&c.TailBytes, stream.DefaultTailBytes},
	} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	if c.Transport == "" {
		c.Transport = "ipc"
	}
	if c.InterruptMode == "" {
		c.InterruptMode = "signal"
	}
}

func checkConfig(c stream.Config) error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(c.KernelID != "", "kernel_id is empty")
	must(len(c.Argv) > 0 && c.Argv[0] != "", "argv is empty")
	for _, s := range append(append([]string{}, c.Argv...), c.Env...) {
		must(!strings.Contains(s, "\x00"), "argv or env holds a NUL byte")
	}
	for _, kv := range c.Env {
		must(strings.IndexByte(kv, '=') > 0, "env holds %q, must be KEY=VALUE", kv)
	}
	must(filepath.IsAbs(c.Dir), "dir is %q, must be an absolute path", c.Dir)
	must(filepath.IsAbs(c.RunDir), "run_dir is %q, must be an absolute path", c.RunDir)
	must(c.Transport == "ipc" || c.Transport == "tcp", "transport is %q, must be ipc or tcp", c.Transport)
	must(c.InterruptMode == "signal" || c.InterruptMode == "message", "interrupt_mode is %q, must be signal or message", c.InterruptMode)
	for name, v := range map[string]int64{
		"journal_bytes": c.JournalBytes, "max_message": c.MaxMessage, "output_bytes": c.OutputBytes, "tail_bytes": c.TailBytes, "patience_ms": c.PatienceMS,
		"rlimits.data": c.Rlimits.Data, "rlimits.file_size": c.Rlimits.FileSize, "rlimits.files": c.Rlimits.Files, "rlimits.pids": c.Rlimits.PIDs,
	} {
		must(v >= 0, "%s is %d, must not be negative", name, v)
	}
	must(c.Egress == nil || c.Egress.Proxy > 0 && c.Egress.Proxy < 1<<16, "egress.proxy is no port")
	return errors.Join(append(errs, checkListen(c))...)
}

func checkListen(c stream.Config) error {
	kind, rest, _ := strings.Cut(c.Listen, ":")
	switch kind {
	case "unix", "take":
		if !filepath.IsAbs(rest) || len(rest) > maxSocketPath {
			return fmt.Errorf("listen is %q, must be %s: and an absolute path of at most %d bytes", c.Listen, kind, maxSocketPath)
		}
	case "fd":
		if n, err := strconv.Atoi(rest); err != nil || n < 3 {
			return fmt.Errorf("listen is %q, must be fd: and a number from 3", c.Listen)
		}
	case "stdio":
		_, err := stream.ParseAttachKey(c.AttachKey)
		return err
	default:
		return fmt.Errorf("listen is %q, must be unix:PATH, take:PATH, fd:N or stdio", c.Listen)
	}
	return nil
}

// argv returns the kernel's command with the connection file's path in its place.
func argv(c stream.Config, connectionFile string) []string {
	out := make([]string, len(c.Argv))
	for i, a := range c.Argv {
		out[i] = strings.ReplaceAll(a, "{connection_file}", connectionFile)
	}
	return out
}

// environment is the kernel's: where something leads out of the sandbox, it says so to whatever looks.
func environment(c stream.Config) []string {
	if c.Egress == nil {
		return c.Env
	}
	env, added := slices.Clone(c.Env), egressEnv(*c.Egress)
	maps.Copy(added, authoritiesEnv(c))
	for name, value := range added {
		env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		env = append(env, name+"="+value)
	}
	return env
}

// encode is json.Marshal without escapes that only HTML needs, for values that cannot fail.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("shim: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
