//go:build linux

package seccomp

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	// foreignBit: no second ABI shares this architecture's numbers.
	foreignBit = 0
)

var deniedHere []uint32
