package sessions

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"cellblock/egress"
	"cellblock/internal/fault"
)

// What a kernel asks for is decided by its session's profile, also when the kernel was in the pool before it had a session; there
// nobody leads it out.
func TestKernelsAreLedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var records []egress.Record
		gateway, err := egress.New(egress.Config{Report: func(r egress.Record) { records = append(records, r) }})
		if err != nil {
			t.Fatal(err)
		}
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 1, func(c *Config) {
			c.Gateway, c.Authorities = gateway, "PEM"
			c.Profiles = map[string]Profile{DefaultProfile: {Network: egress.Policy{Mode: egress.Hosts, Hosts: []string{"known.test"}}}}
		})
		defer m.Shutdown(context.Background())
		if spec := p.spec(0); !spec.Egress || spec.Authorities != "PEM" {
			t.Errorf("launched as %+v", spec)
		}
		kernel := p.last()
		if kernel.egress.Load() != nil {
			t.Error("a kernel without a session is led out")
		}
		execute(t, m, alice, "s", "x")
		serve := kernel.egress.Load()
		if serve == nil {
			t.Fatal("the session's kernel is not led out")
		}
		here, there := net.Pipe()
		go (*serve)(t.Context(), there, 3128)
		if _, err := io.WriteString(here, "CONNECT other.test:443 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(here)
		synctest.Wait()
		if !strings.HasPrefix(string(answer), "HTTP/1.1 403 ") || !strings.Contains(string(answer), "Those are known.test.") {
			t.Errorf("%q", answer)
		}
		if len(records) != 1 || records[0].Session != "s" || records[0].Subject != alice.Subject || records[0].Profile != DefaultProfile || fault.KindOf(records[0].Err) != fault.Forbidden {
			t.Errorf("%+v", records)
		}
	})
}
