//go:build linux

package shim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// BenchmarkShimStart measures the real binary: from its start until the kernel's process has become the kernel's program
// (median), and what the shim holds then (most). Goals: 20 ms, 12 MB.
func BenchmarkShimStart(b *testing.B) {
	kernelstest.BuildShim(b)
	var toExec []time.Duration
	var resident int64
	for b.Loop() {
		b.StopTimer()
		config := testConfig(b)
		config.Argv = []string{"/bin/sleep", "600"}
		b.StartTimer()
		start := time.Now()
		p := startBinary(b, config)
		c := p.dial(nil)
		e := c.event(stream.EventStarted)
		b.StopTimer()
		toExec = append(toExec, e.Time.Sub(start))
		resident = max(resident, residentOf(b, p))
		c.close()
		p.kill()
		b.StartTimer()
	}
	slices.Sort(toExec)
	b.ReportMetric(toExec[len(toExec)/2].Seconds()*1000, "ms-to-exec")
	b.ReportMetric(float64(resident)/(1<<20), "MB-resident")
}

// BenchmarkOnePlusOne is one cell through shim and stream.
func BenchmarkOnePlusOne(b *testing.B) {
	p, c := ready(b, nil)
	for b.Loop() {
		c.run("1+1")
		c.unread = nil
	}
	b.ReportMetric(float64(residentOf(b, p))/(1<<20), "MB-resident")
}

// BenchmarkGate is a small stream message on its way into the journal and out of it.
func BenchmarkGate(b *testing.B) {
	j := newJournal(32 << 20)
	g := newGate(j, 1<<40, 1<<20)
	parts := streamMessage("parent", "stdout", "hello, world\n")
	b.ReportAllocs()
	for b.Loop() {
		g.message(stream.IOPub, parts)
		if j.next%1000 == 0 {
			_, _ = j.ack(j.next - 1)
		}
	}
}

// BenchmarkSkim is text that is left out.
func BenchmarkSkim(b *testing.B) {
	g := newGate(newJournal(32<<20), 1, 1<<20)
	parts := streamMessage("parent", "stdout", line1K())
	b.SetBytes(int64(len(parts[3])))
	b.ReportAllocs()
	for b.Loop() {
		g.message(stream.IOPub, parts)
	}
}

// BenchmarkPieces is a large text on its way into the journal, as it comes from a socket.
func BenchmarkPieces(b *testing.B) {
	for name, text := range map[string]string{"plain": "0123456789", "lines": "a line of 42 bytes, as programs print them\n"} {
		b.Run(name, func(b *testing.B) {
			s := newJournal(32 << 20)
			l := &link{gate: newGate(s, 1<<60, 1<<20), drops: newDrops(s), trimmer: new(trimmer)}
			parts := streamMessage("parent", "stdout", strings.Repeat(text, 20<<20/len(text)))
			b.SetBytes(int64(len(parts[3])))
			b.ReportAllocs()
			for b.Loop() {
				feed(l, parts, 128<<10, "")
				_, _ = s.ack(s.next - 1)
			}
		})
	}
}
