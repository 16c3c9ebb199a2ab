//go:build !race

// The race detector takes ten times as long for what is large, and finds nothing in it: all of it goes through one goroutine.

package render

import (
	"fmt"
	"html/template"
	"strings"
	"testing"

	"cellblock/kernels"
)

func TestUnracedBounds(t *testing.T) {
	long := strings.Repeat("\x1b[31mx\x1b[0m\x1b[C", maxText/4)
	many := make([]string, 5000)
	for i := range many {
		many[i] = "Cell In[1], line 1\n" + strings.Repeat("x", 1000)
	}
	for name, made := range map[string]template.HTML{
		"a stream": joined(Terminal(long)), "code": Code("python", strings.Repeat("x=1\n", maxText)), "Markdown": Markdown(strings.Repeat("# x\n", maxText)),
		"JSON": JSON([]byte("[" + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + strings.Repeat(",1", 100_000) + "]")), "a traceback": Error(kernels.ExecError{Traceback: many}, 0),
		"cursors": joined(Terminal(strings.Repeat("\x1b[159Cx\n", 100_000))), "one line": joined(Terminal(strings.Repeat("\x1b[1mx", 100_000))),
	} {
		if len(made) > 2*maxHTML {
			t.Errorf("%s became %d bytes", name, len(made))
		}
	}
	if lines := Terminal(strings.Repeat("x\n", 3*maxLines)); len(lines) != maxLines+1 {
		t.Errorf("%d lines", len(lines))
	}
	if made := JSON([]byte(fmt.Sprintf("[%s1]", strings.Repeat("1,", 10_000)))); !strings.Contains(string(made), "5,002 more") && !strings.Contains(string(made), " more</li>") {
		t.Errorf("nothing says what is missing of a long list: %.300s", made[len(made)-300:])
	}
}
