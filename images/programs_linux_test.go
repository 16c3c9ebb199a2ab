package images_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cellblock/images"
	"cellblock/kernels/kernelstest"
)

// A program that prints to a cell is heard line by line in our images, and one that prints to something else writes as it always does.
func TestProgramsOfImagesPrintAtOnce(t *testing.T) {
	kernelstest.NeedPython(t)
	for name, cells := range map[string]bool{"to its cell": true, "to another program": false} {
		t.Run(name, func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			cmd := exec.CommandContext(t.Context(), images.PythonInterpreter, "-c", "import sys\nprint('a line')\nsys.stderr.write('x')\nsys.stderr.flush()\nsys.stdin.read()")
			var pipe syscall.Stat_t
			if err := syscall.Fstat(int(write.Fd()), &pipe); err != nil {
				t.Fatal(err)
			}
			if !cells {
				pipe.Ino++
			}
			cmd.Env = append(os.Environ(), "PYTHONUNBUFFERED=", "PYTHONPATH=executor", "MPLCONFIGDIR=", fmt.Sprintf("KERNEL_OUTPUT=%d:%d", pipe.Dev, pipe.Ino))
			cmd.Stdout = write
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			write.Close()
			if _, err := io.ReadFull(stderr, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			waiting := []unix.PollFd{{Fd: int32(read.Fd()), Events: unix.POLLIN}}
			if n, err := unix.Poll(waiting, 0); err != nil || n == 1 != cells {
				t.Errorf("%d pipes have text: %v", n, err)
			}
			stdin.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			if text, err := io.ReadAll(read); err != nil || string(text) != "a line\n" {
				t.Errorf("%q: %v", text, err)
			}
		})
	}
}
