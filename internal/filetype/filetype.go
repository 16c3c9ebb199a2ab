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

// LooksLikeText tells whether a file with that head is a text in UTF-8.
func LooksLikeText(head []byte) bool {
	if len(head) == Sniffed { // the last character may not be whole
		for cut := 0; cut < utf8.UTFMax && !utf8.Valid(head); cut++ {
			head = head[:len(head)-1]
		}
	}
	return IsText(head)
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
