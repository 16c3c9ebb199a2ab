package sessions

import (
	"strings"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// tally counts outputs by what can be said about them when they are left out.
type tally struct {
	stdout, stderr struct{ bytes, lines int64 }
	messages       int64
	messageBytes   int64
}

// add counts out, n times: 1 or -1.
func (t *tally) add(out kernels.Output, n int64) {
	if out.Kind != kernels.OutputStream {
		t.messages += n
		t.messageBytes += n * (outputSize(out) - overhead)
		return
	}
	of := &t.stdout
	if out.Stream == "stderr" {
		of = &t.stderr
	}
	of.bytes += n * int64(len(out.Text))
	of.lines += n * int64(strings.Count(out.Text, "\n"))
}

func (t tally) plus(u tally) tally { return t.minus(tally{}.minus(u)) }

func (t tally) minus(u tally) tally {
	t.stdout.bytes -= u.stdout.bytes
	t.stdout.lines -= u.stdout.lines
	t.stderr.bytes -= u.stderr.bytes
	t.stderr.lines -= u.stderr.lines
	t.messages -= u.messages
	t.messageBytes -= u.messageBytes
	return t
}

// notices says what the tally counts, in the words of the shim.
func (t tally) notices() []kernels.Output {
	var notes []kernels.Output
	note := func(e stream.Elided) {
		notes = append(notes, kernels.Output{Kind: kernels.OutputNotice, Notice: &kernels.Notice{Elided: &e}})
	}
	if t.stdout.bytes > 0 {
		note(stream.Elided{Stream: "stdout", Bytes: t.stdout.bytes, Lines: t.stdout.lines})
	}
	if t.stderr.bytes > 0 {
		note(stream.Elided{Stream: "stderr", Bytes: t.stderr.bytes, Lines: t.stderr.lines})
	}
	if t.messages > 0 {
		note(stream.Elided{Messages: t.messages, Bytes: t.messageBytes})
	}
	return notes
}

// overhead is what an output costs in memory beside its texts, about.
const overhead = 256

func outputSize(out kernels.Output) int64 {
	size := overhead + len(out.Text) + len(out.Metadata) + len(out.Type) + len(out.Content)
	for mime, data := range out.Data {
		size += len(mime) + len(data)
	}
	if out.Error != nil {
		size += len(out.Error.Name) + len(out.Error.Value)
		for _, line := range out.Error.Traceback {
			size += len(line)
		}
	}
	return int64(size)
}
