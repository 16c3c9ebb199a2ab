package transport

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
)

// bodyTimeout is how long a client may take to send its message.
const bodyTimeout = 2 * time.Minute

// readMessage reads the message of a POST, of so many bytes at most.
func (h *httpHandler) readMessage(w http.ResponseWriter, r *http.Request, most int64) (*message, []byte, *rpcError) {
	if err := checkContent(r.Header); err != nil {
		return nil, nil, err
	}
	if r.ContentLength > most {
		w.Header().Set("Connection", "close") // so that the rest is not read either
		return nil, nil, tooLarge(most)
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer has deadlines
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil { // else it stays, and keeps the server from waiting for the rest
		_ = rc.SetReadDeadline(time.Time{})
	}
	var large *http.MaxBytesError
	var full *fault.Error // of whoever bounds what comes at the same time
	switch {
	case errors.As(err, &large):
		return nil, nil, tooLarge(most)
	case errors.As(err, &full):
		return nil, nil, fromFault(full).withStatus(fault.KindOf(full).HTTPStatus())
	case err != nil:
		return nil, nil, refuse(mcp.PARSE_ERROR, "the body ended before its end")
	}
	return parse(raw)
}

func tooLarge(most int64) *rpcError {
	return refuse(mcp.INVALID_REQUEST, fmt.Sprintf("the message is larger than %d bytes", most)).
		withStatus(http.StatusRequestEntityTooLarge)
}

// checkContent refuses a body that is not plain JSON. What a browser would send unasked (text/plain, a form) is refused too.
func checkContent(h http.Header) *rpcError {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return refuse(mcp.INVALID_REQUEST, "Content-Type must be application/json").withStatus(http.StatusUnsupportedMediaType)
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse(mcp.INVALID_REQUEST, "Content-Encoding is not supported").withStatus(http.StatusUnsupportedMediaType)
	}
	return nil
}

// accepts is the forms of answer that a client takes.
type accepts struct{ json, events bool }

// accepted reads the Accept header. MCP has clients list both forms; one that lists nothing, or anything (curl's */*),
// gets JSON.
func accepted(h http.Header) (form accepts) {
	values := h.Values("Accept")
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q == 0 {
			continue
		}
		switch media {
		case "*/*", "application/*", "application/json":
			form.json = true
		case "text/*", "text/event-stream":
			form.events = true
		}
	}
	form.json = form.json || len(values) == 0
	return form
}
