// Command standin stands in for the shim in tests of what surrounds it. It welcomes every connection, runs the kernel's
// command once, and ends when that does or on SIGTERM. Its environment STANDIN changes that: "stubborn" ignores SIGTERM,
// "broken" ends at once.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
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
	go accept(listener, cfg.KernelID)
	ended := make(chan int, 1)
	go func() { ended <- run(cfg) }()
	for {
		select {
		case code := <-ended:
			os.Exit(code)
		case <-term:
			if mode != "stubborn" {
				os.Exit(15)
			}
		}
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "standin:", why)
	os.Exit(7)
}

func listen(cfg stream.Config) (net.Listener, error) {
	if path, ok := strings.CutPrefix(cfg.Listen, "take:"); ok {
		return stream.TakeListener(path)
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

func accept(l net.Listener, id string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go serve(conn, id)
	}
}

func serve(conn net.Conn, id string) {
	defer conn.Close()
	r, w := stream.NewReader(conn, 1<<20), stream.NewWriter(conn)
	for {
		f, err := r.ReadFrame()
		if err != nil {
			return
		}
		if f.Type != stream.FrameHello {
			continue
		}
		if w.WriteJSON(stream.FrameWelcome, stream.Welcome{Version: stream.Version, KernelID: id}) != nil {
			return
		}
	}
}
