package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"cellblock/internal/fault"
)

// last is the last kind; a new one must be added to the table and here.
const last = fault.Died

func TestEveryKindHasARow(t *testing.T) {
	names := map[string]bool{}
	for k := fault.Internal; k <= last; k++ {
		if s := k.HTTPStatus(); s < 400 || s > 599 {
			t.Errorf("%v: HTTP status %d", k, s)
		}
		if c := k.ExitCode(); c < 2 || c > 255 {
			t.Errorf("%v: exit code %d; 0 is success and 1 is the cell's own failure", k, c)
		}
		if code, protocol := k.RPCCode(); protocol != (code != 0) || code > 0 {
			t.Errorf("%v: RPC code %d, %v", k, code, protocol)
		}
		if names[k.String()] {
			t.Errorf("%v: name used twice", k)
		}
		names[k.String()] = true
	}
}

func TestTable(t *testing.T) {
	tests := []struct {
		kind         fault.Kind
		status, exit int
		protocol     bool
	}{
		{fault.Internal, 500, 70, true},
		{fault.Invalid, 400, 2, false},
		{fault.NotFound, 404, 66, false},
		{fault.Conflict, 409, 65, false},
		{fault.Busy, 429, 75, false},
		{fault.Unauthenticated, 401, 77, true},
		{fault.Forbidden, 403, 77, true},
		{fault.Unavailable, 503, 69, false},
		{fault.Timeout, 504, 124, false},
		{fault.Cancelled, 499, 130, false},
		{fault.Died, 502, 71, false},
		{last + 1, 500, 70, true},
		{-1, 500, 70, true},
	}
	for _, tt := range tests {
		_, protocol := tt.kind.RPCCode()
		if tt.kind.HTTPStatus() != tt.status || tt.kind.ExitCode() != tt.exit || protocol != tt.protocol {
			t.Errorf("%v: %d %d %v, want %d %d %v", tt.kind,
				tt.kind.HTTPStatus(), tt.kind.ExitCode(), protocol, tt.status, tt.exit, tt.protocol)
		}
	}
}

func TestKindInJSON(t *testing.T) {
	for k := fault.Internal; k <= last; k++ {
		b, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		var back fault.Kind
		if err := json.Unmarshal(b, &back); err != nil || back != k {
			t.Errorf("%s reads back as %v, %v", b, back, err)
		}
	}
	var k fault.Kind
	if err := json.Unmarshal([]byte(`"odd"`), &k); err == nil {
		t.Error("an unknown name was accepted")
	}
}

func TestExitCode(t *testing.T) {
	if got := fault.ExitCode(nil); got != 0 {
		t.Errorf("ExitCode(nil) = %d", got)
	}
	if got := fault.ExitCode(fmt.Errorf("x: %w", fault.New(fault.Invalid, "bad"))); got != 2 {
		t.Errorf("ExitCode(invalid) = %d", got)
	}
}

func TestBodyHidesWhatHasNoKind(t *testing.T) {
	if got := fault.BodyOf(errors.New("/root/secret: permission denied")); got.Message != "internal error" {
		t.Errorf("shown to the caller: %q", got.Message)
	}
	want := fault.Body{Kind: fault.Busy, Message: "full", Hint: "Wait."}
	if got := fault.BodyOf(fault.New(fault.Busy, "full").WithHint("Wait.")); got != want {
		t.Errorf("BodyOf = %+v, want %+v", got, want)
	}
}
