package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/secretfile"
)

// A server leaves its address in its data folder, so that commands that are given the folder find it.

// dialPatience is how long a command tries whether the server of the data folder answers, before it gives up.
const dialPatience = time.Second

// serverFile says where the server of a data folder listens. It counts while that server holds its slot: a file that a
// dead one left behind must not lead commands, and their token, to whatever listens there now.
type serverFile struct {
	URL  string `json:"url"`
	Slot string `json:"slot"`
	// Others run on the folder too, the last that started first. They are found when this one has stopped.
	Others []serverFile `json:"others,omitempty"`
}

func serverFilePath(dataDir string) string { return filepath.Join(dataDir, "server.json") }

// leaveAddress writes the file; of several servers on one data folder, the last that started is found.
func leaveAddress(dataDir, slot, url string) error {
	return writeServerFile(dataDir, append([]serverFile{{URL: url, Slot: slot}}, otherServers(dataDir, slot)...))
}

// removeAddress takes a server out of the file. Left behind it does not count, so that failing is no harm.
func removeAddress(dataDir, slot string) {
	if serverAddress(dataDir, slot) == "" {
		return // a client's own process, say
	}
	if others := otherServers(dataDir, slot); len(others) > 0 {
		_ = writeServerFile(dataDir, others)
		return
	}
	_ = os.Remove(serverFilePath(dataDir))
}

// otherServers are those of the file that run, but for the one in a slot.
func otherServers(dataDir, slot string) []serverFile {
	f, ok := readServerFile(dataDir)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(f.all(), func(s serverFile) bool { return s.Slot == slot || !slotTaken(dataDir, s.Slot) })
}

// besideFound are the addresses of the servers that run on a data folder beside the one that commands find.
func besideFound(dataDir string) (urls []string) {
	for i, s := range otherServers(dataDir, "") {
		if i > 0 {
			urls = append(urls, s.URL)
		}
	}
	return urls
}

// serverAddress is where the server in a slot is reached, "" where it has left no word.
func serverAddress(dataDir, slot string) string {
	f, _ := readServerFile(dataDir)
	for _, s := range f.all() {
		if s.Slot == slot {
			return s.URL
		}
	}
	return ""
}

// warnOfOthers tells of servers that use the data folder, too: commands that are given the folder do not go to them any more.
func warnOfOthers(dataDir, slot string, logger *slog.Logger) {
	for _, other := range otherServers(dataDir, slot) {
		logger.Warn("another server uses this data folder; it keeps its sessions, and commands go to this one", "data_dir", dataDir, "other", other.URL,
			"hint", "Stop one of them, give this one its own --data-dir, or reach the other with --url "+other.URL)
	}
}

// stopPatience is how long a server waits for the end of one that is being stopped: somewhat longer than that takes.
const stopPatience = 30 * time.Second

// awaitStopping waits for the end of a server of the data folder whose address is this one's by now: it listens no more, because it is
// being stopped. Its sessions are for this one, which beside it would be one of two servers, and would not look for them again.
func awaitStopping(ctx context.Context, dataDir, url string, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	for _, other := range otherServers(dataDir, "") {
		if other.URL == url {
			logger.Info("a server of this data folder is being stopped; its end is waited for", "data_dir", dataDir)
			awaitSlot(ctx, dataDir, other.Slot)
		}
	}
}

// all is the file's servers, the last that started first.
func (f serverFile) all() []serverFile {
	return append([]serverFile{{URL: f.URL, Slot: f.Slot}}, f.Others...)
}

// writeServerFile writes servers, of which there is at least one.
func writeServerFile(dataDir string, servers []serverFile) error {
	servers[0].Others = servers[1:]
	raw, err := json.Marshal(servers[0])
	if err != nil {
		return err
	}
	return secretfile.Replace(serverFilePath(dataDir), append(raw, '\n'))
}

func readServerFile(dataDir string) (f serverFile, ok bool) {
	raw, err := os.ReadFile(serverFilePath(dataDir))
	return f, err == nil && json.Unmarshal(raw, &f) == nil && f.Slot != ""
}

// runningServer is the endpoint of the server that runs on a data folder, empty where none has left its address. It fails
// with an error of kind Unavailable for one that was killed, or does not answer.
func runningServer(dataDir string) (endpoint string, err error) {
	f, ok := readServerFile(dataDir)
	if i := slices.IndexFunc(f.all(), func(s serverFile) bool { return ok && slotTaken(dataDir, s.Slot) }); i > 0 {
		f = f.all()[i] // the last that started was killed
	}
	u, err := url.Parse(f.URL)
	if !ok || err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", nil
	}
	if !slotTaken(dataDir, f.Slot) {
		return "", fault.New(fault.Unavailable, "no server runs on %s; the last one was killed, it was at %s", dataDir, f.URL).
			WithHint("Start it again: cellblock serve; or name another server with --url or CELLBLOCK_URL.")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(u.Hostname(), port), dialPatience)
	if err != nil {
		return "", fault.New(fault.Unavailable, "the server that runs on %s does not answer at %s: %w", dataDir, f.URL, err).
			WithHint("Look into its log; another server is named with --url or CELLBLOCK_URL.")
	}
	_ = conn.Close()
	return f.URL, nil
}

// localURL is the endpoint by which this machine's programs reach a listener.
func localURL(scheme string, listening net.Addr) string {
	host := listening.String()
	if at, ok := listening.(*net.TCPAddr); ok && at.IP.IsUnspecified() {
		_, port, _ := net.SplitHostPort(host) // the listener's own
		host = net.JoinHostPort("127.0.0.1", port)
	}
	return scheme + "://" + host + "/mcp"
}
