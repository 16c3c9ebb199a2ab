package sessions

import (
	"strings"
	"unicode/utf8"

	"cellblock/internal/fault"
)

// ValidateCode returns an Invalid error that names the field and the rule when code cannot be a cell.
func ValidateCode(code string) error {
	switch {
	case len(code) > MaxCode:
		return fault.New(fault.Invalid, "code: %d bytes, at most %d (1 MiB) are allowed", len(code), MaxCode).
			WithHint("put large data into a file in the workspace and read it from there")
	case !utf8.ValidString(code):
		return fault.New(fault.Invalid, "code: not valid UTF-8 (first wrong byte at offset %d)", firstInvalid(code))
	case strings.IndexByte(code, 0) >= 0:
		return fault.New(fault.Invalid, "code: contains a NUL character (at offset %d), which no kernel can run",
			strings.IndexByte(code, 0)).WithHint(`write "\x00" inside a string literal instead`)
	case strings.TrimSpace(code) == "":
		return fault.New(fault.Invalid, "code: is empty").WithHint("send at least one statement or expression")
	}
	return nil
}

func firstInvalid(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
