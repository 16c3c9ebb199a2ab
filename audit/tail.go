package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
)

// maxLine bounds a line that is read, in bytes; it is far above any that is written.
const maxLine = 64 << 20

// tail is what a file holds behind what the head counts.
type tail struct {
	head head // with the lines that were found counted
	rest int64
	// foreign tells that there is something that is no line, or not the next one.
	foreign bool
}

// readTail reads what is behind the head, up to what is no line that follows.
func readTail(path string, key []byte, h head) (t tail, err error) {
	t.head = h
	f, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer f.Close()
	if _, err := f.Seek(h.Size, io.SeekStart); err != nil {
		return t, err
	}
	lines := bufio.NewReader(f)
	for {
		text, whole, err := readLine(lines)
		switch {
		case err != nil:
			return t, err
		case !whole:
			t.rest = int64(len(text))
			return t, nil
		}
		var at place
		s, err := unsealed(key, text, &at)
		if err != nil || at != t.head.next() {
			t.foreign = true
			return t, nil
		}
		t.head.Lines, t.head.Last = at.Seq, s
		t.head.Size += int64(len(text)) + 1
	}
}

// readLine returns the next line without its end, and whether it had one; at the end of the file, nothing.
func readLine(r *bufio.Reader) (text []byte, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(text, []byte("\n")), true, nil
		case errors.Is(err, io.EOF), len(text) > maxLine:
			return text, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// lastLine finds the line with the highest number whose seal holds, of h's and a file's.
func lastLine(path string, key []byte, h head) (head, error) {
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	h.First = h.Lines + 1
	lines := bufio.NewReader(f)
	for first := true; ; first = false {
		text, whole, err := readLine(lines)
		if err != nil || !whole {
			return h, err
		}
		var at place
		s, err := unsealed(key, text, &at)
		if err != nil || at.Seq <= h.Lines {
			continue
		}
		if h.Lines, h.Last = at.Seq, s; first {
			h.First = at.Seq
		}
	}
}
