//go:build linux

package chaos

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The server of this test tells the time by a clock that can be stepped: it is built with a time package of its own, whose
// Now adds what a file says. The machine's clock, the kernels' and the engine's are left alone, as are monotonic readings.

// clockVariable names the file to a server. One that does not have it goes by the machine's clock.
const clockVariable = "CHAOS_CLOCK"

// steppedSource is the file that is added to package time. It may import little, because everything imports it.
const steppedSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var stepped = mapStep()

func mapStep() *atomic.Int64 {
	name, ok := syscall.Getenv("` + clockVariable + `")
	if !ok {
		return new(atomic.Int64)
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("time: " + name + ": " + err.Error())
	}
	defer syscall.Close(fd)
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("time: " + name + ": " + err.Error())
	}
	return (*atomic.Int64)(unsafe.Pointer(&page[0]))
}
`

// reading is the line of Now that reads the clock.
const reading = "\tsec, nsec, mono := runtimeNow()\n"

// overlay writes go build's overlay with the stepped time package into a folder, and returns its path.
func overlay(dir string) (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), reading); n != 1 {
		return "", fmt.Errorf("%s/time.go reads the clock %d times by %q, not once: this test must learn how this Go does", source, n, reading)
	}
	replaced := map[string]string{}
	for name, text := range map[string]string{
		"time.go":    strings.Replace(string(text), reading, reading+"\tsec += stepped.Load()\n", 1),
		"stepped.go": steppedSource,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
		replaced[filepath.Join(source, name)] = path
	}
	text, err = json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// clock is the time of one installation's servers.
type clock struct {
	path string
	by   time.Duration // now
}

func newClock(t *testing.T) *clock {
	c := &clock{path: filepath.Join(t.TempDir(), "clock")}
	if err := os.WriteFile(c.path, make([]byte, 8), 0o644); err != nil {
		t.Fatal(err)
	}
	return c
}

// step sets the clock so much ahead of the machine's.
func (c *clock) step(t *testing.T, by time.Duration) {
	t.Helper()
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := binary.Write(f, binary.NativeEndian, int64(by/time.Second)); err != nil {
		t.Fatal(err)
	}
	c.by = by
}

// environment is what a program must find in its environment to go by this clock.
func (c *clock) environment() string { return clockVariable + "=" + c.path }
