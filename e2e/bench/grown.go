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

// measureGrown compares a warm cell, and a list of sessions, of a server whose history has grown with one whose history is
// new: a tenth of the executions are one session's, the others are those of a hundredth as many sessions.
func measureGrown(ctx context.Context, o options, dir string) (report, error) {
	folder := filepath.Join(dir, "grown")
	if err := fill(ctx, o, folder); err != nil {
		return report{}, err
	}
	old, err := startServer(ctx, o, folder, "--provisioner", "local")
	if err != nil {
		return report{}, err
	}
	defer old.stop()
	fresh, err := startServer(ctx, o, filepath.Join(dir, "new"), "--provisioner", "local")
	if err != nil {
		return report{}, err
	}
	defer fresh.stop()
	onServer := func(s *server) way {
		return way{name: "a server", run: func(code string, n int) ([]float64, error) {
			return timed(n, func() error { return s.execute(ctx, longSession, code) })
		}}
	}
	times, err := inTurn(o, []way{onServer(old), onServer(fresh)}, "", "1+1")
	if err != nil {
		return report{}, err
	}
	what := fmt.Sprintf("`1+1` in a session of %d cells, %d executions in the history", o.history/10, o.history)
	return report{rows: []row{{what: what, ours: overMCP, theirs: "a new history", a: times[0], b: times[1], unit: "ms", goal: 1.10}}}, nil
}

// longSession has most cells.
const longSession = "long"

// fill makes a history in a data folder that a server will use.
func fill(ctx context.Context, o options, folder string) error {
	return withHistory(ctx, o, folder, func(store *history.Store, owner sessions.Owner) error {
		many := max(1, o.history/100)
		if err := cells(ctx, store, owner, longSession, o.history/10, "a line\n"); err != nil {
			return err
		}
		for i := range many {
			if err := cells(ctx, store, owner, fmt.Sprintf("old-%d", i), o.history*9/10/many, "a line\n"); err != nil {
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

// cells adds a session with cells that have ended and printed a text, and closes it.
func cells(ctx context.Context, store *history.Store, owner sessions.Owner, id string, n int, text string) error {
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
