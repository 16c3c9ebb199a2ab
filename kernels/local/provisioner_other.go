//go:build !linux

package local

import (
	"context"
	"runtime"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// Provisioner is the local provisioner; on this system there is none.
type Provisioner struct{}

var _ kernels.Provisioner = (*Provisioner)(nil)

// New fails: the sandbox is made of what only Linux has.
func New(Config) (*Provisioner, error) { return nil, unsupported() }

func unsupported() error {
	return fault.New(fault.Unavailable, "the local provisioner needs Linux, this is %s", runtime.GOOS).
		WithHint("Install Docker or Podman and use --provisioner docker.")
}

// Name returns "local".
func (*Provisioner) Name() string { return name }

// Launch fails.
func (*Provisioner) Launch(context.Context, kernels.Spec) (kernels.Handle, error) {
	return nil, unsupported()
}

// Attach fails.
func (*Provisioner) Attach(context.Context, kernels.Ref) (kernels.Handle, error) {
	return nil, unsupported()
}

// List returns nothing.
func (*Provisioner) List(context.Context) ([]kernels.Ref, error) { return nil, nil }

// Health says that Linux is needed.
func (*Provisioner) Health(context.Context) error { return unsupported() }

// Check says that Linux is needed.
func (*Provisioner) Check(kernels.Kernelspec) error { return unsupported() }

// Allows says that Linux is needed.
func (*Provisioner) Allows(context.Context, kernels.Spec) (doubt, err error) {
	return nil, unsupported()
}

// Capabilities says that nothing is enforced.
func (*Provisioner) Capabilities() kernels.Capabilities { return kernels.Capabilities{} }

// Close does nothing.
func (*Provisioner) Close() error { return nil }
