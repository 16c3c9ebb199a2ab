package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"cellblock/kernels"
	"cellblock/sessions/workspaces"
)

// pooled is a kernel that has no session yet.
type pooled struct {
	choice Choice
	// spec is what it was launched as, without what is its own; image is what the image's name stood for then.
	spec   kernels.Spec
	image  string
	folder *workspaces.Spare
	kernel *kernel
	late   lateOutput
	left   chan struct{} // closed when it is not in the pool any more
}

// lateOutput takes a kernel's late output to its session, once it has one: the connection is made before.
type lateOutput struct {
	to atomic.Pointer[func(kernels.Output, string) bool]
}

func (l *lateOutput) add(out kernels.Output, msgID string) (held bool) {
	if add := l.to.Load(); add != nil {
		return (*add)(out, msgID)
	}
	return false
}

// launch starts a kernel for the pool and waits until it is ready.
func (p *pool) launch(choice Choice) (*pooled, error) {
	ctx, cancel := context.WithTimeout(p.ctx, startTimeout)
	defer cancel()
	folder, err := p.m.workspaces.NewSpare()
	if err != nil {
		return nil, err
	}
	spec := p.m.spec(choice)
	k := &pooled{choice: choice, spec: spec, image: p.image(ctx, spec.Image), folder: folder, left: make(chan struct{})}
	spec.ID, spec.Workspace = newKernelID(), folder.Dir
	spec.Labels = map[string]string{"pool": choice.Language}
	handle, err := p.m.cfg.Provisioner.Launch(ctx, spec)
	if err != nil {
		p.m.workspaces.Discard(folder)
		return nil, err
	}
	k.kernel = &kernel{handle: handle}
	k.kernel.client, err = p.m.connect(ctx, handle, kernels.Options{
		Late: k.late.add, Logger: p.m.cfg.Logger.With("kernel", spec.ID),
	})
	if err == nil {
		err = k.kernel.client.Ready(ctx)
	} else {
		k.kernel.client = nil
	}
	if err == nil {
		p.m.spoken.note(choice.Language, k.kernel.client.Info())
		err = p.warmUp(ctx, k)
	}
	if err != nil {
		why := "it did not come up"
		if p.ctx.Err() != nil {
			why = "" // the pool is being closed
		}
		p.throwAway(k, why)
		return nil, err
	}
	return k, nil
}

// format makes IPython do once what only its first cell with a result waits for: half of that cell's time.
const format = "get_ipython().display_formatter.format(0)"

// settle lets Python's garbage collector pass over what is there, as the kernel's program does when it starts: modules stay.
const settle = "import gc; gc.freeze()"

// warmUp runs what Python's first cells wait for, and imports modules. What does not work is left out.
func (p *pool) warmUp(ctx context.Context, k *pooled) error {
	if k.spec.Kernelspec.Language != "python" {
		return nil
	}
	if _, err := runAside(ctx, k.kernel.client, format); err != nil {
		return err
	}
	for _, module := range p.m.cfg.PoolPreload {
		failed, err := runAside(ctx, k.kernel.client, "import "+module)
		if err != nil {
			return err
		}
		if failed != "" {
			p.m.cfg.Logger.Warn("a module cannot be imported in the pool's kernels", "module", module, "error", failed)
		}
	}
	_, err := runAside(ctx, k.kernel.client, settle)
	return err
}

// aside runs Python code that leaves no trace: it has names of its own, and not even its error can be looked at later.
const aside = `exec('try:\n %s\nexcept Exception as e: print("failed:", repr(e))', {})`

// runAside runs Python code which stands in no history and counts as no cell, and returns how it failed.
func runAside(ctx context.Context, c client, code string) (failed string, err error) {
	running, err := c.Execute(ctx, kernels.ExecuteRequest{Code: fmt.Sprintf(aside, code), Silent: true})
	if err != nil {
		return "", err
	}
	var printed strings.Builder
	for {
		out, err := running.Next(ctx)
		if errors.Is(err, io.EOF) {
			_, failed, _ = strings.Cut(printed.String(), "failed: ")
			return strings.TrimSpace(failed), nil
		}
		if err != nil {
			return "", err
		}
		printed.WriteString(out.Text)
	}
}

// checkTime is how long a pooled kernel's shim may take to answer before the kernel is handed over, answerTime how long the
// kernel may take while nobody waits.
const checkTime, answerTime = time.Second, 10 * time.Second

// answers asks the kernel itself.
func (k *pooled) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return k.kernel.client.Ready(ctx)
}

