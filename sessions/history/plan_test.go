package history

import (
	"strings"
	"testing"
)

// What is asked while somebody waits takes no longer when the history grows: it is found by an index, and the executions that
// have not ended by one that has nothing else.
func TestPlans(t *testing.T) {
	folder, _ := old(t, len(migrations))
	s := limited(t, Options{Folder: folder})
	defer closeStore(t, s)
	for name, tt := range map[string]struct {
		query, index string
		args         []any
	}{
		"a session":         {selectSessionNamed, "sessions_name", []any{"a", "b", "c"}},
		"an owner's":        {selectSessionsOwned, "sessions_name", []any{"a", "b"}},
		"their last cells":  {selectSessionsOwned, "(session=? AND number=?) LEFT-JOIN", []any{"a", "b"}},
		"not closed":        {selectUnclosed, "sessions_open", []any{"a", "b"}},
		"how many closed":   {countClosed, "COVERING INDEX sessions_closed", []any{"a", "b", "[]", "[]"}},
		"the last closed":   {selectClosed, "COVERING INDEX sessions_closed", []any{"a", "b", "[]", "[]", 3}},
		"a page of cells":   {selectPage, "(session=? AND number>?)", []any{1, 2, 3}},
		"outputs of a cell": {selectOutputs, "(execution=? AND idx>?)", []any{1, 2, 3, 4}},
		"found outputs":     {selectFound, "(session=? AND number>? AND number<?)", []any{1, 2, 3, 3, 4, "", 0, 5}},
		"cells not ended":   {selectUnended, "executions_open", []any{1}},
		"cells left behind": {selectAbandoned, "executions_open", []any{1}},
	} {
		rows, err := s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+tt.query, tt.args...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, step)
		}
		if err := rows.Close(); err != nil || !strings.Contains(strings.Join(plan, "\n"), tt.index) {
			t.Errorf("%s: %q, %v", name, plan, err)
		}
	}
}
