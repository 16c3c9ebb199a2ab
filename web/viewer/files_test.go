package viewer

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cellblock/sessions/files"
)

// A file goes in in parts, is listed, shown and fetched, and goes.
func TestFiles(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	to := "/s/s/upload?path=data%2Fa.csv&word=w&offset="
	b.want(200, "POST", to+"0", []byte("n,city\n"))
	b.want(409, "POST", to+"100", []byte("x"))
	b.want(400, "POST", to+"-1", []byte("x"))
	b.want(400, "POST", to+"7", bytes.Repeat([]byte("x"), maxPart+1))
	b.want(200, "POST", to+"7", []byte("1,Bern\n"))
	b.want(409, "POST", "/s/s/uploaded?path=data/a.csv", map[string]any{"word": "w", "size": 5})
	b.want(200, "POST", "/s/s/uploaded?path=data/a.csv", map[string]any{"word": "w", "size": 14})
	put(t, b, "s", "empty.txt", "")

	if got := b.want(200, "GET", "/s/s/files", nil); !strings.Contains(got, `data-open="data"`) || strings.Contains(got, "a.csv") {
		t.Error(got)
	}
	if got := b.want(200, "GET", "/s/s/files?path=data", nil); !strings.Contains(got, `data-preview="data/a.csv"`) || !strings.Contains(got, "14 bytes") {
		t.Error(got)
	}
	if got := b.want(200, "GET", "/s/s/preview?path=data/a.csv", nil); !strings.Contains(got, `<th scope="col">city</th>`) || !strings.Contains(got, `<td>Bern</td>`) {
		t.Error(got)
	}
	w := b.send("GET", "/s/s/download?path=data/a.csv", nil)
	if h := w.Header(); w.Body.String() != "n,city\n1,Bern\n" || h.Get("Content-Disposition") != "attachment; filename=a.csv" ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%v %q", h, w.Body)
	}
	for _, path := range []string{"../x", "/etc/passwd", "a\x00b"} {
		q := "?path=" + url.QueryEscape(path)
		for _, at := range []string{"files", "preview", "picture", "download"} {
			b.want(400, "GET", "/s/s/"+at+q, nil)
		}
		b.want(400, "POST", "/s/s/upload"+q+"&word=w&offset=0", []byte("x"))
		b.want(400, "POST", "/s/s/delete"+q, map[string]any{})
	}
	if w := b.send("POST", "/s/s/delete?path=data", map[string]any{}); w.Code < 400 {
		t.Errorf("a folder with files went without being asked for: %s", w.Body)
	}
	b.want(200, "POST", "/s/s/delete?path=data", map[string]any{"recursive": true})
	b.want(404, "GET", "/s/s/download?path=data/a.csv", nil)
}

// Names and contents are never more than text, whatever they look like.
func TestHostileFiles(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	const evil = `"><img src=x onerror=alert(1)><script>alert(2)<`
	names := []string{evil + ".txt", evil + ".csv", evil + ".md", evil + ".json", evil + ".svg", evil + ".html"}
	for _, name := range names {
		put(t, b, "s", name, "<script>alert(3)</script><img src=x onerror=alert(4)>\n")
		for _, at := range []string{"files?path=.", "preview?path=" + url.QueryEscape(name)} {
			if got := b.want(200, "GET", "/s/s/"+at, nil); strings.Contains(got, "<script") || strings.Contains(got, "<img src=x") {
				t.Errorf("%s of %s:\n%s", at, name, got)
			}
		}
		w := b.send("GET", "/s/s/download?path="+url.QueryEscape(name), nil)
		if kind, how := w.Header().Get("Content-Type"), w.Header().Get("Content-Disposition"); w.Code != 200 || kind != "application/octet-stream" || !strings.HasPrefix(how, "attachment") {
			t.Errorf("%d as %s, %s", w.Code, kind, how)
		}
	}
	put(t, b, "s", "page.png", "<html><script>alert(1)</script>")
	b.want(400, "GET", "/s/s/picture?path=page.png", nil)
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	put(t, b, "s", "dot.txt", dot.String())
	put(t, b, "s", "a.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	for path, kind := range map[string]string{"dot.txt": "image/png", "a.svg": "image/svg+xml"} {
		h := b.send("GET", "/s/s/picture?path="+path, nil).Header()
		if h.Get("Content-Type") != kind || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v", path, h)
		}
		if got := b.want(200, "GET", "/s/s/preview?path="+path, nil); !strings.Contains(got, "<img src=\"/s/s/picture?path="+path) {
			t.Error(got)
		}
	}
}

// Of what is large a beginning is shown, and it is said so.
func TestPreviewIsBounded(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	put(t, b, "s", "long.txt", strings.Repeat("0123456789abcde\n", 2*maxPreview/16))
	if got := b.want(200, "GET", "/s/s/preview?path=long.txt", nil); len(got) > 2*maxPreview || !strings.Contains(got, "The first 256 KiB are shown") {
		t.Errorf("%d bytes", len(got))
	}
	put(t, b, "s", "wide.csv", strings.Repeat(strings.Repeat("v,", 2*maxColumns)+"v\n", 2*maxRows))
	got := b.want(200, "GET", "/s/s/preview?path=wide.csv", nil)
	if n := strings.Count(got, "<td>v</td>"); n != maxRows*maxColumns || !strings.Contains(got, "There are more rows") {
		t.Errorf("%d fields", n)
	}
	put(t, b, "s", "bytes.bin", "\x00\x01\xff")
	if got := b.want(200, "GET", "/s/s/preview?path=bytes.bin", nil); !strings.Contains(got, "neither text nor an image") {
		t.Error(got)
	}
}

