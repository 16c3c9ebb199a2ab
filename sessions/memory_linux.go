package sessions

import (
	"bufio"
	"fmt"
	"os"
)

// hostMemory returns how much memory this host has, and how much of that can be had without swapping, in bytes; -1 for what
// is not known.
func hostMemory() (total, available int64) {
	total, available = -1, -1
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return total, available
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan() && (total < 0 || available < 0); {
		var name string
		var kib int64
		if _, err := fmt.Sscan(lines.Text(), &name, &kib); err != nil {
			continue
		}
		switch name {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			available = kib << 10
		}
	}
	return total, available
}
