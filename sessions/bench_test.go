package sessions

import (
	"context"
	"log/slog"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

// BenchmarkExecute is one cell through a session, on a kernel that answers at once; BenchmarkClient the same without the
// session. The difference is what a session costs.
func BenchmarkExecute(b *testing.B) {
	p := kernelstest.NewProvisioner()
	defer p.StopAll()
	m, err := New(Config{Provisioner: p, DataDir: b.TempDir(), Runtimes: map[string]Runtime{"python": {}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Shutdown(context.Background()) }()
	b.ReportAllocs()
	for b.Loop() {
		e, err := m.Execute(b.Context(), alice, python("s", "1+1"))
		if err != nil {
			b.Fatal(err)
		}
		for range e.Outputs(b.Context()) {
		}
		if _, err := e.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClient(b *testing.B) {
	k := kernelstest.NewKernel(kernelstest.KernelOptions{})
	defer k.Close()
	c, err := kernels.Connect(b.Context(), k, kernels.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		e, err := c.Execute(b.Context(), kernels.ExecuteRequest{Code: "1+1", StoreHistory: true})
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = e.Next(b.Context())
		}
	}
}
