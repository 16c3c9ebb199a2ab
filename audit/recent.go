package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
)

// recentBytes bounds what Recent reads.
const recentBytes = 256 << 10

// Recent returns the last entries of the file that is written, at most so many, newest first, without the code in them. It does not
// check their seals. What was not written yet, or stands in an earlier file, is not among them.
func (l *Log) Recent(most int) ([]Entry, error) {
	if l == nil {
		return nil, nil
	}
	f, err := os.Open(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-recentBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, from, recentBytes))
	if err != nil {
		return nil, err
	}
	if from > 0 { // in the middle of a line
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return lastEntries(data, most), nil
}

// lastEntries reads lines from the end. What is no whole line of ours is passed over.
func lastEntries(data []byte, most int) (entries []Entry) {
	for len(data) > 0 && len(entries) < most {
		data = bytes.TrimSuffix(data, []byte("\n"))
		line := data
		if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
			data, line = data[:i+1], data[i+1:]
		} else {
			data = nil
		}
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Event != "" {
			e.Code = ""
			entries = append(entries, e)
		}
	}
	return entries
}
