package jsontext

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	// nearby is how far a run of plain bytes is looked for eight bytes at a time. Most end before: they are words and lines.
	nearby = 256
	// maxWindow bounds what is looked through for one thing before it is looked through for the next, in bytes: the processor
	// still has it at hand then.
	maxWindow = 16 << 10
)

const ones, highs = 0x0101010101010101, 0x8080808080808080

// PlainEnd returns the index of the first byte of b from at on that does not stand for itself in a JSON string: a quote, a
// backslash or a control character. It is len(b) if there is none.
func PlainEnd(b []byte, at int) int {
	near := min(len(b), at+nearby)
	at = nearEnd(b[:near], at)
	if at < near || at == len(b) {
		return at
	}
	return farEnd(b, at)
}

// nearEnd is PlainEnd, eight bytes at a time.
func nearEnd(b []byte, at int) int {
	for ; at+8 <= len(b); at += 8 {
		x := binary.LittleEndian.Uint64(b[at:])
		quote, backslash := x^'"'*ones, x^'\\'*ones
		// The lowest bit that is set is right; a borrow may set others above it.
		if found := (controls(x) | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(b) && b[at] >= ' ' && b[at] != '"' && b[at] != '\\' {
		at++
	}
	return at
}

// controls sets the highest bit of each byte of x that is a control character, if it sets any.
func controls(x uint64) uint64 { return (x - ' '*ones) &^ x }

// farEnd is PlainEnd for long runs, pictures and the like. The machine's own search for one byte is many times as fast as
// arithmetic, so it looks through windows that grow, and what it has looked through in vain is never much.
func farEnd(b []byte, at int) int {
	for size := nearby; at < len(b); size = min(2*size, maxWindow) {
		window := b[at:min(len(b), at+size)]
		run := window
		for _, c := range []byte{'"', '\\'} {
			if n := bytes.IndexByte(run, c); n >= 0 {
				run = run[:n]
			}
		}
		if holdsControl(run) {
			return nearEnd(b, at)
		}
		at += len(run)
		if len(run) < len(window) {
			break
		}
	}
	return at
}

func holdsControl(b []byte) bool {
	for ; len(b) >= 32; b = b[32:] {
		w := b[:32]
		if (controls(binary.LittleEndian.Uint64(w))|controls(binary.LittleEndian.Uint64(w[8:]))|
			controls(binary.LittleEndian.Uint64(w[16:]))|controls(binary.LittleEndian.Uint64(w[24:])))&highs != 0 {
			return true
		}
	}
	return nearEnd(b, 0) < len(b) // neither quote nor backslash is among them
}
