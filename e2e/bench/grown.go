package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/history"
)

// measureGrown compares a server whose history has grown with one whose history is new: a warm cell, and the start; and tells what
// lists of its sessions take. A tenth of the executions are one session's, the others those of a hundredth as many sessions.
func measureGrown(ctx context.Context, o options, dir string) (r report, err error) {
	folder, fresh := filepath.Join(dir, "grown"), filepath.Join(dir, "new")
	if err := fill(ctx, o, folder); err != nil {
		return report{}, err
	}
	starts, err := startsInTurn(ctx, o, folder, fresh)
	if err != nil {
		return report{}, err
	}
	many := fmt.Sprintf("%d sessions and %d executions in the history", oldSessions(o), o.history)
	r.rows = append(r.rows, row{what: "a start and its first list, " + many, ours: "grown", theirs: "a new history", a: starts[0], b: starts[1], unit: "ms", goal: 1.10})
	servers, err := startServers(ctx, o, folder, fresh)
	if err != nil {
		return report{}, err
	}
	var ways []way
	for _, s := range servers {
		defer s.stop()
		ways = append(ways, way{name: "a server", run: func(code string, n int) ([]float64, error) {
			return timed(n, func() error { return s.execute(ctx, longSession, code) })
		}})
	}
	times, err := inTurn(o, ways, "", "1+1")
	if err != nil {
		return report{}, err
	}
	what := fmt.Sprintf("`1+1` in a session of %d cells, ", o.history/10)
	r.rows = append(r.rows, row{what: what + many, ours: overMCP, theirs: "a new history", a: times[0], b: times[1], unit: "ms", goal: 1.10})
	r.costs, err = listCosts(ctx, o, servers[0], folder)
	return r, err
}

// startsInTurn returns what starts on each folder take, until a list of sessions has been answered, in milliseconds. The first of
// each is thrown away.
func startsInTurn(ctx context.Context, o options, folders ...string) ([][]float64, error) {
	times := make([][]float64, len(folders))
	for round := range o.rounds + 1 {
		for i, folder := range folders {
			took, err := bareStart(ctx, o, folder, []string{"--provisioner", "local"})
			if err != nil {
				return nil, err
			}
			if round > 0 {
				times[i] = append(times[i], took)
			}
		}
	}
	return times, nil
}

// startServers starts a server on each folder, or none.
func startServers(ctx context.Context, o options, folders ...string) (servers []*server, err error) {
	for _, folder := range folders {
		s, err := startServer(ctx, o, folder, "--provisioner", "local")
		if err != nil {
			for _, started := range servers {
				started.stop()
			}
			return nil, err
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// listCosts tells what a model's and a person's list of many sessions take.
func listCosts(ctx context.Context, o options, s *server, folder string) ([]cost, error) {
	byTool, err := timed(o.cells, func() error { _, err := s.call(ctx, "list_sessions", nil); return err })
	if err != nil {
		return nil, err
	}
	visitor, err := signIn(ctx, o, s, folder)
	if err != nil {
		return nil, err
	}
	byPage, err := timed(o.cells, func() error { return visitor.get(ctx, "/") })
	many := fmt.Sprintf(" of %d sessions", oldSessions(o))
	return []cost{
		{what: "`list_sessions`" + many, value: median(byTool), unit: "ms", goal: 100},
		{what: "the sessions page" + many, value: median(byPage), unit: "ms", goal: 100},
	}, err
}

// longSession has most cells.
const longSession = "long"

// oldSessions is how many a grown history has beside that.
func oldSessions(o options) int { return max(1, o.history/100) }

// fill makes a history in a data folder that a server will use.
func fill(ctx context.Context, o options, folder string) error {
	return withHistory(ctx, o, folder, func(store *history.Store, owner sessions.Owner) error {
		many := oldSessions(o)
		if err := closedSession(ctx, store, owner, longSession, o.history/10, "a line\n"); err != nil {
			return err
		}
		for i := range many {
			if err := closedSession(ctx, store, owner, fmt.Sprintf("old-%d", i), o.history*9/10/many, "a line\n"); err != nil {
				return err
			}
		}
		return nil
	})
}

// withHistory has something written into the history of a data folder that a server will use, for the owner that its dev token names.
func withHistory(ctx context.Context, o options, folder string, write func(*history.Store, sessions.Owner) error) error {
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return err
	}
	if _, err := bareStart(ctx, o, folder, []string{"--provisioner", "local"}); err != nil { // it makes the token
		return err
	}
	owner, err := ownerOf(folder)
	if err != nil {
		return err
	}
	store, err := history.Open(ctx, history.Options{Folder: folder, Slot: "bench"})
	if err != nil {
		return err
	}
	defer store.Close()
	return write(store, owner)
}

// ownerOf is who calls with a data folder's dev token.
func ownerOf(folder string) (owner sessions.Owner, err error) {
	token, err := os.ReadFile(filepath.Join(folder, "dev_token.txt"))
	if err != nil {
		return owner, err
	}
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if len(parts) != 3 {
		return owner, errors.New("the dev token is none")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return owner, err
	}
	var claims struct{ Iss, Sub string }
	err = json.Unmarshal(payload, &claims)
	return sessions.Owner{Issuer: claims.Iss, Subject: claims.Sub}, err
}

// closedSession adds a session with cells that have ended and printed a text, and closes it.
func closedSession(ctx context.Context, store *history.Store, owner sessions.Owner, id string, n int, text string) error {
	found, err := store.Open(ctx, sessions.StoredSession{Owner: owner, ID: id, Language: "python", Created: time.Now()})
	if err != nil {
		return err
	}
	const batch = 500
	for first := 1; first <= n; first += batch {
		var changes []sessions.Change
		for i := first; i < min(first+batch, n+1); i++ {
			changes = append(changes,
				sessions.ExecutionQueued{Number: i, MsgID: fmt.Sprint(i), Code: "print('a line')", Queued: time.Now()},
				sessions.ExecutionBegan{Number: i, Generation: 1, Started: time.Now()},
				sessions.OutputsKept{Number: i, Outputs: []kernels.Output{{Kind: kernels.OutputStream, Stream: "stdout", Text: text, Seq: uint64(i), Time: time.Now()}}},
				sessions.ExecutionEnded{Number: i, Ended: time.Now(), Own: 1, Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusOK}}})
		}
		if err := store.Commit(ctx, found.Ref, changes...); err != nil {
			return err
		}
	}
	return store.Commit(ctx, found.Ref, sessions.SessionClosed{Closed: time.Now(), Why: "of a benchmark"})
}
