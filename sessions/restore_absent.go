package sessions

import (
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
		`|^\s*(?:[\w.]+\s*,\s*)*` + name + `\s*(?:,[^=\n]*)?(?:=(?:[^=]|$)|<-)`)
}
