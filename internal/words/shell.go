package words

import (
	"regexp"
	"strconv"
	"strings"
)

// bareWord is a text that is one word of a shell's as it is.
var bareWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Shell returns a text as one would type it as one word of a shell's, for people: "run.py", "'my script.py'". What cannot be seen is
// escaped: $'a\tb'.
func Shell(text string) string {
	switch {
	case bareWord.MatchString(text):
		return text
	case strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }):
		quoted := strings.ReplaceAll(strconv.Quote(text), `\"`, `"`)
		return "$'" + strings.ReplaceAll(quoted[1:len(quoted)-1], "'", `\'`) + "'"
	}
	return ShellQuoted(text)
}

// ShellQuoted returns a text as one word of a shell's, in which nothing is expanded.
func ShellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
