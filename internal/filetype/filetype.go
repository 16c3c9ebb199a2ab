// Package filetype says what a file is, by its name and its beginning, the same on every host.
package filetype

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sniffed is how much of a file decides what it is, in bytes.
const Sniffed = 8 << 10

// Images are the types of images that models and browsers show, the best first.
var Images = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// Of returns a file's MIME type: of an image what it is, of others what it is called. The head is its first Sniffed bytes.
func Of(name string, head []byte) string {
	found, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	if slices.Contains(Images, found) {
		return found
	}
	if known := Named(name); known != "" {
		return known
	}
	return found
}

// Named returns the type that a file's name stands for; empty where it stands for none.
func Named(name string) string { return byEnding[strings.ToLower(path.Ext(name))] }

// LooksLikeText tells whether a file with that head is a text in UTF-8, of which most is not control characters.
func LooksLikeText(head []byte) bool {
	if mostlyControls(head) {
		return false
	}
	if len(head) == Sniffed { // the last character may not be whole
		for cut := 0; cut < utf8.UTFMax && !utf8.Valid(head); cut++ {
			head = head[:len(head)-1]
		}
	}
	return IsText(head)
}

// mostlyControls tells whether a third of a content or more is control characters that no text has many of.
func mostlyControls(content []byte) bool {
	n := 0
	for _, c := range content {
		if isControl(c) {
			n++
		}
	}
	return len(content) > 0 && 3*n >= len(content)
}

// Encoding returns in which encoding other than UTF-8 a file with that head seems to be a text, as Python calls it; empty where it seems
// to be none.
func Encoding(head []byte) string {
	switch {
	case LooksLikeText(head), len(head) < 2, isFormat(head):
		return ""
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return "utf-16"
	case alternates(head, 1):
		return "utf-16-le"
	case alternates(head, 0):
		return "utf-16-be"
	case !slices.ContainsFunc(head, isControl):
		return "latin-1"
	}
	return ""
}

// isFormat tells whether a file with that head is in a format for programs, such as PDF, that may have no control characters in its head.
func isFormat(head []byte) bool {
	found := http.DetectContentType(head)
	return strings.HasPrefix(found, "application/") && found != "application/octet-stream"
}

// alternates tells whether half of the bytes at even places, or at odd ones (from 1), are zero, and the others are text.
func alternates(head []byte, from int) bool {
	if len(head)%2 != 0 {
		return false
	}
	zeros := 0
	for i, c := range head {
		switch {
		case i%2 != from && isControl(c):
			return false
		case i%2 == from && c == 0:
			zeros++
		}
	}
	return 4*zeros > len(head)
}

// isControl tells whether a byte is a control character of which a text has few, or none. Manual pages are full of backspaces.
func isControl(c byte) bool {
	return c < ' ' && !strings.ContainsRune("\b\t\n\v\f\r\x1b", rune(c)) || c == 0x7f
}

// IsText tells whether content is a text in UTF-8.
func IsText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }

// byEnding are the types of endings that models' files have.
var byEnding = map[string]string{
	".csv": "text/csv", ".tsv": "text/tab-separated-values", ".md": "text/markdown", ".txt": "text/plain", ".log": "text/plain",
	".py": "text/x-python", ".r": "text/x-r", ".sh": "text/x-shellscript", ".ts": "text/x-typescript", ".js": "text/javascript",
	".json": "application/json", ".jsonl": "application/jsonl", ".ipynb": "application/x-ipynb+json", ".yaml": "application/yaml", ".yml": "application/yaml",
	".toml": "application/toml", ".parquet": "application/vnd.apache.parquet", ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".zip": "application/zip", ".gz": "application/gzip", ".pdf": "application/pdf", ".npy": "application/x-npy", ".pkl": "application/x-pickle",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml", ".html": "text/html", ".xml": "application/xml", ".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4",
}
