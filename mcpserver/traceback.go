package mcpserver

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cellblock/internal/frames"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver/terminal"
)

// Bounds of one error, in characters and frames.
const (
	maxMessage = 4000
	maxLine    = 600 // what a library quotes of the data is one line, and the ends of it say what is wrong
	maxFrames  = 20
)

// errorText writes an error for a reader who knows his own code: of each exception the user's frames with the line that
// was running, and the last frame, where it was raised. What lies between, in libraries, is counted. It understands
// IPython's tracebacks, where every frame is an element; other kernels' are kept as they are, within bounds. shift is what
// the session's number of a cell is more than its kernel's.
func errorText(e kernels.ExecError, shift int) string {
	t := traceback{shift: shift, begin: -1}
	for _, element := range e.Traceback {
		t.add(strings.Trim(terminal.Plain(element), "\n"))
	}
	t.endException()
	t.tellInner()
	text := strings.Join(t.lines, "\n")
	if said := cutMessage(strings.TrimSpace(terminal.Plain(e.Value))); text == "" || !strings.Contains(text, e.Name) && (said == "" || !strings.Contains(text, said)) {
		text = joinLines(text, cutMessage(strings.TrimSuffix(terminal.Plain(e.Name+": "+e.Value), ": ")))
	}
	return cutMiddle(cutLines(text), 4*maxMessage)
}

// cutLines shortens the lines of a text that are too long.
func cutLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = cutMiddle(line, maxLine)
	}
	return strings.Join(lines, "\n")
}

// cutMessage shortens a message that is too long, its lines first.
func cutMessage(text string) string {
	if len(text) > maxMessage {
		text = cutLines(text)
	}
	return cutMiddle(text, maxMessage)
}

// frame is one level of a traceback.
type frame struct {
	header string
	body   []string
	user   bool
}

// traceback collects the frames of one exception after the other.
type traceback struct {
	shift  int
	frames []frame
	lines  []string
	// begin is where the lines of the last exception begin, if all of its frames are a library's; else -1.
	begin int
	inner []string // messages of exceptions that a library dealt with
	magic string   // the cell magic that has run last, "%%bash"
}

var arrow = regexp.MustCompile(`^(-+> ?\d*|> ?\d+ )`) // no room for dashes before a long number

// add takes one element of a traceback.
func (t *traceback) add(element string) {
	lines := strings.Split(element, "\n")
	if frames.Begin(lines[0]) {
		t.addFrame(lines)
		return
	}
	lines = slices.DeleteFunc(lines, frames.Ornament)
	if len(lines) == 0 || strings.Join(lines, "") == "" {
		return
	}
	if strings.HasPrefix(lines[0], "    [... ") { // IPython has left out frames that repeat
		t.frames = append(t.frames, frame{header: strings.TrimSpace(lines[0]), user: true})
		return
	}
	t.message(lines)
}

// addFrame takes the lines of a frame. A syntax error's element goes on with its message, which is not indented.
func (t *traceback) addFrame(lines []string) {
	f := frame{header: frames.Renumbered(lines[0], t.shift), user: !frames.Library(lines[0])}
	if !f.user {
		f.header = withoutParameters(f.header)
	}
	end := 1
	for end < len(lines) && (lines[end] == "" || strings.HasPrefix(lines[end], " ") || arrow.MatchString(lines[end])) {
		end++
	}
	f.body = running(lines[1:end])
	if len(f.body) > 0 {
		var magic string
		f.body[0], magic = asMagic(f.body[0])
		t.magic = cmp.Or(magic, t.magic)
	}
	if !frames.Kernel(lines[0]) {
		t.frames = append(t.frames, f)
	}
	if end < len(lines) {
		t.message(lines[end:])
	}
}

// maxParameters is how many characters a library's function may have between its parentheses: what its parameters are called is of no
// use to its caller.
const maxParameters = 40

func withoutParameters(header string) string {
	name, parameters, ok := strings.Cut(header, "(")
	if !ok || len(parameters) <= maxParameters || !strings.HasSuffix(parameters, ")") {
		return header
	}
	return name + "(…)"
}

// running keeps of a frame's source only the line that was running, if one is marked; else all of it, the caret of a
// syntax error too.
func running(body []string) []string {
	body = slices.DeleteFunc(slices.Clone(body), func(l string) bool { return strings.TrimSpace(l) == "" })
	if i := slices.IndexFunc(body, arrow.MatchString); i >= 0 {
		return body[i : i+1]
	}
	return body[:min(len(body), 6)]
}

// message takes what is not a frame: the exception itself, or how it is linked to the next.
func (t *traceback) message(lines []string) {
	if len(t.frames) == 0 && t.begin >= 0 && frames.Link(lines[0]) {
		if len(t.inner) < maxFrames { // each is compared with all others
			t.inner = append(t.inner, t.lines[len(t.lines)-1])
		}
		t.lines, t.begin = t.lines[:t.begin], -1
		return
	}
	t.begin = -1
	if len(t.frames) > 0 && !slices.ContainsFunc(t.frames, isUser) {
		t.begin = len(t.lines)
	}
	t.endException()
	lines[0] = withoutScript(withoutColon(lines[0]), t.magic)
	t.lines = append(t.lines, cutMessage(strings.Join(lines, "\n")))
}

// withoutColon is a message's first line, without the colon of an exception that says nothing.
func withoutColon(line string) string {
	if name, only := strings.CutSuffix(strings.TrimRight(line, " "), ":"); only && !strings.Contains(name, " ") {
		return name
	}
	return line
}

// tellInner tells of the exceptions inside libraries: after the user's own frames, which say more to him. Libraries often quote
// the one that led to theirs.
func (t *traceback) tellInner() {
	for i, message := range t.inner {
		quotes := func(other string) bool { return strings.Contains(other, essence(message)) }
		if !slices.ContainsFunc(t.lines, quotes) && !slices.ContainsFunc(t.inner[i+1:], quotes) {
			t.lines = append(t.lines, "Before that, inside a library: "+message)
		}
	}
}

// essence is what others would quote of an exception's message: without the exception's name, unless it says too little then.
func essence(message string) string {
	_, said, _ := strings.Cut(message, ": ")
	if key := strings.HasPrefix(said, "'") && strings.HasSuffix(said, "'") && len(said) >= 6; key || len(said) >= 16 {
		return said
	}
	return message
}

func isUser(f frame) bool { return f.user }

// endException writes the frames that are kept of the exception whose message comes now.
func (t *traceback) endException() {
	kept := make([]bool, len(t.frames))
	for i, f := range t.frames {
		kept[i] = f.user || i == len(t.frames)-1
	}
	thin(kept)
	users := slices.ContainsFunc(t.frames, isUser)
	for i := 0; i < len(t.frames); {
		if kept[i] {
			t.lines = append(t.lines, strings.TrimSpace(t.frames[i].header))
			t.lines = append(t.lines, t.frames[i].body...)
			i++
			continue
		}
		first := i
		for i < len(t.frames) && !kept[i] {
			i++
		}
		if first == 0 && users {
			continue // what called the user's code
		}
		t.lines = append(t.lines, fmt.Sprintf("  … %s left out …", words.Count(int64(i-first), "inner frame")))
	}
	t.frames = nil
}

// thin drops the middle of more frames than anybody reads.
func thin(kept []bool) {
	var indices []int
	for i, k := range kept {
		if k {
			indices = append(indices, i)
		}
	}
	const head = maxFrames / 4
	for n, i := range indices {
		if n >= head && n < len(indices)-(maxFrames-head) {
			kept[i] = false
		}
	}
}
