// Package notebook writes and reads Jupyter notebooks (nbformat 4.5, https://nbformat.readthedocs.io): what a session did
// becomes a file that every notebook program opens, and such a file becomes cells that a session can run.
//
// It is pure: bytes and values in, bytes and values out. A Builder applies what a kernel sent as a notebook would: streams
// are joined, clear_output clears, update_display_data replaces.
package notebook

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
