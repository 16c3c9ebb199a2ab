//go:build linux

package docker

import (
	"net/http"
	"testing"
)

// What is to go goes, also where it ended by itself in the moment in which Podman killed it; another failure is told, and a container
// that somebody else removes is nobody's trouble.
func TestRemove(t *testing.T) {
	const ended = `{"message":"cannot remove container 9cae as it could not be stopped: sending SIGKILL to container 9cae: container state improper: stopped"}`
	for name, tt := range map[string]struct {
		status []int
		text   string
		fails  bool
	}{
		"it is there":                 {status: []int{204}},
		"it ends meanwhile":           {status: []int{500, 204}, text: ended},
		"it is gone meanwhile":        {status: []int{500, 409}, text: ended},
		"it stays":                    {status: []int{500, 500}, text: ended, fails: true},
		"somebody else removes it":    {status: []int{409}, text: `{"message":"removal is already in progress"}`},
		"the engine cannot, for once": {status: []int{500}, text: `{"message":"device or resource busy"}`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			mux := http.NewServeMux()
			mux.HandleFunc("DELETE /{version}/containers/one", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("force") != "1" || asked == len(tt.status) {
					t.Errorf("request %d: %s", asked, r.URL)
					w.WriteHeader(http.StatusNoContent)
					return
				}
				w.WriteHeader(tt.status[asked])
				asked++
				_, _ = w.Write([]byte(tt.text))
			})
			mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") })
			api, err := connect(serve(t, mux))
			if err != nil {
				t.Fatal(err)
			}
			defer api.Close()
			if err := remove(t.Context(), &engine{api: api}, "one"); (err != nil) != tt.fails || asked != len(tt.status) {
				t.Errorf("asked %d times, %v", asked, err)
			}
		})
	}
}
