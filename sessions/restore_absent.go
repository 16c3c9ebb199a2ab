package sessions

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"cellblock/kernels"
)

// absentName is the name in an error that says that there is none: Python's and JavaScript's, and R's object.
var absentName = regexp.MustCompile(`^(?:name '(\w+)' is not defined|(\w+) is not defined|object '(\w+)' not found)`)

// whoSetWhatIsMissing looks, where the last cell failed because a name has no meaning, for the last of the cells before it that
// failed themselves and give it one. A cell that ends with an error, or is stopped, has run up to there.
func (r *RestoreReport) whoSetWhatIsMissing(failed []ExecutionInfo) {
	if len(r.Cells) == 0 {
		return
	}
	last := r.Cells[len(r.Cells)-1]
	if last.Result.Status != kernels.StatusError || last.Result.Error == nil {
		return
	}
	for _, name := range absentName.FindStringSubmatch(last.Result.Error.Value) {
		if !identifier.MatchString(name) {
			continue
		}
		sets := givesMeaning(name)
		for _, cell := range slices.Backward(failed) {
			if cell.Number < last.Original && sets.MatchString(cell.Code) {
				r.Absent, r.SetBy = name, cell.Number
				return
			}
		}
	}
}

var identifier = regexp.MustCompile(`^\w+$`)

// givesMeaning finds code that gives a name a meaning: by an import, a definition, a loop or an assignment.
func givesMeaning(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)\b(?:import|as|def|class|function|const|let|var|for)\b[\s{(]*(?:[\w.]+\s*,\s*)*` + name + `\b` +
		`|(?:^|;)\s*(?:[\w.]+\s*,\s*)*` + name + `\s*(?:,[^=\n]*)?(?:=(?:[^=]|$)|<-)`)
}

// atTop is where a statement of a cell's own begins: with a line, or behind a semicolon of one that is neither in a text nor in braces.
const atTop = `^(?:(?:[^\s#"'{}]|` + whole + `)(?:[^\n#"'{}]|` + whole + `)*;[ \t]*)?`

const whole = `"[^"\n]*"|'[^'\n]*'|\{[^{}\n]*\}`

// setsAtTop finds code that gives a name a meaning for the whole session, as far as a statement's beginning tells: neither a function's own
// variables, nor those of a comprehension, nor arguments.
func setsAtTop(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)` + atTop + `(?:import|from|async\s+def|def|class|function|const|let|var|for)\b[^\n#("'` + "`" + `=]*[\s,{]` + name + `\b` +
		`|` + atTop + `(?:[\w.]+[ \t]*,[ \t]*)*` + name + `[ \t]*(?:,[^=\n]*)?(?:=(?:[^=]|$)|<-)`)
}

// LostName finds, for an owner's cell that failed because a name has no meaning, the last successful cell of an earlier kernel of the
// session that seems to have given it one, or else the last that may have got there before it failed, which no restoration runs again. It
// is false where there is none, where the name has a meaning again, or that cell would not be run again though it succeeded, and where
// that cannot be read.
func (m *Manager) LostName(ctx context.Context, o Owner, e *Execution) (name string, setBy ExecutionInfo, found bool) {
	failed := e.Info()
	if failed.Generation < 2 || failed.Result.Status != kernels.StatusError || failed.Result.Error == nil {
		return "", setBy, false
	}
	said := absentName.FindStringSubmatch(failed.Result.Error.Value)
	if said == nil {
		return "", setBy, false
	}
	name = cmp.Or(said[1:]...)
	cells, err := m.Executions(ctx, o, e.SessionID(), maxRestored)
	if err != nil {
		return "", setBy, false
	}
	sets := setsAtTop(name)
	for _, c := range slices.Backward(cells) {
		succeeded := c.Result.Status == kernels.StatusOK
		switch {
		case c.Number == failed.Number || !sets.MatchString(c.Code):
		case succeeded && c.Generation >= failed.Generation: // set here, and taken away again, or there again by now
			return "", setBy, false
		case succeeded:
			return name, c, !m.asked(ctx, o, e.SessionID(), c.Number) // what reads input is not run again
		case setBy.Number == 0 && c.Err == nil:
			setBy = c
		}
	}
	return name, setBy, setBy.Number > 0 && setBy.Generation < failed.Generation
}
