package mounts

import (
	"context"
	"sync"

	"cellblock/kernels"
)

// Finder looks at mounts for one kernel after the other, and is not held up by a file system that hangs: a look takes no longer than
// Patience and its context, and of each source no more than one stays behind. It may be used by several goroutines at once.
type Finder struct {
	// Roots are the folders below which all sources must lie.
	Roots []string
	// Folder returns what a source really is; nil asks this host, as Resolve does.
	Folder func(roots []string, source string) (string, error)

	mu    sync.Mutex
	turns map[string]chan struct{} // by source: full while it is being looked at
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

// inTurn looks at a source once nobody else does: what hangs costs one goroutine and its thread, however often it is tried.
func inTurn[T any](ctx context.Context, f *Finder, source string, look func() (T, error)) (T, error) {
	ctx, cancel := patient(ctx, "the folder "+source+", or one of mount_roots,")
	defer cancel()
	turn := f.turn(source)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		var nothing T
		return nothing, context.Cause(ctx)
	}
	return await(ctx, func() (T, error) {
		defer func() { <-turn }()
		return look()
	})
}

func (f *Finder) turn(source string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	turn := f.turns[source]
	if turn == nil {
		if f.turns == nil {
			f.turns = map[string]chan struct{}{}
		}
		turn = make(chan struct{}, 1)
		f.turns[source] = turn
	}
	return turn
}
