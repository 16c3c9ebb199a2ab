//go:build linux && (amd64 || arm64)

package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// call is a system call as a filter sees it.
type call struct {
	arch, nr uint32
	args     [6]uint64
}

// word is what a filter loads at an offset of struct seccomp_data on a little-endian machine.
func (c call) word(t *testing.T, offset uint32) uint32 {
	t.Helper()
	switch {
	case offset == offsetNumber:
		return c.nr
	case offset == offsetArch:
		return c.arch
	case offset >= offsetArgs && offset < offsetArgs+48 && offset%4 == 0:
		return uint32(c.args[(offset-offsetArgs)/8] >> (8 * (offset % 8)))
	}
	t.Fatalf("load at %d", offset)
	return 0
}

// verdict runs a filter.
func verdict(t *testing.T, p program, c call) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(p); pc++ {
		switch i := p[pc]; i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = c.word(t, i.K)
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			pc += jump(a == i.K, i)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			pc += jump(a&i.K != 0, i)
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		default:
			t.Fatalf("instruction %d: code %#x", pc, i.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func jump(yes bool, i unix.SockFilter) int {
	if yes {
		return int(i.Jt)
	}
	return int(i.Jf)
}

func refused(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

func TestVerdicts(t *testing.T) {
	const allowed = uint32(unix.SECCOMP_RET_ALLOW)
	here := func(nr uint32, args ...uint64) call {
		c := call{arch: auditArch, nr: nr}
		copy(c.args[:], args)
		return c
	}
	tests := map[string]struct {
		call call
		want uint32
	}{
		"read":                     {here(unix.SYS_READ), allowed},
		"execve":                   {here(unix.SYS_EXECVE), allowed},
		"a number yet to come":     {here(2000), allowed},
		"mount":                    {here(unix.SYS_MOUNT), refused(unix.EPERM)},
		"ptrace":                   {here(unix.SYS_PTRACE), refused(unix.EPERM)},
		"keyctl":                   {here(unix.SYS_KEYCTL), refused(unix.EPERM)},
		"bpf":                      {here(unix.SYS_BPF), refused(unix.EPERM)},
		"the last of the list":     {here(denied[len(denied)-1]), refused(unix.EPERM)},
		"clone3":                   {here(unix.SYS_CLONE3), refused(unix.ENOSYS)},
		"fork":                     {here(unix.SYS_CLONE, uint64(unix.SIGCHLD)), allowed},
		"thread":                   {here(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_FS|unix.CLONE_FILES|unix.CLONE_THREAD|unix.CLONE_SIGHAND), allowed},
		"new user namespace":       {here(unix.SYS_CLONE, unix.CLONE_NEWUSER|uint64(unix.SIGCHLD)), refused(unix.EPERM)},
		"new network namespace":    {here(unix.SYS_CLONE, unix.CLONE_NEWNET), refused(unix.EPERM)},
		"flag in the high half":    {here(unix.SYS_CLONE, unix.CLONE_NEWUSER<<32), allowed}, // the kernel does not look there
		"another's first argument": {here(unix.SYS_READ, unix.CLONE_NEWUSER), allowed},
		"ioctl":                    {here(unix.SYS_IOCTL, 0, unix.TCGETS), allowed},
		"push input":               {here(unix.SYS_IOCTL, 0, unix.TIOCSTI), refused(unix.EPERM)},
		"push input, high half":    {here(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32), refused(unix.EPERM)},
		"unix socket":              {here(unix.SYS_SOCKET, unix.AF_UNIX), allowed},
		"netlink socket":           {here(unix.SYS_SOCKET, unix.AF_NETLINK), allowed},
		"vsock":                    {here(unix.SYS_SOCKET, unix.AF_VSOCK), refused(unix.EAFNOSUPPORT)},
		"crypto socket":            {here(unix.SYS_SOCKET, unix.AF_ALG), refused(unix.EAFNOSUPPORT)},
		"unix pair":                {here(unix.SYS_SOCKETPAIR, unix.AF_UNIX), allowed},
		"other pair":               {here(unix.SYS_SOCKETPAIR, unix.AF_TIPC), refused(unix.EAFNOSUPPORT)},
		"another architecture":     {call{arch: unix.AUDIT_ARCH_I386, nr: unix.SYS_READ}, refused(unix.EPERM)},
	}
	if foreignBit != 0 {
		tests["another ABI"] = struct {
			call call
			want uint32
		}{here(unix.SYS_READ | foreignBit), refused(unix.EPERM)}
	}
	p := build()
	for name, tt := range tests {
		if got := verdict(t, p, tt.call); got != tt.want {
			t.Errorf("%s: %#x, want %#x", name, got, tt.want)
		}
	}
}

// Every denied number is denied, once, and the program is one that the kernel takes.
func TestProgram(t *testing.T) {
	p := build()
	if len(p) > 4096 || len(Filter()) != 8*len(p) {
		t.Errorf("%d instructions, %d bytes", len(p), len(Filter()))
	}
	all := slices.Concat(denied, deniedHere)
	for _, nr := range all {
		if got := verdict(t, p, call{arch: auditArch, nr: nr}); got != refused(unix.EPERM) {
			t.Errorf("system call %d: %#x", nr, got)
		}
	}
	slices.Sort(all)
	if n := len(all); len(slices.Compact(all)) != n {
		t.Error("a number is listed twice")
	}
}
