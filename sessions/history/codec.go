package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cellblock/kernels"
)

// The body of an output is a version and then fields: a tag, a length, that many bytes. JSON would not do: it rewrites the
// JSON values that it carries, and costs megabytes of copies for every image. Kind, number and time of an output are
// columns, so that equal outputs have equal bodies and share a file.

const bodyVersion = 1

// The tags of fields. They are on disk: never change one, only add.
const (
	tagFlags = iota + 1
	tagStream
	tagText
	tagMIME  // a MIME type, followed by
	tagValue // its value
	tagMetadata
	tagDisplayID
	tagCount
	tagErrorName
	tagErrorValue
	tagTraceback // one line
	tagNotice    // as JSON
	tagType
	tagContent
)

// The bits of the field tagFlags. They also keep apart what is empty from what is not there.
const (
	flagWait = 1 << iota
	flagPassword
	flagData
	flagError
	flagTraceback
)

var errBody = errors.New("not the body of an output")

// encodeBody returns the body of an output.
func encodeBody(out kernels.Output) ([]byte, error) {
	b := append(make([]byte, 0, bodySize(out)), bodyVersion)
	if flags := flagsOf(out); flags != 0 {
		b = appendField(b, tagFlags, []byte{flags})
	}
	b = appendText(b, tagStream, out.Stream)
	b = appendText(b, tagText, out.Text)
	for _, mime := range slices.Sorted(maps.Keys(out.Data)) {
		b = appendField(b, tagMIME, mime)
		b = appendField(b, tagValue, out.Data[mime])
	}
	b = appendRaw(b, tagMetadata, out.Metadata)
	b = appendText(b, tagDisplayID, out.DisplayID)
	if out.ExecutionCount != 0 {
		b = appendField(b, tagCount, binary.AppendVarint(nil, int64(out.ExecutionCount)))
	}
	if e := out.Error; e != nil {
		b = appendText(b, tagErrorName, e.Name)
		b = appendText(b, tagErrorValue, e.Value)
		for _, line := range e.Traceback {
			b = appendField(b, tagTraceback, line)
		}
	}
	if out.Notice != nil {
		notice, err := json.Marshal(out.Notice)
		if err != nil {
			return nil, err
		}
		b = appendField(b, tagNotice, notice)
	}
	b = appendText(b, tagType, out.Type)
	return appendRaw(b, tagContent, out.Content), nil
}

func flagsOf(out kernels.Output) byte {
	flags := bit(out.Wait, flagWait) | bit(out.Password, flagPassword) | bit(out.Data != nil, flagData)
	if out.Error != nil {
		flags |= flagError | bit(out.Error.Traceback != nil, flagTraceback)
	}
	return flags
}

func bit(set bool, flag byte) byte {
	if set {
		return flag
	}
	return 0
}

// bodySize is about how long an output's body will be, and never much too short.
func bodySize(out kernels.Output) int {
	size := 64 + len(out.Text) + len(out.Metadata) + len(out.DisplayID) + len(out.Type) + len(out.Content)
	for mime, value := range out.Data {
		size += len(mime) + len(value) + 16
	}
	if out.Error != nil {
		size += len(out.Error.Name) + len(out.Error.Value)
		for _, line := range out.Error.Traceback {
			size += len(line) + 8
		}
	}
	return size
}

func appendField[T string | []byte | json.RawMessage](b []byte, tag byte, value T) []byte {
	b = binary.AppendUvarint(append(b, tag), uint64(len(value)))
	return append(b, value...)
}

func appendText(b []byte, tag byte, text string) []byte {
	if text == "" {
		return b
	}
	return appendField(b, tag, text)
}

func appendRaw(b []byte, tag byte, raw json.RawMessage) []byte {
	if raw == nil {
		return b
	}
	return appendField(b, tag, raw)
}

// decodeBody reads what encodeBody wrote into out. JSON values share body's memory.
func decodeBody(out *kernels.Output, body []byte) error {
	if len(body) == 0 || body[0] != bodyVersion {
		return errBody
	}
	d := decoder{out: out}
	for rest := body[1:]; len(rest) > 0; {
		tag := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return fmt.Errorf("%w: field %d is cut off", errBody, tag)
		}
		end := 1 + n + int(size)
		if err := d.field(tag, rest[1+n:end:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}

type decoder struct {
	out  *kernels.Output
	mime string // of the value that follows
}

func (d *decoder) field(tag byte, value []byte) error {
	out := d.out
	switch tag {
	case tagFlags:
		return d.flags(value)
	case tagStream:
		out.Stream = string(value)
	case tagText:
		out.Text = string(value)
	case tagMIME:
		d.mime = string(value)
	case tagValue:
		return d.value(value)
	case tagMetadata:
		out.Metadata = value
	case tagDisplayID:
		out.DisplayID = string(value)
	case tagCount:
		count, n := binary.Varint(value)
		if n != len(value) || n == 0 {
			return fmt.Errorf("%w: a number is damaged", errBody)
		}
		out.ExecutionCount = int(count)
	case tagErrorName, tagErrorValue, tagTraceback:
		return d.errorField(tag, string(value))
	case tagNotice:
		return json.Unmarshal(value, &out.Notice)
	case tagType:
		out.Type = string(value)
	case tagContent:
		out.Content = value
	default:
		return fmt.Errorf("%w: field %d is not known", errBody, tag)
	}
	return nil
}

func (d *decoder) flags(value []byte) error {
	if len(value) != 1 {
		return fmt.Errorf("%w: flags", errBody)
	}
	flags := value[0]
	d.out.Wait, d.out.Password = flags&flagWait != 0, flags&flagPassword != 0
	if flags&flagData != 0 {
		d.out.Data = map[string]json.RawMessage{}
	}
	if flags&flagError != 0 {
		d.out.Error = &kernels.ExecError{}
		if flags&flagTraceback != 0 {
			d.out.Error.Traceback = []string{}
		}
	}
	return nil
}

func (d *decoder) value(value []byte) error {
	if d.out.Data == nil {
		return fmt.Errorf("%w: a value without a bundle", errBody)
	}
	d.out.Data[d.mime] = value
	return nil
}

func (d *decoder) errorField(tag byte, value string) error {
	e := d.out.Error
	switch {
	case e == nil:
		return fmt.Errorf("%w: an error's text without an error", errBody)
	case tag == tagErrorName:
		e.Name = value
	case tag == tagErrorValue:
		e.Value = value
	default:
		e.Traceback = append(e.Traceback, value)
	}
	return nil
}
