package web

import (
	"encoding/json"
	"net/http"

	"cellblock/internal/fault"
)

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic("web: " + err.Error()) // a value of ours that is no JSON is a defect
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a client that has gone away does not read it
}

// writeError answers with an error: its kind's status, and kind, message and hint as JSON.
func writeError(w http.ResponseWriter, err error) {
	writeErrorStatus(w, fault.KindOf(err).HTTPStatus(), err)
}

func writeErrorStatus(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, fault.BodyOf(err))
}
