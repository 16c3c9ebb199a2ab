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

	_ "cellblock/internal/timerslack/first"
	"cellblock/kernels/shim"
	"cellblock/kernels/stream"
)

func main() { os.Exit(run(os.Args[1:])) }

// nobodys are signals that have nothing to say to the shim. A server that ends and a terminal that closes are not the
// kernel's business. All others would end it, because Go's runtime takes them for its own: user code, which may send them,
// could so be rid of who reports on it. A fault of the shim's own still ends it; those are not sent.
var nobodys = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS,
	syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGSTKFLT, syscall.SIGSYS, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGXCPU,
	syscall.SIGXFSZ, syscall.SIGVTALRM, syscall.SIGIO, syscall.SIGPWR,
}

func run(args []string) int {
	if len(args) == 2 && args[0] == shim.LaunchArg {
		return shim.Launch(args[1])
	}
	if len(args) != 0 {
		fmt.Fprintln(os.Stderr, "cellblock-shim takes no arguments: cellblock starts it")
		return shim.ExitUsage
	}
	config, err := shim.ParseConfig(os.Getenv(stream.ConfigEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, "cellblock-shim:", err)
		return shim.ExitConfig
	}
	signal.Ignore(nobodys...)
	if err := shim.IgnoreThreadSignals(); err != nil {
		fmt.Fprintln(os.Stderr, "cellblock-shim:", err)
		return shim.ExitSystem
	}
	stop := make(chan os.Signal, 4)
	signal.Notify(stop, syscall.SIGTERM)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := shim.Run(stop, config, log); err != nil {
		log.Error("the shim ends", "error", err)
		return shim.ExitSystem
	}
	return 0
}
