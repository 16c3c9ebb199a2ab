package words

import (
	"strconv"
	"strings"
)

// Name is a file's name, which may hold anything, as a part of a line: as it is where all of it can be seen, else quoted
// and with escapes, so that it forges no other line and turns none around.
func Name(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) && strings.ToValidUTF8(name, "") == name {
		return name
	}
	return strconv.Quote(name)
}
