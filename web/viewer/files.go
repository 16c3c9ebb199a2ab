package viewer

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/filetype"
	"cellblock/sessions/files"
)

const (
	// pageFiles is how many files of one folder are listed, and how many more each time that more are asked for; maxListed are all
	// that can be.
	pageFiles, maxListed = 500, 20_000
	// maxPart bounds one part of a file that is sent, in bytes.
	maxPart = 4 << 20
)

func (v *Viewer) fileRoutes() []route {
	return []route{
		{pattern: "GET /s/{id}/files", scope: scopeFilesRead, handle: v.listFiles},
		{pattern: "GET /s/{id}/preview", scope: scopeFilesRead, reads: "preview_file", handle: v.preview},
		{pattern: "GET /s/{id}/picture", scope: scopeFilesRead, reads: "show_picture", handle: v.picture},
		{pattern: "GET /s/{id}/download", scope: scopeFilesRead, reads: "download_file", handle: v.download},
		{pattern: "POST /s/{id}/upload", scope: scopeFilesWrite, body: maxPart, handle: v.uploadPart},
		{pattern: "POST /s/{id}/uploaded", scope: scopeFilesWrite, action: "write_file", handle: v.uploaded},
		{pattern: "POST /s/{id}/delete", scope: scopeFilesWrite, action: "delete_file", handle: v.deleteFile},
	}
}

// fileRow is one thing in a folder.
type fileRow struct {
	files.Entry
	Name string
}

// folderView is a folder as the panel shows it.
type folderView struct {
	ID, Path string
	// Above are the folders that it is in, from the workspace down.
	Above []fileRow
	Rows  []fileRow
	// More is how many there are besides. MayMore tells that more can be listed, up to Next.
	More, Next int
	MayMore    bool
	Partial    bool
	MayWrite   bool
}

// listFiles shows one folder of a session's workspace.
func (v *Viewer) listFiles(w http.ResponseWriter, r *http.Request, who visit) error {
	at, err := files.Clean(cmp.Or(r.URL.Query().Get("path"), "."))
	if err != nil {
		return err
	}
	listing, err := v.Sessions.ListFiles(r.Context(), who.owner, r.PathValue("id"), files.Query{Path: at, Flat: true, Most: maxListed})
	if err != nil {
		return err
	}
	f := folderView{ID: r.PathValue("id"), Path: at, Partial: listing.Partial, MayWrite: who.can(scopeFilesWrite)}
	for _, e := range listing.Entries {
		f.Rows = append(f.Rows, fileRow{e, path.Base(e.Path)})
	}
	slices.SortFunc(f.Rows, func(a, b fileRow) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), natural(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	most := max(pageFiles, atoi(r.URL.Query().Get("most")))
	f.Next = most + pageFiles
	f.MayMore = len(f.Rows) > most
	f.Rows = f.Rows[:min(len(f.Rows), most)]
	f.More = listing.Files + listing.Folders - len(f.Rows)
	for dir := at; dir != "."; dir = path.Dir(dir) {
		f.Above = append([]fileRow{{files.Entry{Path: dir, Kind: files.Dir}, path.Base(dir)}}, f.Above...)
	}
	return writeFragment(w, "folder", f)
}

// natural compares names as people do: 2 comes before 10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := firstPart(a), firstPart(b)
		a, b = a[len(x):], b[len(y):]
		if isDigit(x[0]) && isDigit(y[0]) {
			m, n := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
				return c
			}
		} else if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b)
}

// firstPart is the number that a name begins with, or else its first byte.
func firstPart(name string) string {
	n := 0
	for n < len(name) && isDigit(name[n]) {
		n++
	}
	return name[:max(1, n)]
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// rank puts folders first.
func rank(f fileRow) int {
	if f.Kind == files.Dir {
		return 0
	}
	return 1
}

// picture answers with an image of a workspace, to be shown. What is no image is not: nothing of a workspace is ever a page.
func (v *Viewer) picture(w http.ResponseWriter, r *http.Request, who visit) error {
	f, e, err := v.Sessions.OpenFile(r.Context(), who.owner, r.PathValue("id"), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := headOf(f)
	if err != nil {
		return err
	}
	kind := pictureType(e.Path, head)
	if kind == "" {
		return fault.New(fault.Invalid, "%q is no image", e.Path).WithHint("Download it.")
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	h.Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", e.Modified, f)
	return nil
}

// pictureType is the type of an image that a browser shows; empty for anything else. An SVG runs no script in an <img>.
func pictureType(name string, head []byte) string {
	kind := filetype.Of(name, head)
	sniffed, _, _ := strings.Cut(http.DetectContentType(head), ";")
	switch {
	case slices.Contains(filetype.Images, sniffed):
		return sniffed
	case kind == "image/svg+xml" && filetype.LooksLikeText(head):
		return kind
	}
	return ""
}

// headOf reads the beginning of a file, and goes back to it.
func headOf(f io.ReadSeeker) ([]byte, error) {
	head := make([]byte, filetype.Sniffed)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, files.Pathless(err)
	}
	_, err = f.Seek(0, io.SeekStart)
	return head[:n], err
}

// download answers with a file, to keep.
func (v *Viewer) download(w http.ResponseWriter, r *http.Request, who visit) error {
	f, e, err := v.Sessions.OpenFile(r.Context(), who.owner, r.PathValue("id"), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	defer f.Close()
	attach(w, path.Base(e.Path))
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", e.Modified, f)
	return nil
}

// uploadPart takes a part of a file that comes under a word of its sender's.
func (v *Viewer) uploadPart(w http.ResponseWriter, r *http.Request, who visit) error {
	offset, err := number(r, "offset")
	if err != nil {
		return err
	}
	part, err := io.ReadAll(r.Body)
	if err != nil {
		return bodyError(err)
	}
	q := r.URL.Query()
	size, err := v.Sessions.AddToFile(r.Context(), who.owner, r.PathValue("id"), q.Get("path"), q.Get("word"), offset, part)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"size": size})
}

// uploaded puts a file in its place of which all parts have come.
func (v *Viewer) uploaded(w http.ResponseWriter, r *http.Request, who visit) error {
	var file struct {
		Word string
		Size int64
	}
	if err := readJSON(r, &file); err != nil {
		return err
	}
	e, created, err := v.Sessions.FinishFile(r.Context(), who.owner, r.PathValue("id"), r.URL.Query().Get("path"), file.Word, file.Size)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"path": e.Path, "size": e.Size, "new": created})
}

// deleteFile deletes a file, or a folder with all that is in it if that is said.
func (v *Viewer) deleteFile(w http.ResponseWriter, r *http.Request, who visit) error {
	var how struct{ Recursive bool }
	if err := readJSON(r, &how); err != nil {
		return err
	}
	e, err := v.Sessions.DeleteFile(r.Context(), who.owner, r.PathValue("id"), r.URL.Query().Get("path"), how.Recursive)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"path": e.Path})
}
