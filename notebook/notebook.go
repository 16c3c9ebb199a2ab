// Package notebook writes and reads Jupyter notebooks (nbformat 4.5, https://nbformat.readthedocs.io): what a session did
// becomes a file that every notebook program opens, and such a file becomes cells that a session can run.
//
// It is pure: bytes and values in, bytes and values out. A Builder applies what a kernel sent as a notebook would: streams
// are joined, clear_output clears, update_display_data replaces.
package notebook

import (
	"bytes"
	"encoding/json"
	"strings"
)

// MIMEType is that of a notebook's file.
const MIMEType = "application/x-ipynb+json"

// Format and Minor are the version that is written.
const (
	Format = 4
	Minor  = 5
)

// Object is a JSON object of which nothing is known.
type Object = map[string]any

// Notebook is a notebook's content.
type Notebook struct {
	Cells    []*Cell
	Metadata Object
}

// CellType is what a cell is.
type CellType string

// The types of cells.
const (
	Code     CellType = "code"
	Markdown CellType = "markdown"
	Raw      CellType = "raw"
)

// Cell is one cell. ExecutionCount and Outputs are those of code, Attachments those of text.
type Cell struct {
	Type     CellType
	ID       string
	Source   string
	Metadata Object
	// ExecutionCount is the prompt's number, 0 for none.
	ExecutionCount int
	Outputs        []*Output
	Attachments    Object
}

// OutputType is what an output is.
type OutputType string

// The types of outputs.
const (
	Stream  OutputType = "stream"
	Display OutputType = "display_data"
	Result  OutputType = "execute_result"
	Error   OutputType = "error"
)

// Output is one output of a cell. Which fields count depends on its type.
type Output struct {
	Type OutputType
	// Name is "stdout" or "stderr", Text what a stream says.
	Name, Text string
	// Data is a MIME bundle with its Metadata.
	Data, Metadata Object
	// ExecutionCount is that of a result, 0 for none.
	ExecutionCount int
	// EName, EValue and Traceback describe an error.
	EName, EValue string
	Traceback     []string
}

// Encode returns the notebook's file, in the form in which Jupyter writes it: sorted keys, one blank of indentation.
func (n *Notebook) Encode() ([]byte, error) {
	cells := make([]Object, 0, len(n.Cells))
	for _, c := range n.Cells {
		cells = append(cells, c.object())
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(Object{"cells": cells, "metadata": orEmpty(n.Metadata), "nbformat": Format, "nbformat_minor": Minor})
	return b.Bytes(), err
}

func (c *Cell) object() Object {
	o := Object{"cell_type": c.Type, "id": c.ID, "metadata": orEmpty(c.Metadata), "source": lines(c.Source)}
	switch {
	case c.Type == Code:
		outputs := make([]Object, 0, len(c.Outputs))
		for _, out := range c.Outputs {
			outputs = append(outputs, out.object())
		}
		o["outputs"], o["execution_count"] = outputs, countOf(c.ExecutionCount)
	case len(c.Attachments) > 0:
		o["attachments"] = c.Attachments
	}
	return o
}

func (o *Output) object() Object {
	switch o.Type {
	case Stream:
		return Object{"output_type": o.Type, "name": o.Name, "text": lines(o.Text)}
	case Error:
		traceback := o.Traceback
		if traceback == nil {
			traceback = []string{}
		}
		return Object{"output_type": o.Type, "ename": o.EName, "evalue": o.EValue, "traceback": traceback}
	}
	object := Object{"output_type": o.Type, "data": orEmpty(o.Data), "metadata": orEmpty(o.Metadata)}
	if o.Type == Result {
		object["execution_count"] = countOf(o.ExecutionCount)
	}
	return object
}

// lines is a text as notebooks have it: its lines, so that a difference between two files is one of lines.
func lines(text string) []string {
	if text == "" {
		return []string{}
	}
	all := strings.SplitAfter(text, "\n")
	if last := len(all) - 1; all[last] == "" {
		all = all[:last]
	}
	return all
}

// countOf is an execution count as it is written: null for none.
func countOf(n int) any {
	if n <= 0 {
		return nil
	}
	return n
}

func orEmpty(o Object) Object {
	if o == nil {
		return Object{}
	}
	return o
}
