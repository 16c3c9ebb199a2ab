package sessions

import "testing"

// Cells that are not kept are counted from the generation on that is run again, as far as it is known where that began.
func TestMissingFrom(t *testing.T) {
	cell := func(number, generation int) ExecutionInfo {
		return ExecutionInfo{Number: number, Generation: generation}
	}
	for name, tt := range map[string]struct {
		infos            []ExecutionInfo
		generation, want int
	}{
		"none":                         {[]ExecutionInfo{cell(1, 1), cell(2, 1)}, 1, 0},
		"the first":                    {[]ExecutionInfo{cell(4, 1), cell(5, 1)}, 1, 3},
		"in between":                   {[]ExecutionInfo{cell(1, 1), cell(4, 1)}, 1, 2},
		"of an earlier generation":     {[]ExecutionInfo{cell(3, 1), cell(4, 2)}, 2, 0},
		"behind such a cell":           {[]ExecutionInfo{cell(3, 1), cell(6, 2)}, 2, 2},
		"before a cell that never ran": {[]ExecutionInfo{cell(3, 0), cell(4, 2)}, 2, 2},
	} {
		if got := missingFrom(tt.infos, tt.generation); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
