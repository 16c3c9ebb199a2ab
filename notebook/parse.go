package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"cellblock/internal/fault"
)

// maxStopped is the longest that a stopped cell has had which is asked for again: what servers give a cell by themselves.
const maxStopped = 10 * time.Minute

// file is a notebook's file, as far as it must be known to read the rest.
type file struct {
	Format   *int    `json:"nbformat"`
	Cells    *[]cell `json:"cells"`
	Metadata Object  `json:"metadata"`
}

type cell struct {
	Type           CellType  `json:"cell_type"`
	ID             string    `json:"id"`
	Source         multiline `json:"source"`
	Metadata       Object    `json:"metadata"`
	ExecutionCount int       `json:"execution_count"`
	Outputs        []output  `json:"outputs"`
	Attachments    Object    `json:"attachments"`
}

type output struct {
	Type           OutputType `json:"output_type"`
	Name           string     `json:"name"`
	Text           multiline  `json:"text"`
	Data           Object     `json:"data"`
	Metadata       Object     `json:"metadata"`
	ExecutionCount int        `json:"execution_count"`
	EName          string     `json:"ename"`
	EValue         string     `json:"evalue"`
	Traceback      []string   `json:"traceback"`
}

var errNoText = errors.New("a source or a text is neither a text nor a list of lines")

// multiline is a text that may stand as a list of its lines.
type multiline string

// UnmarshalJSON reads either form.
func (m *multiline) UnmarshalJSON(data []byte) error {
	var parts []string
	if json.Unmarshal(data, &parts) == nil {
		*m = multiline(strings.Join(parts, ""))
		return nil
	}
	if json.Unmarshal(data, (*string)(m)) != nil {
		return errNoText
	}
	return nil
}

// Parse reads a notebook's file of any version 4. Cells of versions before 4.5, which have no ids, get some; outputs of
// types that are not known are left out. The error is Invalid, with a hint.
func Parse(data []byte) (*Notebook, error) {
	var f file
	switch err := decode(data, &f); {
	case err != nil && f.Format == nil:
		return nil, fault.New(fault.Invalid, "it is no notebook: %v", plainly(err)).WithHint("Give an .ipynb file of nbformat 4.")
	case f.Format == nil || *f.Format < 1:
		return nil, fault.New(fault.Invalid, "it is no notebook: it names no nbformat").WithHint("Give an .ipynb file of nbformat 4.")
	case *f.Format < Format:
		return nil, fault.New(fault.Invalid, "it is a notebook of nbformat %d; nbformat 4 is wanted", *f.Format).
			WithHint("Convert it: jupyter nbconvert --to notebook --nbformat 4 FILE")
	case *f.Format > Format:
		return nil, fault.New(fault.Invalid, "it is a notebook of nbformat %d; nbformat 4 is the newest that can be read", *f.Format).
			WithHint("Save it as nbformat 4.")
	case err != nil:
		return nil, broken("%v", plainly(err))
	case f.Cells == nil:
		return nil, broken("it has no list of cells")
	}
	n := &Notebook{Metadata: f.Metadata, Cells: make([]*Cell, 0, len(*f.Cells))}
	ids := idsOf(*f.Cells)
	for i, c := range *f.Cells {
		switch c.Type {
		case Code, Markdown, Raw:
			n.Cells = append(n.Cells, c.known(ids[i]))
		default:
			return nil, broken("cell %d has the type %.40q", i+1, c.Type)
		}
	}
	return n, nil
}

func broken(format string, args ...any) error {
	return fault.New(fault.Invalid, "the notebook is broken: "+format, args...).
		WithHint("Open it in Jupyter and save it again.")
}

// decode reads one JSON value and nothing behind it.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows behind it")
	}
	return nil
}

// plainly says what is wrong with a file in words that are not Go's.
func plainly(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, errNoText):
		return err
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("it is a JSON %s", wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: a JSON %s has no place there", wrong.Field, wrong.Value)
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("its end is missing")
	}
	return fmt.Errorf("it is not JSON (%w)", err)
}

var validID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// idsOf returns the cells' ids, with new ones for those that have none that is valid and their own.
func idsOf(cells []cell) []string {
	ids, used := make([]string, len(cells)), map[string]bool{}
	for i, c := range cells {
		if validID.MatchString(c.ID) && !used[c.ID] {
			ids[i], used[c.ID] = c.ID, true
		}
	}
	next := 0
	for i := range ids {
		for ids[i] == "" {
			next++
			if id := fmt.Sprintf("cell-%d", next); !used[id] {
				ids[i], used[id] = id, true
			}
		}
	}
	return ids
}

// known is the cell with what belongs to its type.
func (c cell) known(id string) *Cell {
	k := &Cell{Type: c.Type, ID: id, Source: string(c.Source), Metadata: c.Metadata}
	if c.Type != Code {
		k.Attachments = c.Attachments
		return k
	}
	k.ExecutionCount = max(0, c.ExecutionCount)
	for _, o := range c.Outputs {
		if out := o.known(); out != nil {
			k.Outputs = append(k.Outputs, out)
		}
	}
	return k
}

// known is the output with what belongs to its type, nil if that is none.
func (o output) known() *Output {
	switch o.Type {
	case Stream:
		return &Output{Type: Stream, Name: o.Name, Text: string(o.Text)}
	case Error:
		return &Output{Type: Error, EName: o.EName, EValue: o.EValue, Traceback: o.Traceback}
	case Result:
		return &Output{Type: Result, Data: bundle(o.Data), Metadata: o.Metadata, ExecutionCount: max(0, o.ExecutionCount)}
	case Display:
		return &Output{Type: Display, Data: bundle(o.Data), Metadata: o.Metadata}
	}
	return nil
}

// Language is what the notebook's code is written in, in lower case; "" where it does not say.
func (n *Notebook) Language() string {
	for _, place := range [][2]string{{"kernelspec", "language"}, {"language_info", "name"}} {
		if o, ok := n.Metadata[place[0]].(Object); ok {
			if name, ok := o[place[1]].(string); ok && name != "" {
				return strings.ToLower(name)
			}
		}
	}
	return ""
}

// MayFail tells whether a cell is marked as one whose error is expected, by the tag that nbclient knows.
func (c *Cell) MayFail() bool {
	tags, _ := c.Metadata["tags"].([]any)
	for _, tag := range tags {
		if tag == "raises-exception" {
			return true
		}
	}
	return false
}

// Stopped tells whether a cell of an exported session was stopped when it ran, by its timeout, by somebody, or with its kernel, and after how long, as far as
// its metadata say.
func (c *Cell) Stopped() (after time.Duration, stopped bool) {
	about, _ := c.Metadata["cellblock"].(map[string]any)
	switch about["status"] {
	case StatusTimedOut, StatusInterrupted, StatusRestarted, StatusStopped:
	default:
		return 0, false
	}
	number, _ := about["duration"].(json.Number)
	seconds, err := number.Float64()
	if err != nil || !(seconds > 0 && seconds <= maxStopped.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
