// Command stubshim stands in for the shim in tests of what surrounds it: it welcomes every connection, runs the kernel's
// command once and ends on SIGTERM.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cellblock/kernels/stream"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "stubshim:", err)
		os.Exit(3)
	}
}

func run() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	var cfg stream.Config
	if err := json.Unmarshal([]byte(os.Getenv(stream.ConfigEnv)), &cfg); err != nil {
		return err
	}
	fd, err := strconv.Atoi(strings.TrimPrefix(cfg.Listen, "fd:"))
	if err != nil {
		return err
	}
	unix.CloseOnExec(fd)
	ln, err := net.FileListener(os.NewFile(uintptr(fd), "listener"))
	if err != nil {
		return err
	}
	go serve(ln, cfg)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	cmd := exec.Command(cfg.Argv[0], cfg.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = cfg.Env, cfg.Dir, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	<-term
	return nil
}

func serve(ln net.Listener, cfg stream.Config) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if _, err := stream.NewReader(conn, 4096).ReadFrame(); err != nil {
				return
			}
			w := stream.Welcome{Version: stream.Version, KernelID: cfg.KernelID, Next: 1, Incarnation: 1, Alive: true}
			_ = stream.NewWriter(conn).WriteJSON(stream.FrameWelcome, w)
			_, _ = conn.Read(make([]byte, 1))
		}()
	}
}
