//go:build linux

package chaos

import (
	"fmt"
	"regexp"
	"strings"
)

// body is what a cell does between its first and its last line, and what it prints there.
type body struct {
	name, code string
	prints     func(token string) string
}

func silent(name, code string) body { return body{name, code, func(string) string { return "" }} }

var (
	quiet = silent("quiet", "import time; time.sleep(0.7)")
	steps = body{"steps", "import time\nfor i in range(8): print('TOKEN step', i, flush=True); time.sleep(0.1)", numbered("step", 8)}
	// many is what must be there once and in order, whatever becomes of the server meanwhile.
	many = body{"many", "import time\nfor i in range(10_000):\n    print('TOKEN line', i, flush=True)\n    if i % 100 == 0: time.sleep(0.01)",
		numbered("line", 10_000)}
	// files lists what the workspace holds, and what of it does not hold what was written.
	files = silent("files", "import os; found = sorted(f for f in os.listdir() if f.startswith('T-'))\n"+
		"print(*found, sep=','); print([f for f in found if open(f).read() not in ('', f)])")
	killed  = silent("killed", "import os, time; time.sleep(0.3); os.kill(os.getpid(), 9)")
	greedy  = silent("greedy", "hoard = [bytearray(16 << 20) for _ in range(40)]")
	dieSoon = silent("dies soon", "import os, threading; threading.Timer(0.4, lambda: os.kill(os.getpid(), 9)).start()")
)

func numbered(word string, n int) func(string) string {
	return func(token string) string {
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, "%s %s %d\n", token, word, i)
		}
		return lines.String()
	}
}

// cell is one cell of a session, and what is known of it once it has ended.
type cell struct {
	token  string
	body   body
	number int    // in its session; 0: not known
	text   string // of its result, as it was acknowledged
	// answered: its own call brought the result.
	answered bool
}

// code is the cell's: it leaves a file, counts, and says both in its first line. Its first line names its token.
func (c *cell) code(diskFull bool) string {
	content := "write('TOKEN')"
	if diskFull {
		content = "close()"
	}
	return strings.ReplaceAll("open('TOKEN', 'w')."+content+"\nn = globals().get('n', 0) + 1; print(f'<TOKEN #{n}>', flush=True)\n"+
		c.body.code+"\nprint('</TOKEN>')", "TOKEN", c.token)
}

func (c *cell) head(n int) string { return fmt.Sprintf("<%s #%d>", c.token, n) }

// shows tells whether text is all that the cell prints as its kernel's n-th. What files prints is looked at elsewhere.
func (c *cell) shows(n int, text string) bool {
	tail := "</" + c.token + ">"
	text = strings.TrimRight(text, "\n")
	if c.body.name == files.name {
		return strings.HasPrefix(text, c.head(n)+"\n") && strings.HasSuffix(text, "\n"+tail)
	}
	return text == c.head(n)+"\n"+c.body.prints(c.token)+tail
}

// unsaved is in the result of a cell that a killed server takes along.
const unsaved = "kept in memory only"

var passing = regexp.MustCompile(`(?m)^Note: this session's kernel stops .*\n?| ?Note: this cell is ` + unsaved + `: [^\n]*?\.(\n|$)`)

// lasting is what of a result's text must be the same whenever it is read.
func lasting(text string) string {
	return strings.TrimSpace(passing.ReplaceAllString(text, ""))
}
