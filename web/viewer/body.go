package viewer

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"cellblock/internal/fault"
)

// readJSON reads a request's body, which its route has bounded.
func readJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return bodyError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "the request has more than one value")
	}
	return nil
}

// bodyError says why a body cannot be read: it is too long, not for now, or not what it should be.
func bodyError(err error) error {
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.New(fault.Invalid, "the request is longer than %d bytes", long.Limit)
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.New(fault.Invalid, "the request cannot be read: %v", err)
}
