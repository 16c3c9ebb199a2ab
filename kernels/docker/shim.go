package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/docker/docker/api/types/mount"

	"cellblock/internal/fault"
)

// shimFile is the shim on the server's side.
type shimFile struct {
	path   string
	digest string // of its content, shortened
	size   int64
}

// machines are the processors that a shim may be for, in Go's words.
var machines = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x"}

// shimFor returns the shim for the engine's processor, and that processor. The file is read once.
func (p *Provisioner) shimFor(e *engine) (shimFile, string, error) {
	arch := goarch(e.info.Architecture)
	p.shimOnce.Do(func() { p.shim, p.shimErr = findShim(p.cfg.Shim, arch) })
	return p.shim, arch, p.shimErr
}

// findShim checks that there is a shim which containers of arch can run.
func findShim(path, arch string) (shimFile, error) {
	if special := path + "-linux-" + arch; exists(special) {
		path = special
	}
	f, err := os.Open(path)
	if err != nil {
		return shimFile{}, fault.New(fault.Unavailable, "the shim is missing: %w", err).
			WithHint("Build it for the engine: CGO_ENABLED=0 GOOS=linux GOARCH=%s go build -o %s ./cmd/cellblock-shim.", arch, path)
	}
	defer f.Close()
	wrong := func(what string) error {
		return fault.New(fault.Unavailable, "%s is %s, and the engine runs linux/%s", path, what, arch).
			WithHint("Build it: CGO_ENABLED=0 GOOS=linux GOARCH=%s go build -o %s ./cmd/cellblock-shim.", arch, path+"-linux-"+arch)
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return shimFile{}, wrong("not a Linux program")
	}
	switch machine := cmp.Or(machines[program.Machine], program.Machine.String()); {
	case machine != arch:
		return shimFile{}, wrong("a program for " + machine)
	case slices.ContainsFunc(program.Progs, func(part *elf.Prog) bool { return part.Type == elf.PT_INTERP }):
		return shimFile{}, wrong("not a static program")
	}
	digest := sha256.New()
	size, err := io.Copy(digest, io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return shimFile{}, fault.New(fault.Unavailable, "reading the shim: %w", err)
	}
	return shimFile{path: path, digest: hex.EncodeToString(digest.Sum(nil))[:16], size: size}, nil
}

// exists reports whether there is something at path, also where we may not look at it closely.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || errors.Is(err, fs.ErrPermission)
}

// shimMount brings the shim into a container: the file itself where the engine sees it, else a volume that holds a copy.
func (p *Provisioner) shimMount(ctx context.Context, e *engine, image string) (mount.Mount, error) {
	shim, _, err := p.shimFor(e)
	if err != nil {
		return mount.Mount{}, err
	}
	if e.files == FilesBind {
		return mount.Mount{Type: mount.TypeBind, Source: shim.path, Target: shimPath, ReadOnly: true}, nil
	}
	name, err := p.shimVolumeFor(ctx, e, image, shim)
	if err != nil {
		return mount.Mount{}, fmt.Errorf("copying the shim to the engine: %w", engineError(e.host, err))
	}
	return mount.Mount{Type: mount.TypeVolume, Source: name, Target: shimDir, ReadOnly: true}, nil
}

// archiveOf is a tar archive of one entry.
func archiveOf(head *tar.Header, content []byte) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, err := range []error{w.WriteHeader(head), write(w, content), w.Close()} {
		if err != nil {
			panic("docker: " + err.Error()) // into memory: cannot fail
		}
	}
	return &b
}

func write(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}
