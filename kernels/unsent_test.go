package kernels_test

import (
	"log/slog"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// What the shim could not give to the kernel never ran; what the kernel has answered did, whatever the shim says.
func TestRequestThatTheKernelNeverHad(t *testing.T) {
	const id = "adopted"
	dropped := stream.Event{Kind: stream.EventDropped, Dropped: &stream.Dropped{
		Channel: "shell", Reason: "not sent: the kernel has ended", Parent: id, MsgType: "execute_request", Count: 1,
	}}
	exited := stream.Event{Kind: stream.EventExited, Exit: &stream.Exit{Code: -1, Signal: "SIGKILL"}}
	for name, tt := range map[string]struct {
		sent   []func(*stream.Writer) error
		unsent bool
	}{
		"dropped":       {[]func(*stream.Writer) error{event(1, dropped), event(2, exited)}, true},
		"only dead":     {[]func(*stream.Writer) error{event(1, exited)}, false},
		"begun, though": {[]func(*stream.Writer) error{message(1, stream.IOPub, "status", id, `{"execution_state":"busy"}`), event(2, dropped), event(3, exited)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostile{bytes: append(frames(welcome), frames(tt.sent...)...), silent: true, exited: make(chan struct{})}
			defer close(h.exited)
			c, err := kernels.Connect(t.Context(), h, kernels.Options{Adopt: []string{id}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			e, _ := c.Execution(id)
			<-e.Done()
			begun := false
			select {
			case <-e.Begun():
				begun = true
			default:
			}
			if r := e.Result(); r.Status != kernels.StatusDied || e.Unsent() != tt.unsent || begun && tt.unsent {
				t.Errorf("%+v, unsent %v, begun %v", r, e.Unsent(), begun)
			}
		})
	}
}
