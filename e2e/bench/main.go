// Command bench measures cellblock beside other ways to do the same, in turn in one run, and prints ratios. Absolute
// times differ from machine to machine and from minute to minute; the ratios hold.
//
//	go run ./e2e/bench [-rounds 10] [-cells 100] [-cold 5]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

type options struct {
	rounds, cells, cold int
	bin                 string
}

func main() {
	o := options{}
	flag.IntVar(&o.rounds, "rounds", 10, "how often the ways are measured in turn")
	flag.IntVar(&o.cells, "cells", 100, "executions of 1+1 a round")
	flag.IntVar(&o.cold, "cold", 5, "cold starts of each way")
	flag.StringVar(&o.bin, "bin", "bin", "folder with cellblock and cellblock-shim")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
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
	var rows []row
	measures := []func(context.Context, options, string) ([]row, error){measureWarm, measurePool}
	if os.Getenv("CELLBLOCK_TEST_DOCKER_HOST") != "" {
		measures = append(measures, measureCold)
	} else {
		fmt.Fprintln(os.Stderr, "bench: cold starts in containers are left out: CELLBLOCK_TEST_DOCKER_HOST names no engine")
	}
	for _, measure := range measures {
		more, err := measure(ctx, o, dir)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	printTable(os.Stdout, rows)
	fmt.Println()
	return shimNumbers(ctx)
}

// shimNumbers prints what the shim costs: its own benchmark, run here so that one command shows all.
func shimNumbers(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "ShimStart", "-benchtime", "10x", "./kernels/shim")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
