package escape

import (
	_ "embed"
	"fmt"
	"net"
	"net/url"
	"testing"
)

//go:embed network.py
var networkProbes string

// TestNetworkProbes tries to reach what is not public through the way out of a profile that has the internet.
func TestNetworkProbes(t *testing.T) {
	eachWorld(t, func(w *world) {
		at, err := url.Parse(w.server.URL)
		if err != nil {
			w.Fatal(err)
		}
		// A host on this machine that would answer whoever reaches it.
		ln, err := net.Listen("tcp", ":0")
		if err != nil {
			w.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				w.Errorf("a kernel has reached %s", conn.LocalAddr())
				conn.Close()
			}
		}()
		defer func() { ln.Close(); <-done }()
		own, err := net.InterfaceAddrs()
		if err != nil {
			w.Fatal(err)
		}
		var hosts []string
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
				hosts = append(hosts, n.IP.String())
			}
		}
		code := fmt.Sprintf("SERVER, PORT, OWN = %s, %d, %s\n%s", at.Port(), ln.Addr().(*net.TCPAddr).Port, pythonList(hosts), networkProbes)
		r := w.call(w.attacker, "execute_python", map[string]any{"session_id": "online", "profile": "development", "code": code, "timeout_seconds": 120, "wait_seconds": 150})
		w.wantText(r, "all probes were made")
		found := findings(r.Text)
		if len(found) < 40 {
			w.Errorf("%d findings in:\n%s", len(found), r.Text)
		}
		w.judge(found)
	})
}

func pythonList(texts []string) string {
	list := "["
	for _, text := range texts {
		list += fmt.Sprintf("%q, ", text)
	}
	return list + "]"
}
