package viewer

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"

	"cellblock/internal/fault"
)

//go:embed assets
var assetFiles embed.FS

const assetPattern = "GET /assets/{digest}/{name}"

// assetDigest changes with any of the assets. It stands in their addresses before the name, so that modules which import each
// other by a relative name always get those of their own version.
var assetDigest = digestOf(assetFiles, "assets")

func digestOf(files fs.FS, dir string) string {
	sum := sha256.New()
	err := fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		sum.Write([]byte(name + "\x00"))
		sum.Write(data)
		return err
	})
	if err != nil {
		panic("viewer: " + err.Error()) // they are part of the program
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// assetPath is the address of an asset.
func assetPath(name string) string { return "/assets/" + assetDigest + "/" + name }

// assetTypes are the types of assets by their endings; the system's own table is not asked.
var assetTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".woff2": "font/woff2",
}

// assetPolicy is what a worker may do: its policy is that of its script, and not that of the page.
const assetPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// asset serves one file. One of another version is answered too, by a page that was loaded before the server was replaced, but
// it may not be kept.
func (v *Viewer) asset(w http.ResponseWriter, r *http.Request, _ visit) error {
	name := r.PathValue("name")
	data, err := assetFiles.ReadFile(path.Join("assets", path.Base(name)))
	kind := assetTypes[path.Ext(name)]
	if err != nil || kind == "" {
		return fault.New(fault.NotFound, "there is no such file").WithHint("Load the page again.")
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", assetPolicy)
	if r.PathValue("digest") == assetDigest {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Write(data) // a browser that has gone away does not read it
	return nil
}
