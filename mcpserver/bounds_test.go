package mcpserver

import (
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels"
)

func TestHintWhereThereIsNoRoom(t *testing.T) {
	all := bounds{memory: 1 << 30, workspace: 10 << 30, tmp: 256 << 20, file: 4 << 30}
	for _, tt := range []struct {
		within      bounds
		value, want string
	}{
		{all, "[Errno 122] Disk quota exceeded: 'data'", "The workspace may hold 10 GiB: delete files that are not needed."},
		{all, "[Errno 28] No space left on device", "The workspace may hold 10 GiB, /tmp may hold 256 MiB: delete files that are not needed."},
		{bounds{tmp: 1 << 20}, "[Errno 28] No space left on device", "/tmp may hold 1 MiB: delete files that are not needed."},
		{bounds{}, "[Errno 28] No space left on device", "The disk is full: delete files that are not needed."},
		{all, "[Errno 27] File too large", "One file may have 4 GiB at most: write several."},
		{bounds{}, "[Errno 122] Disk quota exceeded", ""},
		{all, "[Errno 13] Permission denied", ""},
		{all, "ENOSPC: no space left on device, write", "The workspace may hold 10 GiB, /tmp may hold 256 MiB: delete files that are not needed."},
		{all, "EFBIG: file too large, write", "One file may have 4 GiB at most: write several."},
	} {
		if got := errorHint(kernels.ExecError{Name: "OSError", Value: tt.value}, tt.within); got != tt.want {
			t.Errorf("%s: %q", tt.value, got)
		}
	}
}

