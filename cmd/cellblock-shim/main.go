//go:build linux

// Command cellblock-shim is the process beside each kernel. Provisioners start it, with its configuration in the
// environment; nobody else has a use for it. See package shim.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"cellblock/internal/timerslack"
	"cellblock/kernels/shim"
	"cellblock/kernels/stream"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 2 && args[0] == shim.LaunchArg {
		return shim.Launch(args[1])
	}
	if len(args) != 0 {
		fmt.Fprintln(os.Stderr, "cellblock-shim takes no arguments: cellblock starts it")
		return shim.ExitUsage
	}
	timerslack.Widen()
	config, err := shim.ParseConfig(os.Getenv(stream.ConfigEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, "cellblock-shim:", err)
		return shim.ExitConfig
	}
	// A server that ends, a terminal that closes: nothing of that is the kernel's business.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, syscall.SIGTERM)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := shim.Run(stop, config, log); err != nil {
		log.Error("the shim ends", "error", err)
		return shim.ExitSystem
	}
	return 0
}
