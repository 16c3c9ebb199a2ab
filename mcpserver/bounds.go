package mcpserver

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"cellblock/images/packages"
	"cellblock/internal/words"
	"cellblock/sessions"
)

// bounds are what a kernel may take, in bytes, for hints that name it; 0 is no limit. Its network is among them.
type bounds struct {
	memory, workspace, tmp, file int64
	// processes bounds those of all cells of a session, and their threads.
	processes int64
	network   network
	// writable are the folders of the host that it may write to, as far as that lets its user.
	writable []string
	// manager is the one whose packages the kernel's language has.
	manager packages.Manager
}

// bounds are those of a session that is made of a choice.
func (s *service) bounds(c sessions.Choice) bounds {
	cfg := s.Sessions.Config()
	profile := cfg.Profiles[c.Profile]
	l := profile.Limits
	b := bounds{
		memory: l.Memory, workspace: max(cfg.WorkspaceBytes, 0), tmp: l.Tmp, file: l.FileSize, processes: l.PIDs,
		network: networkOf(cfg, c.Profile), manager: packages.ManagerOf(c.Language),
	}
	b.network.images = s.Images != nil && slices.Contains(s.Toolsets, ToolsetImages)
	b.network.host = s.onHost()
	for _, m := range profile.Mounts {
		if m.Writable {
			b.writable = append(b.writable, m.Target)
		}
	}
	return b
}

// boundsFor are bounds for hints to a caller, whom they name no profile that he may not use.
func (s *service) boundsFor(ctx context.Context, c sessions.Choice) bounds {
	b, permits := s.bounds(c), s.permit(ctx)
	b.network.elsewhere = slices.DeleteFunc(b.network.elsewhere, func(profile string) bool { return permits(profile) != nil })
	return b
}

// boundsForAll are bounds for hints that whoever sees a session may read: they name no profile.
func (s *service) boundsForAll(c sessions.Choice) bounds {
	b := s.bounds(c)
	b.network.elsewhere = nil
	return b
}

// deniedHint says whose a folder is that a kernel may write to, where its user may not do what it has tried.
func (b bounds) deniedHint(text string) string {
	for _, folder := range b.writable {
		if strings.Contains(text, "'"+folder+"'") || strings.Contains(text, "'"+folder+"/") {
			return folder + " is a folder of the server's host, whose permissions keep the kernels' user (kernel_uid) from this: its operator can change them."
		}
	}
	return ""
}

// readOnly is what programs say of a file that they cannot write because of where it is, with its name, and readOnlyNode what Node says.
var (
	readOnly     = regexp.MustCompile(`(?m)Read-only file system: '([^'\n]*)'|'([^'\n]*)': Read-only file system\r?$|^bash: (?:line \d+: )?([^:\n]+): Read-only file system\r?$`)
	readOnlyNode = regexp.MustCompile(`EROFS: read-only file system, \w+ '([^'\n]*)'`)
)

// writableHint says where a kernel can write, where a text tells that it cannot. A workspace that cannot be written is on a disk that is broken,
// or was mounted anew.
func (b bounds) writableHint(text string) string {
	for _, said := range []*regexp.Regexp{readOnly, readOnlyNode} {
		if m := said.FindStringSubmatch(text); m != nil {
			if file := cmp.Or(m[1:]...); !strings.HasPrefix(file, "/") || strings.HasPrefix(file, "/workspace/") {
				return "If this is below /workspace, its disk can only be read by now: the server's operator must see to that. /tmp can be written."
			}
		}
	}
	folders := append([]string{"the working directory", "/tmp"}, b.writable...)
	last := len(folders) - 1
	return "Only " + strings.Join(folders[:last], ", ") + " and " + folders[last] + " can be written."
}

// folderHint says how Python, or Node, makes a folder that is not there, if it can be made.
func (b bounds) folderHint(folder string, python bool) string {
	within := func(place string) bool { return folder == place || strings.HasPrefix(folder, place+"/") }
	switch {
	case strings.HasPrefix(folder, "/") && !slices.ContainsFunc(append([]string{"/workspace", "/tmp"}, b.writable...), within):
		return b.writableHint("")
	case python:
		return "Make the folder first: import os; os.makedirs('" + folder + "', exist_ok=True)."
	}
	return "Make the folder first: fs.mkdirSync('" + folder + "', {recursive: true})."
}

