// Command bench measures cellblock: beside other ways to do the same, in turn in one run, as ratios, and what sessions
// cost while nobody uses them. Absolute times differ from machine to machine and from minute to minute; ratios hold.
//
//	go run ./e2e/bench [-rows warm,pool] [-quick] [-markdown FILE] [-json FILE] [-rounds 10] [-cells 100] [-cold 5] [-sessions 100] [-idle 1m] …
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
	"syscall"
	"time"
)

type options struct {
	rounds, cells, cold, sessions, crowd, history int
	idle                                          time.Duration
	bin                                           string
	env                                           []string // of servers, besides
}

// measure is a part of the tables that can be had alone.
type measure struct {
	name   string
	engine bool // it needs a container engine
	run    func(ctx context.Context, o options, dir string) (report, error)
}

var measures = []measure{
	{"warm", false, measureWarm},
	{"streams", false, measureStreams},
	{"crowd", false, measureCrowd},
	{"grown", false, measureGrown},
	{"start", false, measureStart},
	{"pool", false, measurePool},
	{"pool-docker", true, measurePoolDocker},
	{"cold", true, measureCold},
	{"cold-together", true, measureColdTogether},
	{"reattach", false, measureReattach},
	{"pixel", false, measurePixel},
	{"scroll", false, measureScroll},
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
	flag.IntVar(&o.crowd, "crowd", 50, "sessions that work side by side, if memory allows")
	flag.IntVar(&o.history, "history", 100_000, "executions that a grown history has")
	quick := flag.Bool("quick", false, "measure little of everything: to see whether it works, not how fast")
	markdown := flag.String("markdown", "", "also write the tables to this file")
	asJSON := flag.String("json", "", "also write what was measured to this file, as JSON")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long they are watched")
	flag.StringVar(&o.bin, "bin", "bin", "folder with cellblock and cellblock-shim")
	flag.Parse()
	if *quick {
		o.rounds, o.cells, o.cold, o.sessions, o.crowd, o.history, o.idle = 1, 3, 1, 2, 2, 300, 2*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chosen, err := choose(*rows)
	if err == nil {
		var all report
		if all, err = run(ctx, o, chosen); err == nil {
			all.print(os.Stdout)
			err = all.save(*markdown, *asJSON)
		}
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

// run makes the measurements, one after the other.
func run(ctx context.Context, o options, chosen []measure) (all report, err error) {
	dir, err := os.MkdirTemp("/tmp", "cb-bench")
	if err != nil {
		return all, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		return all, err
	}
	o.bin, err = filepath.Abs(o.bin)
	if err != nil {
		return all, err
	}
	for _, m := range chosen {
		fmt.Fprintf(os.Stderr, "bench: %s\n", m.name)
		r, err := m.run(ctx, o, dir)
		if err != nil {
			return all, fmt.Errorf("%s: %w", m.name, err)
		}
		all.add(r)
	}
	return all, nil
}