// check tells whether a kernel can be handed over: it is what would be launched now, and its shim answers and has not told
// of its end. Whether the kernel itself answers was seen not long ago: see watch.
func (p *pool) check(ctx context.Context, k *pooled) error {
	if !reflect.DeepEqual(k.spec, p.m.spec(k.choice)) {
		return errors.New("its configuration has changed")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	image := make(chan string, 1)
	go func() { image <- cmp.Or(p.image(ctx, k.spec.Image), k.image) }() // an engine that does not answer has changed nothing
	err := k.kernel.client.Ping(ctx)
	if err == nil {
		err = k.kernel.client.Err()
	}
	if now := <-image; err == nil && now != k.image {
		err = errors.New("its image has changed")
	}
	return err
}

// checking is a check that has begun.
type checking struct {
	kernel *pooled
	began  time.Time
	result chan error // once
}

// startCheck begins a check, which ends by itself.
func (p *pool) startCheck(k *pooled) *checking {
	c := &checking{kernel: k, began: time.Now(), result: make(chan error, 1)}
	p.m.running.Go(func() { c.result <- p.check(p.ctx, k) })
	return c
}

// checkFirst begins to check the kernel that a session of a choice would get now, nil if there is none: it will want it when it
// knows its past.
func (p *pool) checkFirst(choice Choice) *checking {
	p.mu.Lock()
	defer p.mu.Unlock()
	if shelf := p.shelves[choice]; shelf != nil && len(shelf.ready) > 0 {
		return p.startCheck(shelf.ready[0])
	}
	return nil
}

// serves tells whether a check is of that kernel, and says still how it is.
func (c *checking) serves(k *pooled) bool {
	return c != nil && c.kernel == k && time.Since(c.began) < checkTime
}

// image returns what an image's name stands for now, where that can be told.
func (p *pool) image(ctx context.Context, name string) string {
	if images, ok := p.m.cfg.Provisioner.(kernels.ImageIdentifier); ok {
		id, err := images.ImageID(ctx, name)
		if err != nil {
			p.m.cfg.Logger.Debug("an image cannot be looked up", "image", name, "error", err)
		}
		return id
	}
	return ""
}

// throwAway ends a kernel that nobody uses, with its folder.
func (p *pool) throwAway(k *pooled, why string) {
	if why != "" {
		p.m.cfg.Logger.Info("a pooled kernel is thrown away", "language", k.choice.Language, "why", why)
	}
	if err := k.kernel.dispose(0); err != nil {
		p.m.cfg.Logger.Error("a pooled kernel could not be stopped", "error", err)
	}
	p.m.workspaces.Discard(k.folder)
}

// adopt gives the session a kernel from the pool, with the folder that it was launched in and the variables that were saved, and tells
// whether it did.
func (s *session) adopt(ctx context.Context) bool {
	m := s.manager
	m.pool.want(s.choice)
	if m.workspaces.Known(s.key.workspace()) && m.workspaces.Away(ctx) {
		return false // its files are in the engine's volume, out of reach
	}
	for k := m.pool.pop(s.choice); k != nil; k = m.pool.pop(s.choice) {
		// The kernel is checked while it gets the files: they would be at home in the folder without it, too.
		check := s.ahead.check
		if s.ahead.check = nil; !check.serves(k) {
			check = m.pool.startCheck(k)
		}
		used, ran, giveErr := m.workspaces.Give(s.key.workspace(), s.choice.Language, k.folder)
		if giveErr == nil {
			s.filesWritten() // from here on it is this kernel that writes
		}
		if err := errors.Join(<-check.result, giveErr); err != nil {
			m.running.Go(func() { m.pool.throwAway(k, err.Error()) })
		} else {
			s.takeOver(k, used, ran)
			s.cameUp()
			if used || s.saved {
				s.loadVariables()
			}
			return true
		}
		if giveErr != nil {
			return false
		}
	}
	return false
}

// takeOver makes a pooled kernel the session's.
func (s *session) takeOver(k *pooled, used, ran bool) {
	s.log.Debug("kernel from the pool", "kernel", k.kernel.handle.Ref().KernelID)
	late := s.addLate
	k.late.to.Store(&late)
	s.kernel = k.kernel
	s.leadOut(k.kernel.client)
	s.later.add(k.folder.LetGo)
	s.folderGiven(k.folder.Dir, used, ran)
	if !used {
		s.gauge = gauge{at: time.Now()} // it is empty
	}
	s.keepHandle(k.kernel.handle)
	s.generationBegan()
}
