package kernels_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { kernelstest.RemoveShim(); os.Exit(code) }))
}

// start runs a fake kernel and connects to it.
func start(t testing.TB, ko kernelstest.KernelOptions, o kernels.Options) (*kernelstest.Kernel, *kernels.Client) {
	t.Helper()
	k := kernelstest.NewKernel(ko)
	t.Cleanup(k.Close)
	return k, connect(t, k, o)
}

func connect(t testing.TB, k kernels.Dialer, o kernels.Options) *kernels.Client {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := kernels.Connect(ctx(t), k, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ctx bounds a test's waiting, so that a hang is a failure with a place.
func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return c
}

func execute(t testing.TB, c *kernels.Client, code string) *kernels.Execution {
	t.Helper()
	e, err := c.Execute(ctx(t), kernels.ExecuteRequest{Code: code, StoreHistory: true, AllowStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// read reads an execution to its end.
func read(t testing.TB, e *kernels.Execution) []kernels.Output {
	t.Helper()
	var outs []kernels.Output
	for {
		out, err := e.Next(ctx(t))
		if err == io.EOF {
			return outs
		}
		if err != nil {
			t.Fatalf("after %d outputs: %v", len(outs), err)
		}
		outs = append(outs, out)
	}
}

// next reads one output and checks its text.
func next(t testing.TB, e *kernels.Execution, text string) kernels.Output {
	t.Helper()
	out, err := e.Next(ctx(t))
	if err != nil || brief(out) != text {
		t.Fatalf("got %q, %v; want %q", brief(out), err, text)
	}
	return out
}

// run runs code and returns its outputs in short form, and its result.
func run(t testing.TB, c *kernels.Client, code string) (string, kernels.Result) {
	t.Helper()
	e := execute(t, c, code)
	return briefs(read(t, e)), e.Result()
}

func briefs(outs []kernels.Output) string {
	var b []string
	for _, o := range outs {
		b = append(b, brief(o))
	}
	return strings.Join(b, " | ")
}

// brief returns an output in short form.
func brief(o kernels.Output) string {
	switch o.Kind {
	case kernels.OutputStream:
		return o.Stream + ":" + strings.TrimSuffix(o.Text, "\n")
	case kernels.OutputResult, kernels.OutputDisplay, kernels.OutputUpdate:
		var types []string
		for _, t := range []string{"image/png", "text/plain"} {
			if d, ok := o.Data[t]; ok && t == "text/plain" {
				types = append(types, strings.Trim(string(d), `"`))
			} else if ok {
				types = append(types, t)
			}
		}
		return string(o.Kind) + ":" + strings.Join(types, ",")
	case kernels.OutputError:
		return "error:" + o.Error.Name
	case kernels.OutputInput:
		return "input:" + o.Text
	case kernels.OutputNotice:
		return "notice:" + o.Notice.String()
	case kernels.OutputOther:
		return "other:" + o.Type
	}
	return string(o.Kind)
}

func wantDeath(t testing.TB, err error, cause string) {
	t.Helper()
	var dead *kernels.DeathError
	if !errors.As(err, &dead) || !strings.Contains(dead.Death.Cause, cause) {
		t.Fatalf("got %v, want a death with %q", err, cause)
	}
}
