//go:build linux

package mcpserver

import (
	"strings"
	"testing"
)

// Values that nobody has printed stand in full lines where they are short, and otherwise as IPython has them.
func TestRealValues(t *testing.T) {
	w := newRealWorld(t)
	for _, tt := range []struct{ name, code, want string }{
		{"numbers", "list(range(5000))", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,\n 22, 23,"},
		{"more than are shown", "list(range(5000))", " 998,\n 999, ...]\n["},
		{"names", "tuple(f'column {i}' for i in range(9))", "('column 0', 'column 1', 'column 2', 'column 3', 'column 4', 'column 5',\n 'column 6', 'column 7', 'column 8')\n["},
		{"in others", "{'a': list(range(24)), 'b': [None]}", "{'a': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,\n  20, 21, 22, 23],\n 'b': [None]}\n["},
		{"as somebody wants them", "%precision 3\n[1 / 7] * 14", "[0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143, 0.143,\n 0.143, 0.143, 0.143]\n["},
		{"long", "['x' * 40] * 2", "['" + strings.Repeat("x", 40) + "',\n '" + strings.Repeat("x", 40) + "']\n["},
		{"of other kinds", "[[1, 2]] * 30", "[[1, 2],\n [1, 2],\n"},
		{"itself", "x = []\nx.append(x)\nx", "[[...]]\n["},
		{"a single one", "('x' * 80,)", "('" + strings.Repeat("x", 80) + "',)\n["},
		{"none", "[]", "[]\n["},
	} {
		t.Run(tt.name, func(t *testing.T) { w.run("v", tt.code).expect(t, false, tt.want) })
	}
}
