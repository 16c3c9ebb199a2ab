package mounts

import (
	"context"

	"cellblock/internal/keyed"
	"cellblock/kernels"
)

// Finder looks at mounts for one kernel after the other, and is not held up by a file system that hangs: a look takes no longer than
// Patience and its context, and of each source no more than one stays behind. It may be used by several goroutines at once.
type Finder struct {
	// Roots are the folders below which all sources must lie.
	Roots []string
	// Folder returns what a source really is; nil asks this host, as Resolve does.
	Folder func(roots []string, source string) (string, error)

	turns keyed.Values[string, chan struct{}] // by source, of those that somebody looks at, who fills it, or waits for
}

// Resolve is the package's Resolve with the Finder's roots. The error is Unavailable when a source does not answer in time.
func (f *Finder) Resolve(ctx context.Context, wanted []kernels.Mount) ([]kernels.Mount, error) {
	folder := f.Folder
	if folder == nil {
		folder = resolve
	}
	return resolveAll(wanted, func(source string) (string, error) {
		return inTurn(ctx, f, source, func() (string, error) { return folder(f.Roots, source) })
	})
}

// Writable is the package's Writable. The error is Unavailable when a source does not answer in time, too.
func (f *Finder) Writable(ctx context.Context, resolved []kernels.Mount, uid, gid int) (doubt, err error) {
	for _, m := range resolved {
		one, err := inTurn(ctx, f, m.Source, func() (error, error) { return Writable([]kernels.Mount{m}, uid, gid) })
		if err != nil {
			return nil, err
		}
		if doubt == nil {
			doubt = one
		}
	}
	return doubt, nil
}

// Turn waits until nobody else looks at a source, and then is the only one until it calls end. A source that hangs so costs one goroutine
// and its thread, however often it is tried. Others wait no longer than ctx and Patience; the error is Unavailable after the latter.
func (f *Finder) Turn(ctx context.Context, source string) (end func(), err error) {
	ctx, cancel := patient(ctx, source)
	defer cancel()
	return f.take(ctx, source)
}

// inTurn looks at a source once nobody else does.
func inTurn[T any](ctx context.Context, f *Finder, source string, look func() (T, error)) (T, error) {
	ctx, cancel := patient(ctx, "the folder "+source+", or one of mount_roots,")
	defer cancel()
	end, err := f.take(ctx, source)
	if err != nil {
		var nothing T
		return nothing, err
	}
	return await(ctx, func() (T, error) {
		defer end()
		return look()
	})
}

// take is Turn with no end to its patience but ctx's. Whoever has given up gets no turn.
func (f *Finder) take(ctx context.Context, source string) (end func(), err error) {
	taken, leave := f.turns.Use(source, func() chan struct{} { return make(chan struct{}, 1) })
	select {
	case taken <- struct{}{}:
		end = func() {
			<-taken
			leave()
		}
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
	if ctx.Err() != nil {
		end()
		return nil, context.Cause(ctx)
	}
	return end, nil
}
