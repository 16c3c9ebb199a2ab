// Command load holds many sessions with mixed work against a running server, looks at every answer by its content, and tells
// over time what they get: errors, losses, latencies, and the server's memory and descriptors.
//
//	go run ./e2e/load [-data-dir DIR | -url URL -token-file FILE] [-sessions 20] [-for 10m] [-every 10s]
//	go run ./e2e/load -find [-for 30s] [-slowest 5s] [-most 512]
//
// It exits with 1 when anything was wrong or lost. With -find it looks for the largest number of sessions that the machine
// holds, and names the first thing that gives.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type options struct {
	url, tokenFile, dataDir string
	sessions, most          int
	length, every, slowest  time.Duration
	find                    bool
}

func main() {
	var o options
	flag.StringVar(&o.dataDir, "data-dir", "/var/lib/cellblock", "data folder of a server in dev mode on this host")
	flag.StringVar(&o.url, "url", "", "the server's /mcp (default: the one of -data-dir)")
	flag.StringVar(&o.tokenFile, "token-file", "", "file with a bearer token (default: the data folder's dev token)")
	flag.IntVar(&o.sessions, "sessions", 20, "sessions that work at once")
	flag.DurationVar(&o.length, "for", 10*time.Minute, "how long; with -find how long each number is tried")
	flag.DurationVar(&o.every, "every", 10*time.Second, "how often to tell")
	flag.BoolVar(&o.find, "find", false, "find the largest number of sessions")
	flag.IntVar(&o.most, "most", 512, "with -find: more than this are not tried")
	flag.DurationVar(&o.slowest, "slowest", 5*time.Second, "with -find: a 99th percentile above this is too slow")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// errWrong says that the tables have errors or losses.
var errWrong = errors.New("there were errors or losses")

func run(ctx context.Context, o options, out io.Writer) error {
	url, token, err := o.server()
	if err != nil {
		return err
	}
	dial := func(ctx context.Context) (caller, error) { return connect(ctx, url, token) }
	target := processAt(url)
	if o.find {
		return find(ctx, o, out, func(ctx context.Context, n int) (*tally, error) {
			return hold(ctx, dial, n, o.length, func(*tally, time.Duration) {})
		})
	}
	printHead(out)
	t, err := hold(ctx, dial, o.sessions, o.length, every(o.every, func(t *tally, at time.Duration) { printLine(out, t, at, target) }))
	if err != nil {
		return err
	}
	printLine(out, t, o.length, target)
	t.printFailures(out)
	if t.bad() > 0 {
		return errWrong
	}
	return nil
}

// server is where to go, and with which token.
func (o options) server() (url, token string, err error) {
	tokenFile := o.tokenFile
	if tokenFile == "" {
		tokenFile = filepath.Join(o.dataDir, "dev_token.txt")
	}
	text, err := os.ReadFile(tokenFile)
	if err != nil {
		return "", "", fmt.Errorf("%w; name the server's data folder with -data-dir, or a token's file with -token-file", err)
	}
	if url = o.url; url == "" {
		var left struct{ URL string }
		data, err := os.ReadFile(filepath.Join(o.dataDir, "server.json"))
		if err == nil {
			err = json.Unmarshal(data, &left)
		}
		if url = left.URL; err != nil || url == "" {
			return "", "", fmt.Errorf("no server runs on %s (%w): start one, or name it with -url", o.dataDir, err)
		}
	}
	return url, strings.TrimSpace(string(text)), nil
}

// every has something told at most so often.
func every(pause time.Duration, tell func(*tally, time.Duration)) func(*tally, time.Duration) {
	var last time.Duration
	return func(t *tally, at time.Duration) {
		if at-last >= pause {
			last = at
			tell(t, at)
		}
	}
}