// What a cell prints is a failure for lack of room where it looks like one: it may read logs, or write about disks.
func TestHintOfPrintedRoom(t *testing.T) {
	const want = "The workspace may hold 1 GiB: delete files that are not needed."
	for text, hint := range map[string]bool{
		"cp: error writing 'b': No space left on device\r\n[exit status 1]":                                                        true,
		"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device":                                  true,
		"OSError: [Errno 28] No space left on device: 'x.csv'\nafter":                                                              true,
		"CompletedProcess(args='tar', stderr='tar: x: Cannot write: No space left on device\\n')":                                  true,
		"(file write failed: errno = 28, error message = 'No space left on device', buf = 0x1)":                                    true,
		"write: No space left on device (os error 28)":                                                                             true,
		"[stderr] dd: writing to 'x': Disk quota exceeded":                                                                         true,
		"The server said: No space left on device since Monday.":                                                                   false,
		"Note: It was stopped; its variables were not saved: OSError: [Errno 28] No space left on device. All variables are lost.": false,
		"No space left on device":                   false,
		"ENOSPC (No space left on device)":          false,
		"| 28 | ENOSPC | No space left on device |": false,
	} {
		if got := printedHint([]mcp.Content{mcp.NewTextContent(text)}, nil, bounds{workspace: 1 << 30}); got != map[bool]string{true: want}[hint] {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// Of a process or a thread that could not be started the limit is told; a file that has nothing to be read now is none.
func TestHintWhereThereAreTooManyProcesses(t *testing.T) {
	const want = "A session may have 1,256 processes and threads at once: start fewer, and end those that are not needed. " +
		"Where nothing can be started any more, restart_session ends them all; variables are lost, files are kept."
	forked := []string{"File /usr/lib/python3.11/subprocess.py:1885, in Popen._execute_child", "-> 1885     self.pid = _fork_exec("}
	for _, tt := range []struct {
		name, value string
		frames      []string
		hint        bool
	}{
		{"BlockingIOError", "[Errno 11] Resource temporarily unavailable", forked, true},
		{"BlockingIOError", "[Errno 11] Resource temporarily unavailable", []string{"----> 1 os.read(r, 1)"}, false},
		{"BlockingIOError", "[Errno 11] Resource temporarily unavailable", []string{"----> 1 get_ipython().system('ls')"}, true}, // !ls
		{"BlockingIOError", "[Errno 11] Resource temporarily unavailable: '/bin/ls'", []string{"----> 1 os.posix_spawn('/bin/ls', ['ls'], {})"}, true},
		{"Error", "spawn ls EAGAIN", nil, true},
		{"Error", "spawnSync /bin/sh EAGAIN", nil, true},
		{"Error", "EAGAIN", nil, true}, // a worker
		{"Error", "read EAGAIN", nil, false},
		{"Error in system(\"ls\", intern = TRUE) : ", "cannot popen 'ls', probable reason 'Cannot allocate memory'", nil, true},
		{"RuntimeError", "can't start new thread", nil, true},
		{"RuntimeError", "another", nil, false},
	} {
		e := kernels.ExecError{Name: tt.name, Value: tt.value, Traceback: tt.frames}
		if got := errorHint(e, bounds{processes: 1256}); got != map[bool]string{true: want}[tt.hint] {
			t.Errorf("%s: %s: %q", tt.name, tt.value, got)
		}
		if got := errorHint(e, bounds{}); got != "" {
			t.Errorf("without a limit: %q", got)
		}
	}
	for text, hint := range map[string]bool{"bash: fork: retry: Resource temporarily unavailable": true, "[stderr] OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 4: Resource temporarily unavailable": true,
		"make: fork: Resource temporarily unavailable":                          true,
		"fatal: cannot fork() for git-remote: Resource temporarily unavailable": true,
		"sh: 1: Cannot fork\n":                                 true,
		"Uncaught, in the background:\nError: spawn ls EAGAIN": true,
		"    self.pid = _fork_exec(\n               ^^^^^^^\nBlockingIOError: [Errno 11] Resource temporarily unavailable": true,
		"    os.read(r, 1)\nBlockingIOError: [Errno 11] Resource temporarily unavailable":                                  false,
		"runtime: failed to create new OS thread (have 5 already; errno=11)":                                               true,
		"In pipe(\"ls\") : cannot open pipe() cmd 'ls': Cannot allocate memory":                                            true, "Error: cannot allocate memory": false,
		"curl: Resource temporarily unavailable": false, "Cannot fork a repository": false,
		"fork it": false, "const char *msg = \"pthread_create failed\";": false, "fixed: can't start new thread on musl": false, "unable to fork the repository": false} {
		if got := printedHint([]mcp.Content{mcp.NewTextContent(text)}, nil, bounds{processes: 1256}); got != map[bool]string{true: want}[hint] {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// A folder of the host that is writable in the profile, and of which the kernels' user may not do something, is its operator's to mend.
func TestHintWhereAFolderCannotBeWritten(t *testing.T) {
	with := bounds{writable: []string{"/out"}}
	const denied = "/out is a folder of the server's host, whose permissions keep the kernels' user (kernel_uid) from this: its operator can change them."
	for _, tt := range []struct {
		within            bounds
		name, value, want string
	}{
		{with, "PermissionError", "[Errno 13] Permission denied: '/out/x.csv'", denied},
		{with, "Error", "EACCES: permission denied, open '/out/x.csv'", denied},
		{with, "PermissionError", "[Errno 13] Permission denied: '/outside'", ""},
		{bounds{}, "PermissionError", "[Errno 13] Permission denied: '/out/x.csv'", ""},
		{with, "OSError", "[Errno 30] Read-only file system: '/data/x'", "Only the working directory, /tmp and /out can be written."},
		{bounds{}, "OSError", "Cannot save file into a non-existent directory: '/mnt/data'", "Only the working directory and /tmp can be written."},
		{bounds{}, "OSError", "Cannot save file into a non-existent directory: 'results/by month'", "Make the folder first: import os; os.makedirs('results/by month', exist_ok=True)."},
		{bounds{}, "OSError", "Cannot save file into a non-existent directory: '/workspace/out'", "Make the folder first: import os; os.makedirs('/workspace/out', exist_ok=True)."},
		{bounds{}, "OSError", "[Errno 30] Read-only file system: '/data/x'", "Only the working directory and /tmp can be written."},
	} {
		if got := errorHint(kernels.ExecError{Name: tt.name, Value: tt.value}, tt.within); got != tt.want {
			t.Errorf("%s: %q", tt.value, got)
		}
	}
}

// A workspace that cannot be written is not what the code has done wrong.
func TestHintOfAWorkspaceThatIsReadOnly(t *testing.T) {
	const elsewhere, broken = "Only the working directory and /tmp can be written.", "If this is below /workspace, its disk can only be read by now: " +
		"the server's operator must see to that. /tmp can be written."
	for said, want := range map[string]string{
		"[Errno 30] Read-only file system: 'out/x.csv'":        broken,
		"[Errno 30] Read-only file system: '/workspace/x.csv'": broken,
		"[Errno 30] Read-only file system: '/usr/x'":           elsewhere,
		"EROFS: read-only file system, open 'x.json'":          broken,
		"EROFS: read-only file system, mkdir '/usr/x'":         elsewhere,
	} {
		if got := errorHint(kernels.ExecError{Name: "OSError", Value: said}, bounds{}); got != want {
			t.Errorf("%s: %q", said, got)
		}
	}
	for said, want := range map[string]string{
		"before\ntouch: cannot touch 'x': Read-only file system\nafter": broken,
		"bash: x: Read-only file system\r\n":                            broken,
		"touch: cannot touch '/etc/x': Read-only file system":           elsewhere,
		"bash: line 3: /etc/x: Read-only file system":                   elsewhere,
		"A Read-only file system":                                       "",
	} {
		if got := printedHint([]mcp.Content{mcp.NewTextContent(said)}, nil, bounds{}); got != want {
			t.Errorf("%s: %q", said, got)
		}
	}
}

// A long text costs no more than its ends, where the hint still is.
func TestHintOfALongText(t *testing.T) {
	long := strings.Repeat("fork(", 1<<20)
	if n := len(ends(long)); n > 2*maxHinted+1 {
		t.Errorf("%d bytes are looked through", n)
	}
	b := bounds{processes: 100}
	if hint := b.roomHint(long); hint != "" {
		t.Error(hint)
	}
	for _, text := range []string{"fork: Resource temporarily unavailable\n" + long, long + "\nRuntimeError: can't start new thread"} {
		if b.roomHint(text) == "" {
			t.Error("no hint")
		}
	}
}
