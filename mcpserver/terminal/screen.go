package terminal

import "strings"

// Screen is Plain for text that comes in pieces and is too long to hold: what can change no more goes out as it comes.
// Unlike Plain it does not reach back to lines from before the first control character.
type Screen struct {
	// Out takes the text, whole lines of it until Flush.
	Out func(text string)

	pending strings.Builder // the line that is being written
	term    *terminal       // nil until a control character has come
}

// maxPendingLine is how long an unfinished line may get before it is dealt with as it is.
const maxPendingLine = 64 << 10

// Write takes text and passes on the lines that it completes.
func (s *Screen) Write(text string) {
	end := strings.LastIndexByte(text, '\n') + 1
	if end == 0 && s.pending.Len()+len(text) < maxPendingLine {
		s.pending.WriteString(text)
		return
	}
	if end == 0 {
		end = len(text)
	}
	lines := s.pending.String() + text[:end]
	s.pending.Reset()
	s.pending.WriteString(text[end:])
	s.put(lines)
}

func (s *Screen) put(text string) {
	if s.term == nil && !hasControl(text) {
		s.Out(text)
		return
	}
	if s.term == nil {
		s.term = &terminal{rows: []line{nil}}
	}
	for len(text) > 0 {
		text = s.term.consume(text)
	}
	s.drain()
}

func (s *Screen) drain() {
	s.Out(s.term.out.String())
	s.term.out.Reset()
}

// Flush passes on all that is left. The screen is empty then.
func (s *Screen) Flush() {
	s.put(s.pending.String())
	s.pending.Reset()
	if s.term == nil {
		return
	}
	for _, l := range s.term.rows {
		s.term.write(l)
	}
	s.drain()
	s.term = nil
}
