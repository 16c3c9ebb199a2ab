package channels

import "io"

// cut says what the ZMQ library was not given of a message: this frame and all that follow are empty for it.
type cut struct {
	frame int       // counted from 0
	total int64     // bytes of the whole message, with what was left out
	to    io.Writer // was given all of the frame; nil: nobody wanted it
}