// Texts of other programs are shown as texts, and it is said what they were taken for; what has nothing in it is said to be empty.
func TestPreviewOfOtherEncodings(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	for i, tt := range []struct{ content, shown, said string }{
		{"city;\x80\nZ\xfcrich;1\n", `<th scope="col" class="number">€</th></tr></thead><tbody><tr><th scope="row">1</th><td>Zürich</td>`, "Read as latin-1."},
		{"\xff\xfec\x00\n\x00\xfc\x00", `<th scope="col">c</th></tr></thead><tbody><tr><th scope="row">1</th><td>ü</td>`, "Read as utf-16."},
		{"\x00c\x00\n\x00\xfc\x00\n", `<td>ü</td>`, "Read as utf-16-be."},
		{"\ufeffcity\nBern\n", `<th scope="col">city</th>`, ""},
		{"", "The file is empty.", ""},
		{"PK\x03\x04\x00\x00\xfe", "neither text nor an image", ""},
	} {
		name := fmt.Sprintf("%d.csv", i)
		put(t, b, "s", name, tt.content)
		got := b.want(200, "GET", "/s/s/preview?path="+name, nil)
		if !strings.Contains(got, tt.shown) || !strings.Contains(got, tt.said) || strings.Contains(got, "Read as") != (tt.said != "") {
			t.Errorf("%q is shown as\n%s", tt.content, got)
		}
	}
}

// Numbers stand at the right, where nothing of a column is anything else.
func TestNumbersOfATable(t *testing.T) {
	table := tableOf("day;n;part;much;code;none;mixed\n2025-01-01;-1;0,5;1,234.5;A7;;3\n2025-01-02;NaN;1e-3;12 %;7;NA;three\n2025-01-03;\n", "text/csv")
	var got []string
	for i, name := range table.Head {
		if table.Number(i) {
			got = append(got, name)
		}
	}
	if want := []string{"n", "part", "much"}; !slices.Equal(got, want) || table.Number(99) {
		t.Errorf("numbers are in %q, not in %q", got, want)
	}
	view := previewView{Entry: files.Entry{Path: "a.csv", Size: 14}}
	view.show([]byte("city,n\nBern,1\n"))
	w := httptest.NewRecorder()
	if err := writeFragment(w, "preview", view); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`<th scope="col">city</th><th scope="col" class="number">n</th>`, `<td>Bern</td><td class="number">1</td>`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("there is no %s in\n%s", part, w.Body)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add("a,b\n1,2\n", true)
	f.Add("a;b\n\"1", true)
	f.Add("a\tb", false)
	f.Fuzz(func(t *testing.T, source string, commas bool) {
		p := previewView{}
		p.Path, p.Size = "x.tsv", int64(len(source))
		if commas {
			p.Path = "x.csv"
		}
		p.show([]byte(source))
		if p.Table == nil {
			return
		}
		if len(p.Table.Rows) > maxRows || len(p.Table.Head) > maxColumns {
			t.Errorf("%d rows of %d", len(p.Table.Rows), len(p.Table.Head))
		}
		for _, row := range append(p.Table.Rows, p.Table.Head) {
			for _, field := range row {
				if len(field) > maxField+len("…") || !utf8.ValidString(field) {
					t.Errorf("%q", field)
				}
			}
		}
	})
}

// Names with numbers are in the order of these, and what is not listed at once is counted, and listed when it is asked for.
func TestManyFiles(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", all...)
	p.ran("ann", "many", "x")
	for i := 1; i <= 12; i++ {
		put(t, b, "many", fmt.Sprintf("file%d.txt", i), "x")
	}
	html := b.want(200, "GET", "/s/many/files", nil)
	if two, ten := strings.Index(html, `data-name="file2.txt"`), strings.Index(html, `data-name="file10.txt"`); two < 0 || ten < two {
		t.Errorf("file2 is at %d, file10 at %d", two, ten)
	}
	for i := range 600 {
		put(t, b, "many", fmt.Sprintf("more/%d", i), "")
	}
	html = b.want(200, "GET", "/s/many/files?path=more", nil)
	if n := strings.Count(html, "<li"); n != 500 || !strings.Contains(html, "100 more names") || !strings.Contains(html, `data-most="1000"`) || !strings.Contains(html, `data-name="499"`) {
		t.Errorf("%d are listed: …%.300s", n, html[max(0, len(html)-300):])
	}
	html = b.want(200, "GET", "/s/many/files?path=more&most=1000", nil)
	if n := strings.Count(html, "<li"); n != 600 || strings.Contains(html, "data-most") {
		t.Errorf("then %d are listed", n)
	}
}

func TestNatural(t *testing.T) {
	sorted := []string{"", "1", "02", "2a", "10", "a", "a1b2", "a1b10", "a2", "b", "b00", "b0001"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := natural(a, b); (got < 0) != (i < j) && a != b {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}
