package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/words"
	"cellblock/mcpserver/terminal"
	"cellblock/sessions"
)

var variablesSchema = listSchema("variables", "name", "type")

func (s *service) variablesTool() toolSpec {
	return toolSpec{
		name: "inspect_variables", title: "Inspect variables",
		description: "List what code has defined in an idle session: type, size, shape, columns, preview.",
		input:       []mcp.ToolOption{sessionArgument()},
		output:      variablesSchema, readOnly: true, idempotent: true, handle: s.inspectVariables,
	}
}

func (s *service) inspectVariables(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id")
	id := a.required("session_id")
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	v, err := s.Sessions.Variables(ctx, owner, id)
	if err != nil {
		return toolError(err), nil
	}
	v = fitVariables(v)
	text := variablesText(v)
	if len(v.Variables) > 0 {
		return mcp.NewToolResultStructured(v, text), nil
	}
	if info, err := s.Sessions.Get(ctx, owner, id); err == nil {
		text = nothingDefined(info)
	}
	return mcp.NewToolResultStructured(v, text), nil
}

// nothingDefined is for a session that has no variables, or no kernel to have them.
func nothingDefined(info sessions.Info) string {
	switch {
	case info.Saved():
		return "The kernel is stopped, and its variables are saved: they are there again when code runs."
	case info.Lost != "":
		return "Nothing is defined: the last kernel has ended (" + terminal.Plain(info.Lost) + ")."
	}
	return "Nothing is defined."
}

// maxVariables is the most that all variables of a result have together, as JSON in bytes. Clients show a model the text
// or the JSON, and some both.
const maxVariables = 20_000

// maxVariableLine is the most of one variable's line, in characters.
const maxVariableLine = 300

// fitVariables makes what came from a kernel fit to be shown, and leaves out the first of too many: what was imported, then the oldest.
func fitVariables(v sessions.Variables) sessions.Variables {
	fit := sessions.Variables{Variables: []sessions.Variable{}, More: max(0, v.More)}
	size, first := 0, len(v.Variables)
	for ; first > 0; first-- {
		one := &v.Variables[first-1]
		cleanVariable(one)
		text, err := json.Marshal(one)
		if size += len(text); err != nil || size > maxVariables {
			break
		}
	}
	fit.More += first
	fit.Variables = append(fit.Variables, v.Variables[first:]...)
	return fit
}

func cleanVariable(v *sessions.Variable) {
	v.Name, v.Type, v.DType = clean(v.Name), clean(v.Type), clean(v.DType)
	v.Preview = shorten(strings.ReplaceAll(terminal.Plain(v.Preview), "\n", " "), maxVariableLine)
	v.Shape = v.Shape[:min(len(v.Shape), 16)]
	v.Columns = v.Columns[:min(len(v.Columns), 50)]
	for i := range v.Columns {
		v.Columns[i] = sessions.Column{Name: clean(v.Columns[i].Name), DType: clean(v.Columns[i].DType)}
	}
}

func variablesText(v sessions.Variables) string {
	var lines []string
	if v.More > 0 {
		lines = append(lines, fmt.Sprintf("… %s older, larger or imported left out here …", words.Count(int64(v.More), "variable")))
	}
	for _, one := range v.Variables {
		lines = append(lines, shorten(variableLine(one), maxVariableLine))
	}
	if len(lines) == 0 {
		return "Nothing is defined."
	}
	return strings.Join(lines, "\n")
}

// variableLine is a variable on one line: "df · pandas.DataFrame · 150×5 · 6.1 KiB · x float64, target int64".
func variableLine(v sessions.Variable) string {
	parts := []string{v.Name, v.Type}
	switch {
	case len(v.Shape) > 0:
		parts = append(parts, strings.TrimSpace(strings.ReplaceAll(strings.Trim(fmt.Sprint(v.Shape), "[]"), " ", "×")+" "+v.DType))
	case v.DType != "":
		parts = append(parts, v.DType)
	}
	if v.Length != nil {
		parts = append(parts, words.Count(*v.Length, "item"))
	}
	if v.Bytes != nil {
		parts = append(parts, words.Bytes(*v.Bytes))
	}
	if v.Preview != "" {
		parts = append(parts, v.Preview)
	}
	if len(v.Columns) > 0 {
		parts = append(parts, columnsText(v))
	}
	return strings.Join(parts, " · ")
}

func columnsText(v sessions.Variable) string {
	var columns []string
	for _, c := range v.Columns {
		columns = append(columns, c.Name+" "+c.DType)
	}
	if len(v.Shape) == 2 && v.Shape[1] > int64(len(v.Columns)) {
		columns = append(columns, "…")
	}
	return strings.Join(columns, ", ")
}
