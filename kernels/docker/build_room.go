package docker

import (
	"context"
	"errors"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// The file system of a build's container has no limit of its own, and most engines can set none. So it is looked at while the steps
// run what they have written, and how much room is left where the engine keeps it.

// measurePause is how long is waited between two looks, at least; measureShare is how many times as long as a look takes.
const measurePause, measureShare = time.Second, 4

// scratchShare is how many times Build.Size the steps may write: what they have fetched and unpack is there at the same time.
const scratchShare = 2

// watchBuild looks at a build's container until stop is called, which waits for that. When it takes too much, running ends, and stop
// returns why.
func (e *engine) watchBuild(ctx context.Context, id string, b Build) (running context.Context, stop func() error) {
	running, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pause := time.NewTimer(measurePause)
		defer pause.Stop()
		for {
			select {
			case <-running.Done():
				return
			case <-pause.C:
			}
			began := time.Now()
			var full *fault.Error
			if err := e.checkRoom(running, id, b); errors.As(err, &full) && running.Err() == nil {
				end(full)
				return
			}
			pause.Reset(max(measurePause, measureShare*time.Since(began)))
		}
	}()
	return running, func() error {
		end(nil)
		<-ended
		var full *fault.Error
		if errors.As(context.Cause(running), &full) {
			return full
		}
		return nil
	}
}

// checkRoom refuses a build that runs and has written too much, or for which there is too little room. What cannot be looked at now
// is looked at later: a step that cannot go on says so itself.
func (e *engine) checkRoom(ctx context.Context, id string, b Build) error {
	if err := e.checkDisk(b, 0); err != nil || b.Size == 0 {
		return err
	}
	if size, err := e.sizeOf(ctx, id); err == nil && size > scratchShare*b.Size {
		return tooLarge(size, b.Size)
	}
	return nil
}

// checkMade refuses an image that has grown too much, or for which there is no room: the engine makes a copy of what was written.
func (e *engine) checkMade(ctx context.Context, id string, b Build) error {
	if b.Size == 0 && b.Reserve == 0 {
		return nil
	}
	size, err := e.sizeOf(ctx, id)
	switch {
	case err != nil:
		return engineError(e.host, err)
	case b.Size > 0 && size > b.Size:
		return tooLarge(size, b.Size)
	}
	return e.checkDisk(b, size)
}

func tooLarge(size, most int64) error {
	return fault.New(fault.Invalid, "the packages take %s, and an image may grow by %s", words.Bytes(size), words.Bytes(most)).
		WithHint("ask for less; only the operator can allow more (images_build.max_bytes)")
}

// sizeOf is what has been written into a container, in bytes.
func (e *engine) sizeOf(ctx context.Context, id string) (int64, error) {
	inspect, _, err := e.api.ContainerInspectWithRaw(ctx, id, true)
	if err != nil || inspect.SizeRw == nil {
		return 0, err
	}
	return *inspect.SizeRw, nil
}

// checkDisk refuses what would leave less than Build.Reserve of the disk on which the engine keeps images. Only where that is a disk
// of this system can it be told.
func (e *engine) checkDisk(b Build, more int64) error {
	if b.Reserve == 0 || locate(e.host, e.info) != placeHere {
		return nil
	}
	free, ok := freeSpace(e.info.DockerRootDir)
	if !ok || free-more >= b.Reserve {
		return nil
	}
	if more > 0 {
		return diskFull("%s are left, the image takes %s of them, and builds leave %s", words.Bytes(free), words.Bytes(more), words.Bytes(b.Reserve))
	}
	return diskFull("%s are left, and builds leave %s", words.Bytes(free), words.Bytes(b.Reserve))
}

// diskFull is the error of an engine that has no room.
func diskFull(format string, args ...any) *fault.Error {
	return fault.New(fault.Unavailable, "the container engine's disk is full: "+format, args...).
		WithHint("The operator must make room on it (docker system df); images that you do not need go by delete_image, once the sessions in them are closed (close_session).")
}

// noSpace tells whether an engine has failed because its disk is full. It says so in the system's words only.
func noSpace(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}
