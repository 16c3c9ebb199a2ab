package transport

import "net/http"

// maxCrowdedBody bounds a message that is read of a caller who has too many requests under way, in bytes.
const maxCrowdedBody = 64 << 10

// ServeCrowded answers a POST of a caller who has too many requests under way. What needs no answer, a cancel or the reply
// to a question, is taken, because it is by these that his requests end; everything else is left to refuse.
func (h *httpHandler) ServeCrowded(w http.ResponseWriter, r *http.Request, refuse http.HandlerFunc) {
	most := min(h.maxBody, maxCrowdedBody)
	if r.Method != http.MethodPost || r.ContentLength > most || h.foreign(r) != nil {
		refuse(w, r)
		return
	}
	m, _, bad := h.readMessage(w, r, most)
	if bad != nil || !m.isResponse() && !m.isNotification() {
		refuse(w, r)
		return
	}
	h.deal(w, r, m, accepts{})
}
