package docker

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// knownImages remembers what images' names stand for while the engine's own list of names is the same file as it was when the
// engine was asked. An engine on this host writes the list anew, under its name, before it says that a name was given or taken
// away. So the answer is as new as the engine's own, and costs a look at a file instead of half a millisecond of the engine.
// Events would not do: Docker before 25 tells nothing of what BuildKit builds, nor does its containerd store before 28.1, and
// an event comes after the call that it is of has returned.
//
// Where the list is not to be seen (an engine elsewhere, a server that may not read the engine's folder, a store of another
// kind), or does not have the image that the engine named, nothing is remembered.
type knownImages struct {
	list string // the file; "" where there is none

	mu   sync.Mutex
	file os.FileInfo // the list when the names were asked for
	ids  map[string]string
}

const (
	// maxImageList bounds the list that is read, in bytes.
	maxImageList = 16 << 20
	// settled is how old a list must be to be known again by its time: one that was written just now may be written once more
	// within what the file system tells apart.
	settled = 2 * time.Second
)

// imageList returns the path of the list of names of an engine on this host.
func (e *engine) imageList() string {
	switch {
	case locate(e.host, e.info) != placeHere || e.info.Driver == "":
		return ""
	case e.kind == KindPodman:
		return filepath.Join(e.info.DockerRootDir, e.info.Driver+"-images", "images.json")
	}
	for _, status := range e.info.DriverStatus {
		if strings.Contains(status[1], "io.containerd.") {
			return "" // images are containerd's
		}
	}
	return filepath.Join(e.info.DockerRootDir, "image", e.info.Driver, "repositories.json")
}

// id returns what a name stands for, by ask where that is not known.
func (k *knownImages) id(name string, ask func() (string, error)) (string, error) {
	file := k.look()
	if id, ok := k.known(name, file); ok {
		return id, nil
	}
	id, err := ask()
	if err == nil && file != nil && k.lists(id) {
		k.note(name, id, file)
	}
	return id, err
}

// look returns what tells the list from later ones; nil where that cannot be told.
func (k *knownImages) look() os.FileInfo {
	if k.list == "" {
		return nil
	}
	file, err := os.Lstat(k.list)
	if err != nil || !file.Mode().IsRegular() || time.Since(file.ModTime()) < settled {
		return nil
	}
	return file
}

func (k *knownImages) known(name string, file os.FileInfo) (id string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if file == nil || !sameFile(k.file, file) {
		return "", false
	}
	id, ok = k.ids[name]
	return id, ok
}

// note remembers a name that was asked for when the list was file.
func (k *knownImages) note(name, id string, file os.FileInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !sameFile(k.file, file) {
		k.file, k.ids = file, map[string]string{}
	}
	k.ids[name] = id
}

// lists tells whether an image is in the list: if not, the list is not this engine's, or the image has no name that could go.
func (k *knownImages) lists(id string) bool {
	_, digits, _ := strings.Cut(id, ":")
	f, err := os.Open(k.list)
	if err != nil {
		return false
	}
	defer f.Close()
	list, err := io.ReadAll(io.LimitReader(f, maxImageList+1))
	return err == nil && len(list) <= maxImageList && digits != "" && bytes.Contains(list, []byte(digits))
}

func sameFile(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
