//go:build linux && (amd64 || arm64)

// Package seccomp has the filter of system calls that kernels run under (seccomp(2)), in every sandbox and container. An
// engine's own filter stands before it: Podman's lets a container make user namespaces and keyrings, Docker's older ones
// io_uring.
//
// The filter refuses what sandboxes are escaped with and kernels have no use for. Everything else is allowed: user code
// may bring any program, and most of the surface is closed by namespaces and the lack of capabilities already.
// Refused calls fail as they do for lack of permission, so that programs go on without them.
package seccomp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are system calls that fail with EPERM, on every architecture.
var denied = []uint32{
	// the mount tree
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SWAPON,
	unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_OPEN_TREE_ATTR,
	// namespaces
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	// parts of the kernel with a history, none of which a program of science needs
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_FANOTIFY_INIT,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_VMSPLICE,
	// the machine
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX,
	unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL,
}

// families are the address families that sockets may have. Others reach past the network namespace (vsock) or into
// rarely used parts of the kernel.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// cloneFlags are those that make namespaces. The new-user one would give capabilities over the others.
const cloneFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// ioctls are requests that push characters into a terminal's input (the terminal may be the operator's).
var ioctls = []uint32{unix.TIOCSTI, unix.TIOCLINUX}

// Offsets in struct seccomp_data (seccomp(2)); of a 64-bit argument the low half comes first on our architectures.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// program is a filter in the making.
type program []unix.SockFilter

// Install puts the calling thread under the filter, and with it what the thread executes. Nothing undoes it. The thread must
// have no_new_privs.
func Install() error {
	filter := build()
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// Filter returns the filter as bubblewrap's --seccomp reads it.
func Filter() []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.NativeEndian, []unix.SockFilter(build()))
	return b.Bytes()
}

func build() program {
	var p program
	p.load(offsetArch)
	p.unless(auditArch, unix.EPERM) // another architecture's numbers mean other calls
	p.load(offsetNumber)
	if foreignBit != 0 {
		p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, foreignBit, 0, 1)
		p.fail(unix.EPERM)
	}
	for _, nr := range slices.Concat(denied, deniedHere) {
		p.when(nr, unix.EPERM)
	}
	p.when(unix.SYS_CLONE3, unix.ENOSYS) // its flags lie in memory; libraries fall back to clone
	p.argument(unix.SYS_CLONE, 0, func(q *program) {
		q.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, cloneFlags, 0, 1)
		q.fail(unix.EPERM)
	})
	p.argument(unix.SYS_IOCTL, 1, func(q *program) {
		for _, request := range ioctls {
			q.when(request, unix.EPERM)
		}
	})
	for _, nr := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		p.argument(nr, 0, func(q *program) {
			for i, family := range families {
				q.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, family, uint8(len(families)-i), 0)
			}
			q.fail(unix.EAFNOSUPPORT)
		})
	}
	p.allow()
	return p
}

func (p *program) add(code uint16, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }

func (p *program) fail(errno unix.Errno) {
	p.add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(errno), 0, 0)
}

func (p *program) allow() { p.add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW, 0, 0) }

// when fails the call if what was loaded equals k, unless if it does not.
func (p *program) when(k uint32, errno unix.Errno) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 0, 1)
	p.fail(errno)
}

func (p *program) unless(k uint32, errno unix.Errno) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 1, 0)
	p.fail(errno)
}

// argument applies rules to the low half of an argument of one system call, which they may refuse and which else is
// allowed. Kernel and libraries use only that half of the arguments concerned.
func (p *program) argument(nr uint32, index uint32, rules func(*program)) {
	var inner program
	inner.load(offsetArgs + 8*index)
	rules(&inner)
	inner.allow()
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, nr, 0, uint8(len(inner)))
	*p = append(*p, inner...)
}
