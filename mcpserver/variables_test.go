package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/sessions"
)

func number(n int64) *int64 { return &n }

func TestVariablesText(t *testing.T) {
	v := fitVariables(sessions.Variables{More: 2, Variables: []sessions.Variable{
		{Name: "x", Type: "int", Preview: "5"},
		{Name: "names", Type: "list", Length: number(3), Bytes: number(80), Preview: "['a', 'b', 'c']"},
		{Name: "a", Type: "numpy.ndarray", Shape: []int64{3, 4}, DType: "float64", Bytes: number(96), Preview: "[0, 1, …]"},
		{Name: "df", Type: "pandas.DataFrame", Shape: []int64{150, 3}, Bytes: number(6144), Columns: []sessions.Column{{Name: "x", DType: "float64"}, {Name: "y", DType: "object"}}},
		{Name: "odd\x1b[31m\nname", Type: strings.Repeat("T", 500), Preview: "a\nb" + strings.Repeat("c", 1000)},
	}})
	got := strings.Split(variablesText(v), "\n")
	want := []string{
		"… 2 variables older, larger or imported left out here …", "x · int · 5", "names · list · 3 items · 80 bytes · ['a', 'b', 'c']",
		"a · numpy.ndarray · 3×4 float64 · 96 bytes · [0, 1, …]", "df · pandas.DataFrame · 150×3 · 6 KiB · x float64, y object, …",
	}
	for i, line := range want {
		if got[i] != line {
			t.Errorf("got  %s\nwant %s", got[i], line)
		}
	}
	if odd := got[5]; !strings.HasPrefix(odd, "odd name · TTT") || len([]rune(odd)) > maxVariableLine+2 {
		t.Errorf("%q", odd)
	}
	if got := variablesText(sessions.Variables{}); got != "Nothing is defined." {
		t.Error(got)
	}
}

func TestVariablesAreBounded(t *testing.T) {
	var v sessions.Variables
	for i := range 5000 {
		v.Variables = append(v.Variables, sessions.Variable{Name: fmt.Sprint("v", i), Type: "int", Preview: strings.Repeat("9", 90)})
	}
	v = fitVariables(v)
	data, err := json.Marshal(v)
	if err != nil || len(data) > maxVariables+200 || v.More+len(v.Variables) != 5000 || v.Variables[len(v.Variables)-1].Name != "v4999" {
		t.Errorf("%d bytes, %d and %d more", len(data), len(v.Variables), v.More)
	}
}

func TestInspectVariablesErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "1+1")
		inspect := func(id string) called { return w.call("inspect_variables", map[string]any{"session_id": id}) }
		inspect("s").expect(t, true, "the variables of python sessions cannot be inspected") // this one's kernels are scripts
		inspect("t").expect(t, true, `there is no session "t"`)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *sessions.Config) { c.Runtimes["python"] = sessions.Runtime{Variables: "x"} })
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(t.Context()) }()
		w.kernels.LaunchDelay = time.Second
		w.execute("s", "sleep 9s", map[string]any{"wait_seconds": 0})
		synctest.Wait()
		inspect := func() called { return w.call("inspect_variables", map[string]any{"session_id": "s"}) }
		inspect().expect(t, true, `the kernel of session "s" is starting`, "call again in a few seconds")
		time.Sleep(2 * time.Second)
		inspect().expect(t, true, `session "s" is running cell 1`, "get_execution waits for it")
		w.get("s", 1, nil).expect(t, false, "ok")
		inspect().expect(t, true, "the kernel could not describe its variables", "print what you want to know")
		w.run("s", "die SIGKILL")
		if got := inspect(); got.String() != "Nothing is defined: the last kernel has ended (the kernel was killed by SIGKILL)." || string(got.structured) != `{"variables":[],"more":0}` {
			t.Errorf("%s %s", got, got.structured)
		}
	})
}
