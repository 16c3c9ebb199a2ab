package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cellblock/egress"
	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/mounts"
)

// profiles says which profiles there are, what each gives, and which cannot be had here: that is an error.
func (d doctor) profiles(ctx context.Context) finding {
	f := finding{name: "profiles"}
	check, done := d.allows(ctx)
	defer done()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(d.cfg.Profiles)) {
		p := d.cfg.Profiles[name]
		doubts := make(chan error, 1)
		err := mounts.Patiently(func() error {
			doubt, err := check(kernels.Spec{Limits: d.cfg.ownLimits(name), Mounts: p.mounts(), Runtime: p.Runtime, Devices: p.Devices})
			doubts <- doubt
			return err
		})
		if err != nil {
			if f.err == nil {
				f.err = fault.New(fault.Unavailable, "sessions of the profile %s cannot be had here: %w", name, err).WithHint("%s", fault.Hint(err))
			}
			f.notes = append(f.notes, strings.TrimSuffix(fmt.Sprintf("NOT HERE: %s: %v. %s", name, err, fault.Hint(err)), " "))
			continue
		}
		if doubt := <-doubts; doubt != nil {
			f.notes = append(f.notes, fmt.Sprintf("%s: %v. %s", name, doubt, fault.Hint(doubt)))
		}
		found = append(found, p.describe(name))
	}
	f.found = strings.Join(found, ", ")
	if f.err != nil {
		f.notes = append(f.notes, "here: "+f.found)
	}
	return f
}

// allows returns what tells why a kernel could not have its mounts, runtime and devices where kernels will run; done ends it.
func (d doctor) allows(ctx context.Context) (check func(kernels.Spec) (doubt, err error), done func()) {
	if d.inContainers(ctx) {
		if p, _, err := d.docker(ctx); err == nil {
			return func(s kernels.Spec) (doubt, err error) { return p.Allows(ctx, s) }, func() { _ = p.Close() }
		}
	}
	p, closeLocal, err := d.local(nil)
	if err != nil {
		return func(kernels.Spec) (doubt, err error) { return nil, nil }, func() {} // that nothing can run is said elsewhere
	}
	return func(s kernels.Spec) (doubt, err error) { return p.Allows(ctx, s) }, closeLocal
}

// describe is a profile's name with what it gives that is not usual: "lab (16GB, network hosts, /srv/data at /data, runsc)".
func (p ProfileConfig) describe(name string) string {
	var gives []string
	if p.Once {
		gives = append(gives, "one call")
	}
	if p.Network.Mode != "" && p.Network.Mode != egress.None {
		gives = append(gives, "network "+string(p.Network.Mode))
	}
	for _, m := range p.Mounts {
		how := ""
		if m.Writable {
			how = ", writable"
		}
		gives = append(gives, m.Source+" at "+m.Target+how)
	}
	if p.Runtime != "" {
		gives = append(gives, p.Runtime)
	}
	if gives = append(gives, p.Devices...); len(gives) == 0 {
		return name
	}
	return name + " (" + strings.Join(gives, "; ") + ")"
}
