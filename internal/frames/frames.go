// Package frames tells the frames of IPython's tracebacks apart: a user's own, a library's, and those of the kernel's own program. All
// lines are without colours.
package frames

import (
	"regexp"
	"strconv"
)

var (
	// A frame begins with the place: "Cell In[1], line 3", "Input In [1], in <cell line: 3>()", "File x.py:2, in f(x)".
	begins  = regexp.MustCompile(`^ {0,2}(Cell In ?\[|Input In ?\[|File )`)
	library = regexp.MustCompile(`^ {0,2}File (<frozen|[^</~]|\S*/(site-packages|dist-packages|node_modules|lib/python[\d.]*)/)`)
	// Functions of the kernel's own program, which has no file: what input() and threads' work go through.
	kernel = regexp.MustCompile(`^ {0,2}File <string>:\d+, in (\S+\.)?(line_of_input|submit_in_cell|work_in|bootstrap_in_cell)\(`)
	rule   = regexp.MustCompile(`^-{20,}$`)
	// heading is what stands above the frames.
	heading = regexp.MustCompile(`^(\S+ +)?Traceback \(most recent call last\):?$`)
	// link is what stands between an exception and the one that it led to.
	link    = regexp.MustCompile(`^(The above exception was the direct cause|During handling of the above exception)`)
	counted = regexp.MustCompile(`^( {0,2}(?:Cell In ?\[|Input In ?\[|File <ipython-input-))(\d+)`)
)

// Begin tells whether a line is the first of a frame.
func Begin(line string) bool { return begins.MatchString(line) }

// Library tells whether the frame that begins with a line is in a library.
func Library(line string) bool { return library.MatchString(line) }

// Kernel tells whether the frame that begins with a line is in the kernel's own program, which is nobody's business.
func Kernel(line string) bool { return kernel.MatchString(line) }

// Ornament tells whether a line only says that a traceback begins.
func Ornament(line string) bool { return rule.MatchString(line) || heading.MatchString(line) }

// Link tells whether a line stands between an exception and the one that it led to.
func Link(line string) bool { return link.MatchString(line) }

// Renumbered writes the first line of a frame with another number of its cell, shift more than what it says: after a restart a
// kernel counts anew, and a session does not.
func Renumbered(line string, shift int) string {
	m := counted.FindStringSubmatch(line)
	if m == nil {
		return line
	}
	n, err := strconv.Atoi(m[2])
	if err != nil || n+shift < 1 {
		return line
	}
	return m[1] + strconv.Itoa(n+shift) + line[len(m[0]):]
}
