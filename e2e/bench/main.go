// Command bench measures cellblock: beside other ways to do the same, in turn in one run, as ratios, and what sessions
// cost while nobody uses them. Absolute times differ from machine to machine and from minute to minute; ratios hold.
//
//	go run ./e2e/bench [-rows warm,pool] [-rounds 10] [-cells 100] [-cold 5] [-sessions 100] [-idle 1m]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type options struct {
	rounds, cells, cold, sessions int
	idle                          time.Duration
	bin                           string
	env                           []string // of servers, besides
}

// measure is a part of the tables that can be had alone.
type measure struct {
	name   string
	engine bool // it needs a container engine
	run    func(ctx context.Context, o options, dir string) (report, error)
}

var measures = []measure{
	{"warm", false, measureWarm},
	{"pool", false, measurePool},
	{"pool-docker", true, measurePoolDocker},
	{"cold", true, measureCold},
	{"reattach", false, measureReattach},
	{"idle", false, measureIdle},
	{"shim", false, measureShim},
}

func main() {
	o := options{}
	rows := flag.String("rows", "", "what to measure, of "+strings.Join(names(), ",")+" (default all)")
	flag.IntVar(&o.rounds, "rounds", 10, "how often the ways are measured in turn")
	flag.IntVar(&o.cells, "cells", 100, "executions of 1+1 a round")
	flag.IntVar(&o.cold, "cold", 5, "cold starts of each way")
	flag.IntVar(&o.sessions, "sessions", 100, "sessions that rest side by side, if memory allows")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long they are watched")
	flag.StringVar(&o.bin, "bin", "bin", "folder with cellblock and cellblock-shim")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen, err := choose(*rows)
	if err == nil {
		err = run(ctx, o, chosen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func names() (all []string) {
	for _, m := range measures {
		all = append(all, m.name)
	}
	return all
}

// choose finds measures by their names; no names are all that can be made here.
func choose(rows string) (chosen []measure, err error) {
	engine := os.Getenv("CELLBLOCK_TEST_DOCKER_HOST") != ""
	wanted := strings.FieldsFunc(rows, func(r rune) bool { return r == ',' })
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("there is no row %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	for _, m := range measures {
		if len(wanted) > 0 && !slices.Contains(wanted, m.name) {
			continue
		}
		if m.engine && !engine {
			fmt.Fprintf(os.Stderr, "bench: %s is left out: CELLBLOCK_TEST_DOCKER_HOST names no engine\n", m.name)
			continue
		}
		chosen = append(chosen, m)
	}
	return chosen, nil
}

func run(ctx context.Context, o options, chosen []measure) error {
	dir, err := os.MkdirTemp("/tmp", "cb-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	o.bin, err = filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	var all report
	for _, m := range chosen {
		fmt.Fprintf(os.Stderr, "bench: %s\n", m.name)
		r, err := m.run(ctx, o, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		all.add(r)
	}
	all.print(os.Stdout)
	return nil
}
