package docker

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"cellblock/kernels"
)

var _ kernels.ImageIdentifier = (*Provisioner)(nil)

// ImageID returns the id of the image that has a name now.
func (p *Provisioner) ImageID(ctx context.Context, name string) (string, error) {
	e, err := p.engine(ctx)
	if err != nil {
		return "", err
	}
	image, err := e.image(ctx, name)
	return image.ID, err
}

// Image is what the engine knows of an image.
type Image struct {
	// Name is the one that it was asked for by, or that is in the list; ID stands for its content.
	Name, ID string
	Labels   map[string]string
	// Env is the environment of its containers, as "NAME=value".
	Env []string
	// Size is what it takes on the disk, in bytes.
	Size int64
	// Created is when it was made; the zero time where the engine does not say.
	Created time.Time
}

// Image returns what the engine knows of the image with a name. The error is Unavailable, with what to do, when there is none.
func (p *Provisioner) Image(ctx context.Context, name string) (Image, error) {
	e, err := p.engine(ctx)
	if err != nil {
		return Image{}, err
	}
	found, err := e.image(ctx, name)
	if err != nil {
		return Image{}, err
	}
	i := Image{Name: name, ID: found.ID, Size: found.Size}
	i.Created, _ = time.Parse(time.RFC3339Nano, found.Created)
	if found.Config != nil {
		i.Labels, i.Env = found.Config.Labels, found.Config.Env
	}
	return i, nil
}

// Images returns the engine's images with a label ("name" or "name=value"; empty: all), one for each name that they have, sorted by it. What Podman puts before
// names of no registry, which depends on who built the image, is left out. Env is not filled in.
func (p *Provisioner) Images(ctx context.Context, label string) ([]Image, error) {
	e, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	labels := filters.NewArgs()
	if label != "" {
		labels.Add("label", label)
	}
	list, err := e.api.ImageList(ctx, image.ListOptions{Filters: labels})
	if err != nil {
		return nil, engineError(e.host, err)
	}
	var all []Image
	for _, found := range list {
		for _, name := range found.RepoTags {
			all = append(all, Image{Name: strings.TrimPrefix(strings.TrimPrefix(name, "localhost/"), "docker.io/library/"), ID: found.ID, Labels: found.Labels, Size: found.Size, Created: time.Unix(found.Created, 0)})
		}
	}
	slices.SortFunc(all, func(a, b Image) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// What is read of an image at most, of one folder.
const maxImageFiles, maxImageFile, maxImageArchive = 1000, 1 << 20, 64 << 20

// ReadImage returns the files below some folders of an image that have a name, by their paths. A folder that is not there
// has none. No program of the image is started: a container that never runs shows its files.
func (p *Provisioner) ReadImage(ctx context.Context, image, name string, folders ...string) (map[string][]byte, error) {
	e, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	helper := "cellblock-image-" + rand.Text()
	c := p.sweeper.create(ctx, e,
		&container.Config{Image: image, Entrypoint: []string{shimPath}, Labels: map[string]string{labelInstallation: p.cfg.Installation, labelHelper: helper}},
		&container.HostConfig{NetworkMode: "none"}, helper)
	defer p.discard(ctx, debt{e: e, name: helper, creation: c, clean: func() error { return nil }})
	if _, err := c.wait(ctx); err != nil {
		return nil, imageError(e.host, image, err)
	}
	files := map[string][]byte{}
	for _, folder := range folders {
		archive, _, err := e.api.CopyFromContainer(ctx, helper, folder)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = errors.Join(readArchive(archive, path.Dir(folder), name, files), archive.Close())
		}
		if err != nil {
			return nil, engineError(e.host, fmt.Errorf("reading %s of image %s: %w", folder, image, err))
		}
	}
	return files, nil
}

// readArchive takes the files with a name out of an archive whose top lies in a folder. Whoever made the image made it.
func readArchive(archive io.Reader, folder, name string, files map[string][]byte) error {
	entries := tar.NewReader(io.LimitReader(archive, maxImageArchive))
	for range maxImageFiles {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || path.Base(h.Name) != name || h.Size > maxImageFile {
			continue
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			return err
		}
		files[path.Join(folder, path.Clean("/"+h.Name))] = data
	}
	return nil
}
