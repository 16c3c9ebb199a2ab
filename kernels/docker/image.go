package docker

import (
	"context"

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
