package sessions_test

import (
	"context"
	"log/slog"
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/history"
)

// BenchmarkCell is a cell with one output, from the call to its result, on a kernel that takes no time: what the session
// costs, with a store and without.
func BenchmarkCell(b *testing.B) {
	for name, stored := range map[string]bool{"memory": false, "sqlite": true} {
		b.Run(name, func(b *testing.B) {
			cfg := sessions.Config{
				Provisioner: &sessions.FakeProvisioner{}, DataDir: b.TempDir(), Logger: slog.New(slog.DiscardHandler),
				Runtimes: map[string]sessions.Runtime{"python": {Kernelspec: kernels.Kernelspec{Name: "python3"}}},
			}
			if stored {
				store, err := history.Open(b.Context(), history.Options{Folder: cfg.DataDir, Logger: cfg.Logger})
				if err != nil {
					b.Fatal(err)
				}
				defer store.Close()
				cfg.Store = store
			}
			m, err := sessions.NewFake(cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Shutdown(context.Background())
			b.ReportAllocs()
			for b.Loop() {
				e, err := m.Execute(b.Context(), sessions.Alice, sessions.Python("s", "x"))
				if err == nil {
					_, err = e.Wait(b.Context())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
