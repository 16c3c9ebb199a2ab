package history

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/stream"
	"cellblock/sessions"
)

// What stands in databases that are out there must be read for ever: if this test fails, a new version is needed.
func TestOldBodiesAreRead(t *testing.T) {
	body := "\x01" + "\x01\x01\x04" + "\x04\x0atext/plain" + "\x05\x03\"x\"" + "\x06\x02{}" + "\x07\x01d" + "\x08\x01\x06"
	want := kernels.Output{
		Data: map[string]json.RawMessage{"text/plain": json.RawMessage(`"x"`)}, Metadata: json.RawMessage("{}"), DisplayID: "d", ExecutionCount: 3,
	}
	var got kernels.Output
	if err := decodeBody(&got, []byte(body)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	body = "\x01" + "\x01\x01\x18" + "\x09\x01E" + "\x0a\x01v" + "\x0b\x01l"
	want = kernels.Output{Error: &kernels.ExecError{Name: "E", Value: "v", Traceback: []string{"l"}}}
	got = kernels.Output{}
	if err := decodeBody(&got, []byte(body)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOldResultsAreRead(t *testing.T) {
	const text = `{"result":{"status":"died","execution_count":2,"error":{"Name":"E","Value":"v","Traceback":["l"]},` +
		`"death":{"cause":"killed","exit":{"code":-1,"signal":"SIGKILL"},"container":{"Code":137,"Signal":"","OOM":true,"Asked":false},` +
		`"oom":true,"asked":true,"time":"2026-01-02T03:04:05Z"},"reason":"r","started":"2026-01-02T03:04:05Z",` +
		`"ended":"2026-01-02T03:04:06Z","payload":[],"timed_out":true,"cancelled":true,"restarted":true,"interrupted":true,"rung":"restart",` +
		`"variables_kept":true,"interrupted_by":"claude","duration":1000000000}}`
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := sessions.Result{
		Result: kernels.Result{
			Status: kernels.StatusDied, ExecutionCount: 2, Error: &kernels.ExecError{Name: "E", Value: "v", Traceback: []string{"l"}},
			Death: &kernels.Death{Cause: "killed", Exit: &stream.Exit{Code: -1, Signal: "SIGKILL"},
				Container: &kernels.ExitStatus{Code: 137, OOM: true}, OOM: true, Asked: true, Time: at},
			Reason: "r", Started: at, Ended: at.Add(time.Second), Payload: json.RawMessage("[]"),
		},
		TimedOut: true, Cancelled: true, Restarted: true, Duration: time.Second,
		Interrupt: sessions.InterruptReport{Ran: true, Rung: "restart", VariablesKept: true, Caller: "claude"},
	}
	var e sessions.StoredExecution
	if err := readEnd(&e, text); err != nil || !reflect.DeepEqual(e.Result, want) {
		t.Errorf("got %+v, %v", e.Result, err)
	}
	prepared, err := prepareEnd(sessions.ExecutionEnded{Result: want})
	if err != nil || prepared.(preparedEnd).result != text {
		t.Errorf("it is written as\n%s, %v", prepared.(preparedEnd).result, err)
	}
}
