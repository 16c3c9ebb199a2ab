package sessions

import (
	"encoding/json"
	"strings"
	"testing"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/kernels"
)

// What a kernel says of its variables may be anything.
func TestReadVariables(t *testing.T) {
	answer := func(text string) json.RawMessage {
		raw, err := json.Marshal(map[string]any{"v": map[string]any{"status": "ok", "data": map[string]any{images.VariablesType: text}}})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	ok := kernels.StatusOK
	for _, tt := range []struct {
		name   string
		result kernels.Result
		kind   fault.Kind
		words  string
	}{
		{"died", kernels.Result{Status: kernels.StatusDied, Death: &kernels.Death{Cause: "it was killed"}}, fault.Died, "it was killed"},
		{"aborted", kernels.Result{Status: kernels.StatusAborted}, fault.Unavailable, "aborted"},
		{"nothing", kernels.Result{Status: ok}, fault.Unavailable, "cannot be read"},
		{"no answer", kernels.Result{Status: ok, UserExpressions: []byte(`{}`)}, fault.Unavailable, "could not describe its variables: the kernel gave no answer"},
		{"an error", kernels.Result{Status: ok, UserExpressions: []byte(`{"v":{"status":"error","ename":"KeyError","evalue":"'IPython'"}}`)}, fault.Unavailable, "KeyError 'IPython'"},
		{"no JSON", kernels.Result{Status: ok, UserExpressions: answer("x")}, fault.Unavailable, "cannot be read"},
		{"wrong types", kernels.Result{Status: ok, UserExpressions: answer(`{"variables":[{"name":7}]}`)}, fault.Unavailable, "cannot be read"},
		{"too long", kernels.Result{Status: ok, UserExpressions: answer(strings.Repeat(" ", maxDescription))}, fault.Unavailable, "too long"},
	} {
		if _, err := readVariables(tt.result); fault.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	v, err := readVariables(kernels.Result{Status: ok, UserExpressions: answer(`{"variables":[{"name":"x","type":"int","length":3}],"more":2}`)})
	if err != nil || v.More != 2 || v.Variables[0].Name != "x" || *v.Variables[0].Length != 3 {
		t.Errorf("%+v %v", v, err)
	}
	if v, err := readVariables(kernels.Result{Status: ok, UserExpressions: answer(`{}`)}); err != nil || v.Variables == nil {
		t.Errorf("%+v %v", v, err)
	}
}

func TestVariablesOfALanguageThatCannotTell(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.Runtimes = map[string]Runtime{"python": {Title: "Python"}} })
	execute(t, m, alice, "s", "x")
	if _, err := m.Variables(t.Context(), alice, "s"); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "of Python sessions") {
		t.Errorf("%v", err)
	}
	if _, err := m.Variables(t.Context(), bob, "s"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another owner: %v", err)
	}
}

// Whatever a kernel answers is a description or an error that says what to do instead.
func FuzzVariables(f *testing.F) {
	f.Add([]byte(`{"v":{"status":"ok","data":{"` + images.VariablesType + `":"{\"variables\":[{\"name\":\"x\",\"type\":\"int\"}],\"more\":2}"}}}`))
	f.Add([]byte(`{"v":{"status":"error","ename":"\ud800","evalue":null}}`))
	f.Add([]byte(`{"v":{"status":"ok","data":{"` + images.VariablesType + `":"{\"variables\":null,\"more\":-1}"}}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		v, err := readVariables(kernels.Result{Status: kernels.StatusOK, UserExpressions: answer})
		if err != nil && (fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "") || err == nil && v.Variables == nil {
			t.Errorf("%q: %+v, %v", answer, v, err)
		}
	})
}
