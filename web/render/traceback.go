package render

import (
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"cellblock/internal/frames"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// maxFrames bounds the frames of one error that are shown, half from the beginning and half from the end.
const maxFrames = 100

// Error is an error with its traceback: what happened first, then the frames. The user's own are open, those of libraries are folded,
// together where several follow each other. shift is what the session's numbers of cells are more than its kernel's.
func Error(e kernels.ExecError, shift int) template.HTML {
	var b strings.Builder
	b.WriteString(`<div class="error"><p class="error-name">` + headline(e) + `</p>`)
	t := trace{out: &b, shift: shift}
	if !slices.ContainsFunc(e.Traceback, func(element string) bool { return frames.Link(strings.Trim(element, "\n")) }) {
		t.said = bare(said(e))
	}
	elements := e.Traceback
	if len(elements) > maxFrames {
		left := len(elements) - maxFrames
		for _, element := range elements[:maxFrames/2] {
			t.add(element)
		}
		t.flush()
		b.WriteString(`<p class="remark">… ` + words.Count(int64(left), "frame") + ` left out …</p>`)
		elements = elements[len(elements)-maxFrames/2:]
	}
	for _, element := range elements {
		t.add(element)
	}
	t.flush()
	b.WriteString(`</div>`)
	return template.HTML(b.String())
}

// said is an error's name and message in a line. R calls every error ERROR, and begins the message with the word itself.
func said(e kernels.ExecError) string {
	if namesItself(e) {
		return message(e)
	}
	return e.Name + ": " + message(e)
}

// namesItself tells whether the error's name says nothing that the message does not begin with.
func namesItself(e kernels.ExecError) bool {
	return e.Name == "ERROR" && strings.HasPrefix(e.Value, "Error")
}

// headline is the error's name and message; of a long message the beginning, as the rest stands below the frames.
func headline(e kernels.ExecError) string {
	name, _ := clip(e.Name, 200)
	value, more := clip(strings.TrimRight(message(e), "\n"), 2000)
	if more != "" {
		value += "…"
	}
	lines := string(joined(terminalLines(value)))
	if namesItself(e) {
		return `<strong>Error</strong>` + strings.TrimPrefix(lines, "Error")
	}
	line := `<strong>` + html.EscapeString(name) + `</strong>`
	if lines != "" {
		line += `: ` + lines
	}
	return line
}

// ofCell is what Python adds to the message of a syntax error: the cell's own name for the compiler, which is told nowhere else.
var ofCell = regexp.MustCompile(` \(\d+\.py, line \d+\)$`)

// message is an error's message, without what the frames say better.
func message(e kernels.ExecError) string { return ofCell.ReplaceAllString(e.Value, "") }

// bare is the line of an exception, to be compared: one without a message may have a colon, or none.
func bare(line string) string { return strings.TrimRight(line, ": \n") }

// trace writes the elements of one traceback.
type trace struct {
	out   *strings.Builder
	shift int
	said  string // what the headline says, and need not be said again; empty where an exception led to others, which end with it
	// folded are the frames of libraries that follow each other.
	folded []string
	bytes  int
}

// add takes one element: a frame, the exception's message, or what stands around them. More text than anybody reads is left out.
func (t *trace) add(element string) {
	lines := terminalLines(strings.Trim(element, "\n"))
	plain := make([]string, len(lines))
	for i, l := range lines {
		plain[i] = untagged(l)
	}
	for len(lines) > 0 && (plain[0] == "" || frames.Ornament(plain[0])) {
		lines, plain = lines[1:], plain[1:]
	}
	if t.bytes += len(element); len(lines) == 0 || t.bytes > maxText || frames.Kernel(plain[0]) {
		return
	}
	if t.said != "" && bare(strings.Join(plain, "\n")) == t.said {
		return
	}
	if last := len(plain) - 1; t.said != "" && bare(plain[last]) == t.said { // a syntax error's frame goes on with it
		lines, plain = lines[:last], plain[:last]
	}
	if !frames.Begin(plain[0]) {
		t.flush()
		t.out.WriteString(`<pre class="error-message">` + string(joined(lines)) + `</pre>`)
		return
	}
	isLibrary := frames.Library(plain[0])
	open := " open"
	if isLibrary {
		open = ""
	} else {
		t.flush()
	}
	made := `<details class="frame-of-error"` + open + `><summary>` + html.EscapeString(frames.Renumbered(plain[0], t.shift)) +
		`</summary><pre tabindex="0">` + string(joined(lines[1:])) + `</pre></details>`
	if isLibrary {
		t.folded = append(t.folded, made)
		return
	}
	t.out.WriteString(made)
}

// flush writes the frames of libraries that were gathered.
func (t *trace) flush() {
	switch n := len(t.folded); n {
	case 0:
	case 1:
		t.out.WriteString(t.folded[0])
	default:
		t.out.WriteString(`<details class="frames-of-libraries"><summary>` + words.Count(int64(n), "frame") + ` in libraries</summary>` +
			strings.Join(t.folded, "") + `</details>`)
	}
	t.folded = nil
}

// untagged is a line of Terminal as text.
func untagged(line template.HTML) string {
	var b strings.Builder
	for rest := string(line); rest != ""; {
		before, tag, found := strings.Cut(rest, "<")
		b.WriteString(before)
		if !found {
			break
		}
		_, rest, _ = strings.Cut(tag, ">")
	}
	return html.UnescapeString(b.String())
}
