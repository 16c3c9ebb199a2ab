package viewer

import (
	"strings"
	"testing"
)

// Between the cells of two kernels stands what became of the variables.
func TestLineOfANewKernel(t *testing.T) {
	for why, lost := range map[string]bool{
		"":                      true,
		"the kernel was killed": true,
		"it was stopped because no cell had run for 30 minutes; its variables were saved": false,
	} {
		html, err := partial("cell", cellView{Number: 2, Generation: 2, NewKernel: true, Why: why})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(html, "variables were lost") != lost || !strings.Contains(html, why) {
			t.Errorf("%q: %s", why, html)
		}
	}
}

// A person is told what of a kernel's variables the next one has, while that runs, as the model is.
func TestWhatIsBack(t *testing.T) {
	for not, want := range map[string]string{"": "they are back", "gen (generator), 2 more": "they are back, but for gen (generator), 2 more"} {
		html, err := partial("cell", cellView{Number: 2, Generation: 2, NewKernel: true, Why: "it was stopped; its variables were saved", Back: backText(not)})
		if err != nil || !strings.Contains(html, "its variables were saved · "+want+"<") {
			t.Errorf("%q: %v %s", not, err, html)
		}
	}
}
