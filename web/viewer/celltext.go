package viewer

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// textAddress is where all text of a cell is.
func textAddress(session string, number int) string {
	return fmt.Sprintf("/s/%s/cells/%d/text", session, number)
}

// cellText answers with all text that a cell has produced so far, in its order and as the kernel sent it, to be downloaded: however
// much it is, it is held nowhere.
func (v *Viewer) cellText(w http.ResponseWriter, r *http.Request, who visit) error {
	e, err := v.cell(r, who)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": r.PathValue("id") + "-" + e.ID() + ".txt"}))
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", rawPolicy)
	to := patientWriter{w, http.NewResponseController(w)}
	defer to.end()
	for out := range e.SoFar(0) {
		if _, err := io.WriteString(to, textOf(out.Output)); err != nil {
			return nil // the browser has gone away
		}
	}
	if info := e.Info(); info.Phase == sessions.PhaseEnded && info.Err != nil {
		_, _ = io.WriteString(to, "\n… "+bodyForPeople(info.Err).Message+" …\n")
	}
	return nil
}

const (
	// textTimeout is how long a browser may take to read a piece of a cell's text, textPiece how large a piece is, in bytes.
	textTimeout = 30 * time.Second
	textPiece   = 64 << 10
)

// patientWriter writes an answer of any length, to a browser that goes on reading.
type patientWriter struct {
	w  io.Writer
	rc *http.ResponseController
}

func (p patientWriter) Write(text []byte) (n int, err error) {
	for piece := range slices.Chunk(text, textPiece) {
		_ = p.rc.SetWriteDeadline(time.Now().Add(textTimeout)) // not every writer has deadlines
		m, err := p.w.Write(piece)
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// end sends what is left, and leaves the connection as it was.
func (p patientWriter) end() {
	_ = p.rc.SetWriteDeadline(time.Now().Add(textTimeout))
	_ = p.rc.Flush() // a browser that has gone away does not read it
	_ = p.rc.SetWriteDeadline(time.Time{})
}

// textOf is an output as text, empty if it has none.
func textOf(out kernels.Output) string {
	switch {
	case out.Kind == kernels.OutputStream, out.Kind == kernels.OutputInput:
		return out.Text
	case out.Kind == kernels.OutputAnswer && out.Password:
		return "········\n"
	case out.Kind == kernels.OutputAnswer:
		return out.Text + "\n"
	case out.Error != nil && len(out.Error.Traceback) > 0:
		return strings.Join(out.Error.Traceback, "\n") + "\n"
	case out.Error != nil:
		return out.Error.Name + ": " + out.Error.Value + "\n"
	case out.Notice != nil:
		return "\n" + out.Notice.String() + "\n"
	}
	for _, form := range []string{"text/plain", "text/markdown", "text/latex"} {
		var text string
		if json.Unmarshal(out.Data[form], &text) == nil && text != "" && (len(out.Data) == 1 || !mcpserver.IsPlaceholder(text)) {
			return text + "\n"
		}
	}
	return "" // it has other forms only
}