// overQuota, diskFull and tooLarge are what programs say that could not write for lack of room, in Node in small letters. It stands behind
// a colon or a number, in HDF5 in quotes behind what it is, and little stands behind it: a sentence about a full disk tells of no failure.
var overQuota, diskFull, tooLarge = unwritten("disk quota exceeded"), unwritten("no space left on device"), unwritten("file too large")

func unwritten(why string) *regexp.Regexp {
	return regexp.MustCompile(`(?mi)(?:[\]:] |error message = ')` + why + `(?:\r?$|\\n|'?, |: ['"/]| \(os error )`)
}

// spaceHint says what to do where a text tells that something could not be written for lack of room. XFS calls a quota that
// is used up a full disk.
func (b bounds) spaceHint(text string) string {
	const clear = ": delete files that are not needed."
	switch {
	case b.workspace > 0 && overQuota.MatchString(text):
		return "The workspace may hold " + words.Bytes(b.workspace) + clear
	case diskFull.MatchString(text):
		var places []string
		if b.workspace > 0 {
			places = append(places, "the workspace may hold "+words.Bytes(b.workspace))
		}
		if b.tmp > 0 {
			places = append(places, "/tmp may hold "+words.Bytes(b.tmp))
		}
		if len(places) == 0 {
			return "The disk is full" + clear
		}
		return sentence(strings.Join(places, ", ")) + clear
	case b.file > 0 && tooLarge.MatchString(text):
		return "One file may have " + words.Bytes(b.file) + " at most: write several."
	}
	return ""
}

// noProcess is what programs print that cannot start another process or thread: Python, Bash, Node, R, and libraries of threads.
var noProcess = regexp.MustCompile(`(?m)(?:^|Error: )can't start new thread\s*$|` + // Python
	`fork(?:_exec|pty)?\((?s:.{0,400})BlockingIOError: \[Errno 11\]|` + // Python, where it prints the error
	`\bspawn(?:Sync)? \S+ EAGAIN\b|^(?:Error: )?EAGAIN$|` + // Node: a program, a worker
	`(?i:\b(?:fork|popen)\b[^\n]{0,80}Resource temporarily unavailable)|` + // Bash, R, git, make
	`cannot (?:popen|open pipe\(\)) [^\n]{0,80}Cannot allocate memory|` + // R, of which the C library makes that of it
	`^(?:\S*/)?sh: \d+: Cannot fork\s*$|unable to fork, possible reason|` +
	`pthread_create failed.*: Resource temporarily unavailable|ThreadPoolBuildError[^\n]*code: 11\b|` + // numpy, polars
	`failed to create new OS thread \(have |unable to create (?:new )?native thread`) // Go, Java

// processHint says what to do where no further process or thread could be started. Where programs start others without end, as a fork
// bomb does, a cell can end none of them.
func (b bounds) processHint() string {
	if b.processes == 0 {
		return ""
	}
	return "A session may have " + words.Thousands(b.processes) + " processes and threads at once: start fewer, and end those that are not needed. " +
		"Where nothing can be started any more, restart_session ends them all; variables are lost, files are kept."
}

// maxHinted is how much of each end of a text is looked through for a hint, in bytes: an error's may be megabytes, and some patterns
// take microseconds for each byte.
const maxHinted = 8 << 10

// ends is a text without what is between its ends, if that is much.
func ends(text string) string {
	if len(text) <= 2*maxHinted {
		return text
	}
	return text[:maxHinted] + "\n" + text[len(text)-maxHinted:]
}

// roomHint says what to do where a text tells of no room for what it tried, on a disk or among the processes.
func (b bounds) roomHint(text string) string {
	text = ends(text)
	if noProcess.MatchString(text) {
		return b.processHint()
	}
	return b.spaceHint(text)
}
