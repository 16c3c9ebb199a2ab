package mcpserver

import "strings"

// screen is plain for text that comes in pieces and is too long to hold: what can change no more goes out as it comes.
// Unlike plain it does not reach back to lines from before the first control character.
type screen struct {
	out     func(text string)
	pending strings.Builder // the line that is being written
	term    *terminal       // nil until a control character has come
}

// maxPendingLine is how long an unfinished line may get before it is dealt with as it is.
const maxPendingLine = 64 << 10

// write takes text and passes on the lines that it completes.
func (s *screen) write(text string) {
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

func (s *screen) put(text string) {
	if s.term == nil && !hasControl(text) {
		s.out(text)
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

func (s *screen) drain() {
	s.out(s.term.out.String())
	s.term.out.Reset()
}

// flush passes on all that is left. The screen is empty then.
func (s *screen) flush() {
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
