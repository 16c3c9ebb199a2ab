// Command standin stands in for the shim in tests of what surrounds it. It welcomes every connection, runs the kernel's
// command once, ends when that does, and obeys OpShutdown and SIGTERM as far as its environment STANDIN lets it:
// "deaf" ignores OpShutdown, "stubborn" SIGTERM too, "broken" ends at once.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"cellblock/kernels/stream"
)

func main() {
	var cfg stream.Config
	if err := json.Unmarshal([]byte(os.Getenv(stream.ConfigEnv)), &cfg); err != nil {
		fail(err)
	}
	mode := ""
	for _, entry := range cfg.Env {
		if value, ok := strings.CutPrefix(entry, "STANDIN="); ok {
			mode = value
		}
	}
	if mode == "broken" {
		fail("broken, as I was told to be")
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	listener, err := listen(cfg)
	if err != nil {
		fail(err)
	}
	shutdown := make(chan struct{}, 16)
	go accept(listener, cfg.KernelID, shutdown)
	ended := make(chan int, 1)
	go func() { ended <- run(cfg) }()
	for {
		select {
		case code := <-ended:
			os.Exit(code)
		case <-shutdown:
			if !slices.Contains([]string{"deaf", "stubborn"}, mode) {
				os.Exit(0)
			}
		case <-term:
			if mode != "stubborn" {
				os.Exit(143 - 128)
			}
		}
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "standin:", why)
	os.Exit(7)
}

func listen(cfg stream.Config) (net.Listener, error) {
	if path, ok := strings.CutPrefix(cfg.Listen, "unix:"); ok {
		return net.Listen("unix", path)
	}
	return stream.NewAttachServer(os.Stdin, os.Stdout, cfg.AttachKey)
}

// run runs the kernel's command with its output in a file of its folder.
func run(cfg stream.Config) int {
	out, err := os.Create(cfg.Dir + "/out")
	if err != nil {
		fail(err)
	}
	cmd := exec.Command(cfg.Argv[0], cfg.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = cfg.Env, cfg.Dir, out, out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		fail(err)
	}
	if err := os.Rename(out.Name(), cfg.Dir+"/output"); err != nil { // whole
		fail(err)
	}
	return cmd.ProcessState.ExitCode()
}

func accept(l net.Listener, id string, shutdown chan<- struct{}) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go serve(conn, id, shutdown)
	}
}

func serve(conn net.Conn, id string, shutdown chan<- struct{}) {
	defer conn.Close()
	r, w := stream.NewReader(conn, 1<<20), stream.NewWriter(conn)
	for {
		f, err := r.ReadFrame()
		if err != nil {
			return
		}
		switch f.Type {
		case stream.FrameHello:
			if w.WriteJSON(stream.FrameWelcome, stream.Welcome{Version: stream.Version, KernelID: id}) != nil {
				return
			}
		case stream.FrameRequest:
			shutdown <- struct{}{}
		}
	}
}
