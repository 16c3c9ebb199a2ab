package viewer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"cellblock/kernels"
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
	now, cancel := context.WithCancel(context.Background())
	cancel()
	next := 0
	for out, err := range e.OutputsFrom(now, 0) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				_, _ = fmt.Fprintf(w, "\n… what follows cannot be read: %v …\n", err) // the answer is on its way already
			}
			break
		}
		if _, err := io.WriteString(w, textOf(out.Output)); err != nil {
			return nil // the browser has gone away
		}
		next = out.Next
	}
	for _, out := range e.LateFrom(next) {
		if _, err := io.WriteString(w, textOf(out.Output)); err != nil {
			return nil
		}
	}
	return nil
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
	var text string
	if json.Unmarshal(out.Data["text/plain"], &text) != nil || text == "" {
		return "" // it has other forms only
	}
	return text + "\n"
}
