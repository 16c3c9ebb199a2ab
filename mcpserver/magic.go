package mcpserver

import (
	"regexp"
	"strings"
)

var (
	// cellMagic is what IPython makes of a cell such as "%%bash": one line, with all of the script in it.
	cellMagic = regexp.MustCompile(`get_ipython\(\)\.run_cell_magic\('(\w+)', '((?:[^'\\]|\\.)*)', .*`)
	// failedScript is how the error of such a script repeats it.
	failedScript = regexp.MustCompile(`^(CalledProcessError: Command )'b['"].*['"]'( (?:returned|died) )`)
)

// asMagic writes a line of code with a cell magic as the cell has it. It returns the magic's name, too, if there is one.
func asMagic(line string) (short, name string) {
	m := cellMagic.FindStringSubmatchIndex(line)
	if m == nil {
		return line, ""
	}
	name = "%%" + line[m[2]:m[3]]
	return strings.TrimRight(line[:m[0]]+name+" "+line[m[4]:m[5]], " "), name
}

// withoutScript takes from an error's message the script that a magic has run.
func withoutScript(message, magic string) string {
	if magic == "" {
		return message
	}
	return failedScript.ReplaceAllString(message, "${1}'"+magic+"'${2}")
}
