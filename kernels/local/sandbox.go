package local

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cellblock/kernels"
)

// Where things are inside a sandbox.
const (
	workspacePath = "/workspace"
	tmpPath       = "/tmp"
	runPath       = "/run"
	homePath      = "/run/home"
	ipcPath       = "/run/kernel" // connection file and ipc sockets
	shimPath      = "/run/cellblock-shim"
	cgroupPath    = "/sys/fs/cgroup"
	hostname      = "cellblock"
	account       = "cellblock" // the user's and group's name
)

const (
	runSize    = 64 << 20
	defaultTmp = 256 << 20 // of /tmp and of /dev/shm when no limit is given
)

// bind makes a path of the host appear in the sandbox.
type bind struct {
	source, target string
	optional       bool // nothing happens where the source does not exist
}

// tmpfs is a file system in memory; no size means the system's default, half of the memory.
type tmpfs struct {
	target string
	size   int64
}

// link is a symbolic link.
type link struct{ text, path string }

// file is a small file made of what a descriptor of bubblewrap's reads.
type file struct {
	fd   int
	path string
}

// sandbox is what one kernel's sandbox consists of. Its sources must be reachable for the user that bubblewrap runs as.
type sandbox struct {
	readOnly  []bind
	links     []link
	files     []file
	tmpfs     []tmpfs
	scratch   []bind // empty folders to use where there is no tmpfs
	further   []bind // read-only paths beside the system's, which may lie where a tmpfs is
	cgroups   []bind
	shown     []bind // folders of the host, read-only
	writable  []bind // and others
	workspace string // empty: none
	shim      string // empty: none
	config    string // the shim's configuration, with everything that the kernel gets to see of the environment
	configEnv string
	seccompFD int // 0: no filter
	infoFD    int
	statusFD  int
	sized     bool // this bubblewrap can bound a tmpfs (0.7)
}

// args returns bubblewrap's options, in the order in which it obeys them. The shim comes last: a sandbox whose options
// were cut short has nothing to execute.
func (s sandbox) args() []string {
	a := argv{
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
		"--as-pid-1", "--new-session", "--cap-drop", "ALL", "--hostname", hostname,
	}
	a.fd("--info-fd", s.infoFD)
	a.fd("--json-status-fd", s.statusFD)
	a.fd("--seccomp", s.seccompFD)
	s.system(&a)
	s.private(&a)
	if s.workspace != "" {
		a.add("--bind", s.workspace, workspacePath)
	}
	for _, b := range s.shown {
		a.bind("--ro-bind", b)
	}
	for _, b := range s.writable {
		a.bind("--bind", b)
	}
	a.add("--remount-ro", "/dev")
	a.add("--remount-ro", "/")
	a.add("--clearenv")
	if s.config != "" {
		a.add("--setenv", s.configEnv, s.config)
	}
	a.add("--chdir", "/")
	if s.shim != "" {
		a.add("--ro-bind", s.shim, shimPath)
	}
	return a
}

// system adds what is the same for every sandbox of a host.
func (s sandbox) system(a *argv) {
	for _, b := range s.readOnly {
		a.bind("--ro-bind", b)
	}
	for _, l := range s.links {
		a.add("--symlink", l.text, l.path)
	}
	for _, f := range s.files {
		a.add("--perms", "0644", "--file", strconv.Itoa(f.fd), f.path)
	}
	a.add("--proc", "/proc")
	a.add("--dev", "/dev")
}

// private adds what belongs to this sandbox alone.
func (s sandbox) private(a *argv) {
	for _, t := range s.tmpfs {
		if s.sized && t.size > 0 {
			a.add("--size", strconv.FormatInt(t.size, 10))
		}
		a.add("--tmpfs", t.target)
	}
	for _, b := range s.scratch {
		a.bind("--bind", b)
	}
	a.add("--dir", homePath)
	for _, b := range slices.Concat(s.further, s.cgroups) {
		a.bind("--ro-bind", b)
	}
}

// argv is a command line in the making.
type argv []string

func (a *argv) add(words ...string) { *a = append(*a, words...) }

func (a *argv) bind(option string, b bind) {
	if b.optional {
		option += "-try"
	}
	a.add(option, b.source, b.target)
}

func (a *argv) fd(option string, fd int) {
	if fd != 0 {
		a.add(option, strconv.Itoa(fd))
	}
}

// encode returns the options as bubblewrap's --args reads them: each ended by a NUL, which none may therefore hold.
func encode(args []string) ([]byte, error) {
	var b bytes.Buffer
	for _, arg := range args {
		if strings.IndexByte(arg, 0) >= 0 {
			return nil, fmt.Errorf("a NUL in %q", arg)
		}
		b.WriteString(arg)
		b.WriteByte(0)
	}
	return b.Bytes(), nil
}

// kernelEnv is a kernel's whole environment: the sandbox's own, the thread pools' sizes, and then each of more.
func kernelEnv(home, path string, cpus float64, more ...map[string]string) []string {
	env := map[string]string{
		"PATH": path, "HOME": home, "TMPDIR": tmpPath, "LANG": "C.UTF-8", "USER": account, "LOGNAME": account,
		"TERM": "dumb", "SHELL": "/bin/sh", "MPLCONFIGDIR": home + "/.config/matplotlib",
		"XDG_CACHE_HOME": home + "/.cache",
	}
	for _, m := range append([]map[string]string{kernels.ThreadEnv(cpus)}, more...) {
		for k, v := range m {
			env[k] = v
		}
	}
	return sortedEnv(env)
}
