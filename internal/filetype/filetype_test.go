package filetype

import (
	"mime"
	"strings"
	"testing"
)

func TestLooksLikeText(t *testing.T) {
	long := strings.Repeat("é", Sniffed)
	for content, want := range map[string]bool{"": true, "a\n": true, "a\x00": false, "\xff": false, long[:Sniffed]: true, strings.Repeat("\a", 300): false, strings.Repeat("N\bN", 100): true, "\x1b[31mred\x1b[0m\b\n": true, "x" + long[:Sniffed-1]: true, "\xff" + long[:Sniffed-1]: false} {
		if got := LooksLikeText([]byte(content)); got != want {
			t.Errorf("%.10q: %v", content, got)
		}
	}
}

func TestEncoding(t *testing.T) {
	for content, want := range map[string]string{
		"": "", "a": "", "Zürich\n": "", "Z\xfcrich\n": "latin-1", "\xff\xfea\x00b\x00": "utf-16", "\xfe\xff\x00a\x00b": "utf-16",
		"a\x00b\x00\n\x00": "utf-16-le", "\x00a\x00b": "utf-16-be", "\x00\x00\x00\x00": "", "\xff\x01\x02": "", "PK\x03\x04\x00\x00\xfe": "",
		strings.Repeat("\a", 300): "", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n": "", "N\bN\bZ\xfcrich\n": "latin-1",
	} {
		if got := Encoding([]byte(content)); got != want {
			t.Errorf("%q: %q, want %q", content, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	for _, tt := range []struct{ name, head, want string }{
		{"a.CSV", "text", "text/csv"},
		{"a.parquet", "PAR1", "application/vnd.apache.parquet"},
		{"x", "text", "text/plain"},
		{"a.txt", "\x89PNG\r\n\x1a\n", "image/png"},
		{"a.png", "<html>", "image/png"}, // what it is called; who shows images looks at what they are
	} {
		if got := Of(tt.name, []byte(tt.head)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Whatever a file holds, its type can be sent as one, and a text in one encoding is none in another.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{"", "a", "\xff\xfea\x00b\x00", "\x89PNG\r\n\x1a\n", "Z\xfcrich\n", "%PDF-1.7\n", "\x00a\x00b"} {
		f.Add("x.png", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, name string, head []byte) {
		if _, _, err := mime.ParseMediaType(Of(name, head)); err != nil {
			t.Errorf("%q, %q: %v", name, head, err)
		}
		if encoding := Encoding(head); encoding != "" && LooksLikeText(head) {
			t.Errorf("%q is text in UTF-8, and in %s", head, encoding)
		}
	})
}
