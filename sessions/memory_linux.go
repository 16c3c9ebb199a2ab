package sessions

import (
	"bufio"
	"fmt"
	"os"
)

// leastMemory is what this host must have free, in KiB, for a kernel that nobody waits for.
const leastMemory = 300 << 10

// memoryShort tells whether this host has little memory left: less than that, or less than a tenth.
func memoryShort() bool {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return false
	}
	defer f.Close()
	var total, available int64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var name string
		var kib int64
		if _, err := fmt.Sscan(lines.Text(), &name, &kib); err != nil {
			continue
		}
		switch name {
		case "MemTotal:":
			total = kib
		case "MemAvailable:":
			available = kib
		}
	}
	return total > 0 && available < max(total/10, leastMemory)
}
