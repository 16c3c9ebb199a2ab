//go:build linux

package docker

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// makeFIFO makes a pipe that uid may read.
func makeFIFO(path string, uid int) error {
	return errors.Join(syscall.Mkfifo(path, 0o600), os.Chown(path, uid, -1))
}

func itoa(n int) string { return strconv.Itoa(n) }
